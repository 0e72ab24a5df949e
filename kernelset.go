package reusecheck

// KernelSet is a trace's kernels header: which kernels' answers it states. The
// zero value is "all".
//
// An element is "all", a version ("6.1"), a range of versions ("6.8-", "-6.7",
// "6.1-6.7", both ends included), or a profile's name ("6.18+first-bind-fix"),
// which holds for that profile alone. Versions compare component by component
// on as many components as the bound has: 6.1.192 lies in "6.1-6.7", in "-6.1"
// and in "6.1.168-".
type KernelSet struct{ text string }
