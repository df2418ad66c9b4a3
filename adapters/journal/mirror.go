package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/renameio/v2"
	"github.com/hashicorp/go-hclog"

	"holdfast/ports"
)

// A mirror is a file for people that shows a part of state.db and is read at the next start. It is replaced as a whole,
// and comes after state.db: what it lacks because the host died in between must not pass for the word of a person. So
// state.db remembers, in the bucket "mirror" under the mirror's name, what was last written to it.
type mirror struct {
	path string
	log  hclog.Logger

	writing sync.Mutex // held over every write; it is taken before State's mutex
	failed  bool       // the last write did, and that was said
	closed  bool
}

const (
	positionsName   = "persistence-bridge-hwm.json"
	assignmentsName = "persistence-assignment.json"
)

// maxMirror is the size from which on a file is none of ours.
const maxMirror = 64 << 20

// byFamily is the form that all mirrors have.
type byFamily[T any] struct{ Queue, Manifest T }

func (b *byFamily[T]) of(f ports.Family) *T {
	if f == ports.Manifest {
		return &b.Manifest
	}
	return &b.Queue
}

// render gives a mirror's text.
func render(content any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(content)
	return b.Bytes(), err
}

// read gives a mirror's text into content. found is false when there is no file; damage says why the one that is there
// cannot be one that was meant.
func (m *mirror) read(content any) (text []byte, found bool, damage error) {
	info, err := os.Stat(m.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(m.path); err == nil {
			return nil, true, errors.New("it is a link to nothing")
		}
		return nil, false, nil
	case err != nil:
		return nil, true, err
	case !info.Mode().IsRegular():
		return nil, true, errors.New("it is not a file")
	case info.Size() > maxMirror:
		return nil, true, fmt.Errorf("it has %d bytes, the limit is %d", info.Size(), maxMirror)
	}
	if text, err = os.ReadFile(m.path); err != nil {
		return nil, true, err
	}
	return text, true, strictly(text, content)
}

// strictly reads one JSON object that has nothing but the members of content.
func strictly(text []byte, content any) error {
	if !bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{")) {
		return errors.New("it is not a JSON object")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(content); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something stands behind the object")
	}
	return nil
}

// write replaces the file. The caller holds writing.
func (m *mirror) write(content any) error {
	text, err := render(content)
	if err != nil {
		return err
	}
	return renameio.WriteFile(m.path, text, 0o600, renameio.WithTempDir(filepath.Dir(m.path)), renameio.WithStaticPermissions(0o600))
}

// say tells of a write that did not succeed, once, until one does again. The caller holds writing.
func (m *mirror) say(err error) {
	switch {
	case err != nil && !m.failed:
		m.log.Warn("the mirror of state.db cannot be written; state.db counts, this file is for people", "file", m.path, "error", err)
	case err == nil && m.failed:
		m.log.Info("the mirror of state.db is written again", "file", m.path)
	}
	m.failed = err != nil
}

// setAsideDamaged gives a damaged mirror another name.
func (m *mirror) setAsideDamaged(why error, now time.Time) {
	aside := asideName(m.path, now)
	if err := os.Rename(m.path, aside); err != nil {
		m.log.Error("a mirror of state.db is damaged and keeps its name; state.db counts", "file", m.path, "why", why, "error", err)
		return
	}
	m.log.Error("a mirror of state.db is damaged and was set aside; state.db counts", "file", aside, "why", why)
}

// asideName is a name that says that a file is damaged.
func asideName(path string, now time.Time) string {
	name := path + asideMark + now.UTC().Format("20060102T150405Z")
	for n, aside := 2, name; ; n++ {
		if _, err := os.Lstat(aside); err != nil {
			return aside
		}
		aside = fmt.Sprintf("%s-%d", name, n) // another one within a second
	}
}

// asideFiles keeps the newest files that were set aside of each name and gives the names of what is there. What was left
// half written goes.
func asideFiles(dir string, names ...string) (aside []string) {
	files, err := os.ReadDir(dir) // by name, which is in order of time
	if err != nil {
		return nil
	}
	for _, name := range names {
		var mine []string
		for _, file := range files {
			if strings.HasPrefix(file.Name(), name+asideMark) {
				mine = append(mine, file.Name())
			}
			if digits, ours := strings.CutPrefix(file.Name(), "."+name); ours && digits != "" && strings.Trim(digits, "0123456789") == "" {
				_ = os.Remove(filepath.Join(dir, file.Name())) // if not now, then at the next start
			}
		}
		surplus := max(len(mine)-keepAside, 0)
		mine = slices.DeleteFunc(mine, func(file string) bool {
			surplus--
			return surplus >= 0 && os.Remove(filepath.Join(dir, file)) == nil
		})
		aside = append(aside, mine...)
	}
	return aside
}

// openMirrors reads the mirrors and does what a person asked for in them.
func (s *State) openMirrors(dir string) error {
	s.positions.mirror = mirror{path: filepath.Join(dir, positionsName), log: s.log}
	s.assignments.mirror = mirror{path: filepath.Join(dir, assignmentsName), log: s.log}
	if err := s.meetPositions(); err != nil {
		return err
	}
	return s.meetAssignments()
}

// closeMirrors writes what is behind. Nothing is written afterwards: the directory may be another host's by then.
func (s *State) closeMirrors() {
	s.writePositions(true)
	s.assignments.writing.Lock()
	behind := s.assignments.failed
	s.assignments.writing.Unlock()
	if behind {
		s.writeAssignments()
	}
	for _, m := range []*mirror{&s.positions.mirror, &s.assignments.mirror} {
		m.writing.Lock()
		m.closed = true
		m.writing.Unlock()
	}
}
