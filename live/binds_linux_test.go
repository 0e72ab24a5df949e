package live

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/reusecheck/reusecheck"
)

func TestBindsAreTimedInANamespaceOfTheirOwn(t *testing.T) {
	if _, ok := open(t, Options{}).engine.(*runner); !ok {
		t.Skip("without privileges the namespace is another process's")
	}
	addrs := []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")}
	fds := descriptors(t)
	for range 2 { // the second finds nothing of the first
		took, err := TimeBinds(context.Background(), reusecheck.ReusePort, addrs, 40000, 50)
		if err != nil || took <= 0 {
			t.Fatalf("50 binds took %v: %v", took, err)
		}
	}
	if n := descriptors(t); n > fds {
		t.Errorf("%d descriptors are open, %d were before", n, fds)
	}
	if _, err := TimeBinds(context.Background(), 0, addrs[:1], 40000, 2); err == nil {
		t.Error("two plain sockets were bound to one address and port")
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := TimeBinds(ctx, 0, addrs, 40000, 2); !errors.Is(err, context.Canceled) {
		t.Errorf("a run that was cancelled says %v", err)
	}
}

func TestAUserWithoutPrivilegesIsToldHowToTime(t *testing.T) {
	if os.Geteuid() != 0 {
		addrs := []netip.Addr{netip.MustParseAddr("127.0.0.1")}
		for name, timed := range map[string]func(context.Context) error{
			"binds":      func(ctx context.Context) error { _, err := TimeBinds(ctx, 0, addrs, 40000, 1); return err },
			"datagrams":  func(ctx context.Context) error { _, err := TimeDatagrams(ctx, 1, 1); return err },
			"namespaces": func(ctx context.Context) error { _, err := TimeNamespaces(ctx, 1, 0); return err },
		} {
			u := new(Unavailable)
			if err := timed(context.Background()); !errors.As(err, &u) || !strings.Contains(u.Do, "unshare --map-root-user --net") {
				t.Errorf("%s: %v", name, err)
			}
		}
		return
	}
	open(t, Options{}) // skips where there is no namespace to be had
	if out, err := again(t.Name(), "CI=", nobody).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	// What it is told to do works.
	own := again("TestBindsAreTimedInANamespaceOfTheirOwn", "CI=", 0)
	own.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	if out, err := own.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestBindsAre") {
		t.Errorf("in namespaces of its own: %v\n%s", err, out)
	}
}

func TestTooManyDescriptorsAreRefusedWithTheNumberThatFits(t *testing.T) {
	err := allowDescriptors(1 << 40)
	if u := new(reusecheck.Unsupported); !errors.As(err, &u) {
		t.Errorf("a million million sockets: %v", err)
	}
}
