package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// writeFile puts a file in place whole or not at all. A device or a pipe is
// written to and stays what it is, and so does a link, whose target is replaced.
func writeFile(path string, text []byte) (err error) {
	defer func() { err = unwritable(path, err) }()
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return writeThrough(path, text)
	}
	target := path
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		target = resolved
	}
	return replace(target, text)
}

// makeDirectory makes a directory for files, where there is none.
func makeDirectory(path string) error { return unwritable(path, os.MkdirAll(path, 0o755)) }

// unwritable says of what a person named that it cannot be written, whatever file
// on the way there it was.
func unwritable(path string, err error) error {
	if err == nil {
		return nil
	}
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		err = at.Err
	}
	if link := (*os.LinkError)(nil); errors.As(err, &link) {
		err = link.Err
	}
	return fmt.Errorf("cannot write %s: %w", path, err)
}

// writeThrough writes to what cannot be replaced: root could rename a file over
// a device, which the whole machine would miss.
func writeThrough(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if _, err := f.Write(text); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// replace renames a file that is whole over the one that was there.
func replace(path string, text []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(text); err != nil {
		f.Close()
		return err
	}
	if err = f.Chmod(0o644); err != nil {
		f.Close()
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
