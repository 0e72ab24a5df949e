package reusecheck

import (
	"bytes"
	"net/netip"
	"testing"
)

func TestAnOrderNumbersWhatIsInItAndNobodyElse(t *testing.T) {
	o := Order{7, 3}
	for id, want := range map[ID]byte{7: 1, 3: 2, ID(3).OtherEnd(): 2 | 1<<7, 5: 0, NoID: 0} {
		if got := o.Of(id); got != want {
			t.Errorf("%v has number %d, want %d", id, got, want)
		}
	}
}

func TestSocketsThatDifferInAnythingButTheirNameAreWrittenDifferently(t *testing.T) {
	base := Socket{ID: 1, Family: UDP4, Local: netip.MustParseAddrPort("127.0.0.1:40000")}
	o := Order{1, 2, 3}
	text := func(change func(*Socket)) string {
		s := base
		change(&s)
		return string(s.AppendState(nil, o))
	}
	was := text(func(*Socket) {})
	if text(func(s *Socket) { s.ID = 2 }) != was {
		t.Error("another name is another state")
	}
	seen := map[string]int{was: -1}
	for i, change := range []func(*Socket){
		func(s *Socket) { s.Family = UDP6 }, func(s *Socket) { s.Opts = ReusePort }, func(s *Socket) { s.UID = 1 },
		func(s *Socket) { s.Dev = Dev1 }, func(s *Socket) { s.State = Connected }, func(s *Socket) { s.Range = PortRange{1, 2} },
		func(s *Socket) { s.HasNet, s.Net = true, 2 }, func(s *Socket) { s.HasNet, s.Net = true, 3 },
		func(s *Socket) { s.Local = netip.MustParseAddrPort("127.0.0.2:40000") },
		func(s *Socket) { s.Local = netip.MustParseAddrPort("[::ffff:127.0.0.1]:40000") },
		func(s *Socket) { s.Local = netip.MustParseAddrPort("127.0.0.1:40001") },
		func(s *Socket) { s.Peer = s.Local }, func(s *Socket) { s.CPU = Processor(0) },
		func(s *Socket) { s.PortLocked = true }, func(s *Socket) { s.AddrLocked = true }, func(s *Socket) { s.ByConnect = true },
	} {
		got := text(change)
		if j, dup := seen[got]; dup {
			t.Errorf("changes %d and %d are written the same", i, j)
		}
		seen[got] = i
		if len(got) != len(was) || bytes.Equal([]byte(got), []byte(was)) {
			t.Errorf("change %d: %q after %q", i, got, was)
		}
	}
}
