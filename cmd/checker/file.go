package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// writeFile puts a file in place whole or not at all. A device or a pipe is
// written to and stays what it is, and so does a link, whose target is replaced.
func writeFile(path string, text []byte) error {
	return writeFiles([]string{path}, [][]byte{text})
}

// writeFiles does so with several files: when one of them cannot be written, none is
// put in place.
func writeFiles(paths []string, texts [][]byte) error {
	var all []*staged
	defer func() {
		for _, s := range all {
			s.discard()
		}
	}()
	for i, path := range paths {
		s, err := stage(path, texts[i])
		if err != nil {
			return unwritable(path, err)
		}
		all = append(all, s)
	}
	for i, s := range all {
		if err := s.place(); err != nil {
			return unwritable(paths[i], err)
		}
	}
	return nil
}

// mayWrite is an error where a file could not be put in place, before the work
// starts that would be in vain.
func mayWrite(path string) error {
	s, err := stage(path, nil)
	if err != nil {
		return unwritable(path, err)
	}
	s.discard()
	return nil
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

// staged is a text that only has to be put in place.
type staged struct {
	path string
	text []byte
	file string // the whole text, to be renamed; "" to write through
}

// stage does everything that can fail before a file is put in place.
func stage(path string, text []byte) (*staged, error) {
	mode := fs.FileMode(0o644)
	switch info, err := os.Stat(path); {
	case err != nil:
	case info.IsDir():
		return nil, syscall.EISDIR
	case !info.Mode().IsRegular():
		return &staged{path: path, text: text}, nil
	default:
		mode = info.Mode().Perm()
	}
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return nil, err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(f.Name())
		return nil, err
	}
	return &staged{path, text, f.Name()}, nil
}

func (s *staged) place() error {
	if s.file == "" {
		return writeThrough(s.path, s.text)
	}
	err := os.Rename(s.file, s.path)
	if err == nil {
		s.file = ""
	}
	return err
}

// discard removes what was not put in place.
func (s *staged) discard() {
	if s.file != "" {
		os.Remove(s.file)
	}
}
