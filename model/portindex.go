package model

// portIndex finds a port's bucket. A handful stands in a list, which copies
// fast; more than that in a table.
type portIndex struct {
	few  []portEntry
	many []int32 // by port, nil while few will do
}

type portEntry struct {
	port uint16
	at   int32
}

const fewPorts = 16

func (x *portIndex) reset() { x.few, x.many = x.few[:0], nil }

func (x *portIndex) copyFrom(o *portIndex) {
	x.few = append(x.few[:0], o.few...)
	x.many = append(x.many[:0], o.many...)
	if o.many == nil {
		x.many = nil
	}
}

func (x *portIndex) get(port uint16) int32 {
	if x.many != nil {
		return x.many[port]
	}
	for _, e := range x.few {
		if e.port == port {
			return e.at
		}
	}
	return none
}

func (x *portIndex) put(port uint16, at int32) {
	if x.many == nil && len(x.few) == fewPorts {
		x.many = make([]int32, 1<<16)
		for i := range x.many {
			x.many[i] = none
		}
		for _, e := range x.few {
			x.many[e.port] = e.at
		}
	}
	if x.many != nil {
		x.many[port] = at
		return
	}
	x.few = append(x.few, portEntry{port, at})
}

func (x *portIndex) drop(port uint16) {
	if x.many != nil {
		x.many[port] = none
		return
	}
	for i, e := range x.few {
		if e.port == port {
			x.few[i] = x.few[len(x.few)-1]
			x.few = x.few[:len(x.few)-1]
			return
		}
	}
}
