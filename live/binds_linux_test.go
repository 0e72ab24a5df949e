package live

import (
	"context"
	"errors"
	"net/netip"
	"testing"

	"github.com/reusecheck/reusecheck"
)

func TestBindsAreTimedInANamespaceOfTheirOwn(t *testing.T) {
	open(t, Options{}) // skips where there is no namespace to be had
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

func TestTooManyDescriptorsAreRefusedWithTheNumberThatFits(t *testing.T) {
	err := allowDescriptors(1 << 40)
	if u := new(reusecheck.Unsupported); !errors.As(err, &u) {
		t.Errorf("a million million sockets: %v", err)
	}
}
