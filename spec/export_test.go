package spec

// Without is a trace less one socket or namespace.
var Without = without
