package oracle_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/oracle"
)

// The second formulation: sockets overlap when one of all the packets that
// there are reaches both, and share by the table in testdata/sharing.txt.

type packet struct {
	dst netip.Addr
	dev reusecheck.Dev
}

var packets = func() (all []packet) {
	for _, a := range []string{"127.0.0.1", "127.0.0.2", "::1", "fd00::1", "fd00::2"} {
		for dev := reusecheck.DevLo; dev <= reusecheck.Dev2; dev++ {
			all = append(all, packet{netip.MustParseAddr(a), dev})
		}
	}
	return all
}()

// receives says whether a socket would take the packet.
func receives(s *reusecheck.Socket, p packet) bool {
	if s.Dev != reusecheck.NoDev && s.Dev != p.dev {
		return false
	}
	local := s.Local.Addr().String()
	if p.dst.Is4() {
		switch local {
		case "0.0.0.0", "::ffff:0.0.0.0":
			return true
		case "::":
			return !s.Opts.Has(reusecheck.V6Only)
		}
		return strings.TrimPrefix(local, "::ffff:") == p.dst.String()
	}
	return local == "::" || local == p.dst.String()
}

var reuseWords = []string{"-", "reuseaddr", "reuseport", "reuseaddr,reuseport"}

// sharing is the table of testdata/sharing.txt: purpose, binder and owner to
// its cell.
type sharing map[string][2]string

func readSharing(t testing.TB, lines []string) sharing {
	t.Helper()
	table := sharing{}
	for _, line := range lines {
		f := strings.Fields(line)
		if len(f) != 6 {
			t.Fatalf("not a row: %q", line)
		}
		for i, owner := range reuseWords {
			when, why, _ := strings.Cut(f[2+i], ":")
			table[f[0]+" "+f[1]+" "+owner] = [2]string{when, why}
		}
	}
	return table
}

func reuseWord(s *reusecheck.Socket) string {
	i := 0
	if s.Opts.Has(reusecheck.ReuseAddr) {
		i++
	}
	if s.Opts.Has(reusecheck.ReusePort) {
		i += 2
	}
	return reuseWords[i]
}

// refuses says why owner o stands against binder b, "" when it does not.
func (table sharing) refuses(b, o *reusecheck.Socket, purpose oracle.Purpose) string {
	if b.ID == o.ID || b.Local.Port() != o.Local.Port() ||
		!slices.ContainsFunc(packets, func(p packet) bool { return receives(b, p) && receives(o, p) }) {
		return ""
	}
	name := map[oracle.Purpose]string{oracle.Named: "named", oracle.LastResort: "last"}[purpose]
	if name == "" {
		return "automatic"
	}
	cell := table[name+" "+reuseWord(b)+" "+reuseWord(o)]
	quiet := o.State != reusecheck.Listening
	user := o.State == reusecheck.TimeWait || o.UID == b.UID
	shared := false
	switch cell[0] {
	case "quiet":
		shared = quiet
	case "user":
		shared = user
	case "either":
		shared = quiet || user
	case "strangers":
		shared = quiet && !user
		if !quiet && !user {
			return "listening"
		}
	}
	if shared {
		return ""
	}
	return cell[1]
}

var localAddrs = map[reusecheck.Family][]netip.Addr{
	reusecheck.TCP4: {netip.MustParseAddr("0.0.0.0"), netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")},
	reusecheck.TCP6: {
		netip.MustParseAddr("::"), netip.MustParseAddr("::1"), netip.MustParseAddr("fd00::1"),
		netip.MustParseAddr("::ffff:0.0.0.0"), netip.MustParseAddr("::ffff:127.0.0.1"), netip.MustParseAddr("::ffff:127.0.0.2"),
	},
}

func randomSocket(r *rand.Rand, id reusecheck.ID) reusecheck.Socket {
	s := reusecheck.Socket{
		ID: id, Family: reusecheck.TCP4 + reusecheck.Family(r.IntN(2)),
		Opts: reusecheck.Opt(r.IntN(4)), UID: uint32(r.IntN(2)),
		Dev: reusecheck.Dev(max(0, r.IntN(8)-4)), State: reusecheck.State(r.IntN(4)),
	}
	as := localAddrs[s.Family]
	a := as[r.IntN(len(as))]
	if s.Family.Is6() && !a.Is4In6() && (!a.IsUnspecified() || r.IntN(2) == 0) {
		s.Opts |= reusecheck.V6Only
	}
	s.Local = netip.AddrPortFrom(a, uint16(40000+r.IntN(8)/7))
	return s
}

func TestConflictsAreThoseOfTheSharingTableAndOfThePacketsThatReachBoth(t *testing.T) {
	table := readSharing(t, tableLines(t, "testdata/sharing.txt"))
	r := rand.New(rand.NewPCG(1, 2))
	refused, granted := 0, 0
	for range 30_000 {
		owners := make([]reusecheck.Socket, r.IntN(4))
		for i := range owners {
			owners[i] = randomSocket(r, reusecheck.ID(i))
		}
		b := randomSocket(r, reusecheck.ID(r.IntN(len(owners)+1)))
		purpose := oracle.Purpose(r.IntN(3))
		var naive, conflicts []string
		for i := range owners {
			if why := table.refuses(&b, &owners[i], purpose); why != "" {
				naive = append(naive, fmt.Sprint(owners[i].ID, ": ", reasonWords[why]))
			}
		}
		req := &oracle.Request{Binder: &b, Addr: b.Local.Addr(), Port: b.Local.Port(), Purpose: purpose}
		for _, c := range oracle.Conflicts(owners, req, nil) {
			conflicts = append(conflicts, fmt.Sprint(c.Owner, ": ", c.Reason))
		}
		if diff := cmp.Diff(naive, conflicts); diff != "" {
			t.Fatalf("purpose %d, binder %+v, owners %+v (-naive +oracle)\n%s", purpose, b, owners, diff)
		}
		if len(conflicts) > 0 {
			refused++
		} else if len(owners) > 0 {
			granted++
		}
	}
	if refused < 5_000 || granted < 5_000 {
		t.Errorf("the sample says little: %d refused, %d granted", refused, granted)
	}
}

func TestWhoMayBindDoesNotDependOnTheOrderWhileNobodyListens(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	refused := 0
	for range 30_000 {
		a, b := randomSocket(r, 0), randomSocket(r, 1)
		if a.State == reusecheck.Listening || b.State == reusecheck.Listening ||
			a.State == reusecheck.TimeWait != (b.State == reusecheck.TimeWait) {
			continue
		}
		for purpose := range oracle.LastResort + 1 {
			ab, ba := conflict(&a, &b, purpose), conflict(&b, &a, purpose)
			if ab != ba {
				t.Fatalf("purpose %d: %+v over %+v conflicts: %v, the other way round: %v", purpose, a, b, ab, ba)
			}
			if ab {
				refused++
			}
		}
	}
	if refused < 1000 {
		t.Errorf("the sample says little: %d refused", refused)
	}
}

func conflict(b, o *reusecheck.Socket, p oracle.Purpose) bool {
	req := &oracle.Request{Binder: b, Addr: b.Local.Addr(), Port: b.Local.Port(), Purpose: p}
	return len(oracle.Conflicts([]reusecheck.Socket{*o}, req, nil)) > 0
}
