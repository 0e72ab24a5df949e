package explore

import (
	"fmt"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/spec"
)

// Packable says why a world of a system is not for [Search] but for [Walk], as a
// sentence without its end; "" where it is for both.
func Packable(sys *spec.System, w *spec.World) (why string) {
	switch {
	case !sys.Packed:
		return fmt.Sprintf("system %s is explored by playing histories", sys.Name)
	case len(w.Ports) > model.MaxPorts:
		return fmt.Sprintf("it has more than %d ports", model.MaxPorts)
	case len(w.CPUs) > 0 || w.Fields[rc.SetCPU]:
		return "it has processors"
	case w.Unaccepted:
		return "it has connections that nobody accepts"
	}
	return ""
}
