// Package shrink takes a trace that shows something down to the smallest one
// that still shows it.
//
// What "shows" means is the caller's predicate; [Run] knows traces only. It
// drops steps, sockets and options, merges sockets, replaces verbs and values
// by simpler ones, renames addresses, ports, users and devices, and reorders
// steps, cheapest pass first and no candidate twice. It ends when no single
// change and no pair of changes leads to a simpler trace that still fails, nor
// is one among the traces of the same verbs, options and addresses that can all
// be listed.
//
// # The order
//
// "Simpler" is one total order on traces, [Compare], read from the most to the
// least important:
//
//  1. fewer steps (socket and netns lines are not counted here);
//  2. fewer sockets and namespaces, accepted children included;
//  3. fewer attributes given: options, uid, dev, netns and range of socket
//     lines, the ports header, sysctls;
//  4. fewer IPv6 sockets;
//  5. simpler verbs: bind, listen, connect, close, set, inherit, shutdown,
//     disconnect, timewait, expire, send, exit;
//  6. simpler attributes: reuseaddr, reuseport, v6only, no-port, transparent,
//     uid, dev, netns, range;
//  7. simpler addresses: 127.0.0.1, 127.0.0.2, 0.0.0.0, ::1, fd00::1, ::, then
//     the v4-mapped forms of the first three, then any other;
//  8. lower ports: 40000, 40001, 40002, the automatic port 0, then any other;
//  9. lower users: 0, 1001, 1002, then any other;
//  10. simpler devices: none, d1, d2, lo;
//  11. at last, step by step: the steps of a before those of b, and the rules
//     above on each step and each socket line in turn.
//
// Points 4 to 10 count over the whole trace (the sum of the ranks), so that
// they do not depend on the order of the steps; point 11 fixes that order.
//
// A canonical trace creates its sockets first, in the order in which the steps
// use them, and names them a, b, c in that order.
//
// # What is not kept
//
// The answers that the steps state (Want and Oracle) speak of the trace as it
// was, and are dropped, before the predicate is asked for the first time. The
// caller restates them. Title, source and kernels are kept as they are.
package shrink
