// Package explore visits every state that a modelled kernel can reach in a small
// world, and proves properties for any number of sockets.
//
// Sockets are finite, so the states are, and a breadth-first search comes to an
// end without a bound on the length of histories. Every step is the model's own
// ([model.TCP.Do] on a stack loaded from a packed state) and is judged as in a
// random search: by the oracle's relation and the properties of package spec.
//
// What is interchangeable is explored once: sockets among each other, and those
// addresses, users and devices whose exchange the model's own answers do not
// notice (see Symmetry).
package explore
