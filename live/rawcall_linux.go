package live

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// disconnectCall is connect(fd, AF_UNSPEC), which x/sys has no address for.
func disconnectCall(fd int) error {
	sa := unix.RawSockaddr{Family: unix.AF_UNSPEC}
	_, _, e := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&sa)), unix.SizeofSockaddrInet4)
	if e != 0 {
		return e
	}
	return nil
}
