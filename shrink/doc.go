// Package shrink takes a trace that shows something down to the smallest one
// that still shows it.
//
// What "shows" means is the caller's predicate; [Run] knows traces only. It
// drops steps, sockets, namespaces and options, merges sockets, replaces verbs
// and values by simpler ones and connections that arrive by ones of a socket with
// itself, renames addresses, ports, users, devices and
// processors, and reorders steps, cheapest pass first and no candidate twice. It ends when no
// single change and no pair of changes leads to a simpler trace that still fails, nor
// is one among the traces of the same verbs, options and addresses that can all
// be listed.
//
// # The order
//
// "Simpler" is one total order on traces, [Compare], read from the most to the
// least important:
//
//  1. fewer settings of the namespace: the ports header, sysctls;
//  2. fewer ports in that header;
//  3. fewer steps (socket and netns lines are not counted here);
//  4. fewer sockets and namespaces, accepted children included;
//  5. fewer attributes: options, uid, dev, cpu, netns and range on socket lines,
//     unaccepted on connects, cpu on inherits and sends, table on netns;
//  6. fewer IPv6 sockets;
//  7. simpler verbs: bind, listen, connect, close, set, inherit, shutdown,
//     disconnect, timewait, expire, send, exit;
//  8. simpler attributes: reuseaddr, reuseport, v6only, no-port, transparent,
//     uid, dev, netns, range, unaccepted, cpu, table;
//  9. simpler addresses: 127.0.0.1, 127.0.0.2, 0.0.0.0, ::1, fd00::1, ::, then
//     the v4-mapped forms of the first three, then any other;
//  10. lower ports: 40000, 40001, 40002, the automatic port 0, then any other
//     (an inherit's port that is the listener's own before all);
//  11. lower users: 0, 1001, 1002, then any other;
//  12. simpler devices: none, d1, d2, lo;
//  13. lower processors: none, 0, 1, then any other;
//  14. at last, step by step: the steps of a before those of b, and the rules
//     above on each step and each socket line in turn.
//
// Points 6 to 13 count over the whole trace (the sum of the ranks), so that
// they do not depend on the order of the steps; point 14 fixes that order.
//
// A canonical trace creates its sockets first, in the order in which the steps
// use them, and names them a, b, c in that order. Namespaces and their sockets
// come next, one made after an exit behind that exit.
//
// # What is not kept
//
// The answers that the steps state (Want and Oracle) speak of the trace as it
// was, and are dropped, before the predicate is asked for the first time. The
// caller restates them. Title, source and kernels are kept as they are.
package shrink
