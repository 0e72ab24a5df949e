package main

import "context"

// await is what f gives, or the context's error as soon as there is one. It is for
// what looks at no interrupt itself, at a terminal's input or deep in a proof; f is
// left to itself then, and must write nowhere.
func await[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		v, err := f()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}
