package reusecheck

// Nearest is the candidate that word is most likely meant to be, "" when none is
// near: the one suggestion that every message of the project makes.
func Nearest(word string, candidates []string) string { return nearest(word, candidates) }
