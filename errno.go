package reusecheck

import "fmt"

// Errno is an error number as Linux numbers them, whatever machine this runs on.
type Errno uint8

// The errors that the operations return.
const (
	EPERM         Errno = 1
	EBADF         Errno = 9
	EAGAIN        Errno = 11
	EACCES        Errno = 13
	EBUSY         Errno = 16
	ENODEV        Errno = 19
	EINVAL        Errno = 22
	EDESTADDRREQ  Errno = 89
	ENOPROTOOPT   Errno = 92
	EOPNOTSUPP    Errno = 95
	EAFNOSUPPORT  Errno = 97
	EADDRINUSE    Errno = 98
	EADDRNOTAVAIL Errno = 99
	ENETUNREACH   Errno = 101
	ECONNABORTED  Errno = 103
	ECONNRESET    Errno = 104
	EISCONN       Errno = 106
	ENOTCONN      Errno = 107
	ETIMEDOUT     Errno = 110
	ECONNREFUSED  Errno = 111
	EHOSTUNREACH  Errno = 113
	EALREADY      Errno = 114
	EINPROGRESS   Errno = 115
)

var errnoNames = map[Errno]string{
	EPERM: "EPERM", EBADF: "EBADF", EAGAIN: "EAGAIN", EACCES: "EACCES", EBUSY: "EBUSY", ENOPROTOOPT: "ENOPROTOOPT", ENODEV: "ENODEV",
	EINVAL: "EINVAL", EDESTADDRREQ: "EDESTADDRREQ", EOPNOTSUPP: "EOPNOTSUPP",
	EAFNOSUPPORT: "EAFNOSUPPORT", EADDRINUSE: "EADDRINUSE", EADDRNOTAVAIL: "EADDRNOTAVAIL",
	ENETUNREACH: "ENETUNREACH", ECONNABORTED: "ECONNABORTED", ECONNRESET: "ECONNRESET",
	EISCONN: "EISCONN", ENOTCONN: "ENOTCONN", ETIMEDOUT: "ETIMEDOUT",
	ECONNREFUSED: "ECONNREFUSED", EHOSTUNREACH: "EHOSTUNREACH", EALREADY: "EALREADY",
	EINPROGRESS: "EINPROGRESS",
}

// String is the error's symbol, EADDRINUSE.
func (e Errno) String() string {
	if s, ok := errnoNames[e]; ok {
		return s
	}
	return fmt.Sprintf("Errno(%d)", uint8(e))
}
