/*
 * One port of IPv4 sockets as Linux 6.8 and later keep it: the world "v4" of
 * checker explore, written a second time for another tool. Addresses are any, A
 * and B; sockets have reuseaddr, reuseport and a user; steps are bind, listen
 * and close. A state is the sockets and the cache, and nothing else: what is
 * needed within a step is hidden. A step that the cache grants against the
 * relation is counted and leads nowhere.
 *
 * spin -DSOCKETS=3 -DUIDS=1 -DFIRST=0 -a v4.pml
 *   SOCKETS 1 to 6, UIDS 1 or 2, FIRST 1: the first owner is recognised
 */
#ifndef SOCKETS
#define SOCKETS 3
#endif
#ifndef UIDS
#define UIDS 1
#endif
#ifndef FIRST
#define FIRST 0
#endif

c_code { unsigned long violations; }

/* A socket: address (1 any, 2 A, 3 B), reuseaddr, reuseport, listening, user.
 * 0 is no socket. */
byte s[SOCKETS];
/* The cache: fastreuse; fastreuseport 0, 1 ANY, 2 STRICT; its address and user,
 * 0 where they mean nothing. */
byte fast, share, kaddr, kuid;

hidden byte j, owned, clash, match, hit;

#define ADDR(x) ((x) & 3)
#define RA(x)   (((x) >> 2) & 1)
#define RP(x)   (((x) >> 3) & 1)
#define LI(x)   (((x) >> 4) & 1)
#define UID(x)  ((x) >> 5)
#define OVER(x, y)  (ADDR(x) == 1 || ADDR(y) == 1 || ADDR(x) == ADDR(y))
#define SHARE(x, y) (RA(x) && RA(y) && !LI(y) || RP(x) && RP(y) && UID(x) == UID(y))

/* look finds out how a request of socket i, to be w, stands to all owners. */
inline look(i, w) {
	owned = 0; clash = 0; j = 0;
	do
	:: j < SOCKETS ->
		if
		:: s[j] -> owned = 1;
			if
			:: j != i && OVER(w, s[j]) && !SHARE(w, s[j]) -> clash = 1
			:: else
			fi
		:: else
		fi;
		j++
	:: else -> break
	od;
	match = share && RP(w) && kuid == UID(w) && (share == 1 || kaddr == 1 || kaddr == ADDR(w));
	hit = owned && (match || fast && RA(w) && !LI(w))
}

/* enter keeps the cache when w is granted. */
inline enter(w) {
	if
	:: FIRST && !owned -> fast = RA(w);
		if
		:: RP(w) -> share = 1; kaddr = 0; kuid = UID(w)
		:: else -> share = 0
		fi
	:: else ->
		if
		:: !(RA(w) && !LI(w)) -> fast = 0
		:: else
		fi;
		if
		:: !RP(w) -> share = 0; kaddr = 0; kuid = 0
		:: RP(w) && !match -> share = 2; kaddr = ADDR(w); kuid = UID(w)
		:: else
		fi
	fi
}

inline request(i, w) {
	look(i, w);
	if
	:: hit && clash -> c_code { violations++; }
	:: !clash -> enter(w); s[i] = w
	:: else
	fi;
	j = 0; owned = 0; clash = 0; match = 0; hit = 0
}

inline leave(i) {
	s[i] = 0; j = 0; owned = 0;
	do
	:: j < SOCKETS -> owned = owned || s[j]; j++
	:: else -> break
	od;
	if
	:: !owned -> fast = 0; share = 0; kaddr = 0; kuid = 0
	:: else
	fi;
	j = 0; owned = 0
}

#define BIND(i, w)    :: d_step { s[i] == 0 -> request(i, w) }
#define OPTS(i, a, u) BIND(i, (a) + 32*(u)) BIND(i, (a) + 4 + 32*(u)) BIND(i, (a) + 8 + 32*(u)) BIND(i, (a) + 12 + 32*(u))
#define ADDRS(i, u)   OPTS(i, 1, u) OPTS(i, 2, u) OPTS(i, 3, u)
#if UIDS == 2
#define BINDS(i) ADDRS(i, 0) ADDRS(i, 1)
#else
#define BINDS(i) ADDRS(i, 0)
#endif
#define SOCKET(i) BINDS(i) \
	:: d_step { s[i] && !LI(s[i]) -> request(i, s[i] + 16) } \
	:: d_step { s[i] -> leave(i) }

active proctype port() {
	do
	SOCKET(0)
#if SOCKETS > 1
	SOCKET(1)
#endif
#if SOCKETS > 2
	SOCKET(2)
#endif
#if SOCKETS > 3
	SOCKET(3)
#endif
#if SOCKETS > 4
	SOCKET(4)
#endif
#if SOCKETS > 5
	SOCKET(5)
#endif
	od
}
