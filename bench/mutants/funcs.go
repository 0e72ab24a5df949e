package main

// defaultFuncs are the functions of package model that decide on the fast path
// and keep the cache: the question, the match, the update, and what is
// recomputed when an owner leaves.
const defaultFuncs = `fast|match|strictMatch|fourForm|covers|update|request|grant|allByConnect`
