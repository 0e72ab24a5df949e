package main

// defaultFuncs are the functions of package model that decide on the fast path
// and keep the cache.
const defaultFuncs = `fast.*|update.*`
