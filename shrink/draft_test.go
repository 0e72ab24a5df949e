package shrink

import (
	"net/netip"
	"reflect"
	"testing"

	rc "github.com/reusecheck/reusecheck"
)

func TestEveryFieldOfAnOperationTellsCandidatesApart(t *testing.T) {
	values := map[reflect.Type]reflect.Value{
		reflect.TypeFor[netip.AddrPort](): reflect.ValueOf(netip.MustParseAddrPort("127.0.0.1:0")),
		reflect.TypeFor[[]rc.ID]():        reflect.ValueOf([]rc.ID{0}),
		reflect.TypeFor[rc.PortRange]():   reflect.ValueOf(rc.PortRange{Lo: 1, Hi: 1}),
		reflect.TypeFor[bool]():           reflect.ValueOf(true),
	}
	blank := draft{ops: []rc.Op{{}}}
	blank.weigh()
	op := reflect.TypeFor[rc.Op]()
	for i := range op.NumField() {
		f := op.Field(i)
		d := draft{ops: []rc.Op{{}}}
		if v, ok := values[f.Type]; ok {
			reflect.ValueOf(&d.ops[0]).Elem().Field(i).Set(v)
		} else {
			reflect.ValueOf(&d.ops[0]).Elem().Field(i).Set(reflect.ValueOf(1).Convert(f.Type))
		}
		d.weigh()
		if string(d.text(nil)) == string(blank.text(nil)) {
			t.Errorf("the text of a candidate leaves out %s", f.Name)
		}
		if compare(&d, &blank) == 0 {
			t.Errorf("the order leaves out %s", f.Name)
		}
	}
}
