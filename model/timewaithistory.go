package model

// timeWaitHistory are the known bugs of TIME_WAIT sockets and the teardown of
// namespaces that do not show in the binds of one.
var timeWaitHistory = []Row{
	{"39", "5.15+tw-timers-only+tw-row-block", "5.15+tw-row-block", "TIME_WAIT sockets outlive their namespace, and stand in the next one that gets its memory"},
	{"40", "5.15+tw-timers-only", "5.15", "... and their timers touch the death row that was freed with it"},
	{"41", "", "", "a clean-up that moves the last decrement to the batch exit: no wrong answer by itself"},
	{"42", "", "", "half-open requests of kernel listeners survive: the trace language has no kernel listeners"},
	{"43", "", "", "a request is purged while it expires: the trace language has no such moment"},
	{"44", "6.18+tw-one-family", "6.18", "a purge that skips a family leaves its TIME_WAIT sockets (a shape that no kernel had)"},
	{"45", "", "", "two batch exits at once, one of which takes the other's sockets: a trace has one exit at a time, the interleavings are explored apart"},
	{"46", "", "", "connect reuses a TIME_WAIT socket that is still being set up: the trace language has no such moment"},
	{"47", "", "", "a look-up misses a TIME_WAIT socket that is still being set up: the trace language has no such moment"},
	{"E11", "6.18", "6.18-tw-always", "an exit walks the table although no namespace of the batch has TIME_WAIT sockets, because requests of kernel listeners are not counted (open)"},
}
