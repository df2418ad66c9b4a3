package stock

// What a databeacon remembers over a restart, in one JSON file of its folder.

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

type saved struct {
	Connections []*connection // by number
}

type connection struct {
	ID          int64
	Name        string
	File        string
	AutoConnect bool
	Tables      []*knownTable // as last introspected, by name
}

// knownTable is what introspection found. A table that went away stays known.
type knownTable struct {
	Name    string
	Columns []knownColumn
	Enabled bool
}

type knownColumn struct {
	Name            string
	NativeType      string
	MaxLength       *int64
	Nullable        bool
	IsPrimaryKey    bool
	IsAutoIncrement bool
	DefaultValue    *string
	MeadowType      string
}

func (s *saved) read(file string) error {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(data, s)
}

func (s *saved) write(file string) error {
	data, err := json.MarshalIndent(s, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o600)
}

func (s *saved) nextID() int64 {
	var highest int64
	for _, c := range s.Connections {
		highest = max(highest, c.ID)
	}
	return highest + 1
}

func (s *saved) named(name string) *connection {
	for _, c := range s.Connections {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func (s *saved) connection(id int64) *connection {
	for _, c := range s.Connections {
		if c.ID == id {
			return c
		}
	}
	return nil
}

func (c *connection) table(name string) *knownTable {
	for _, t := range c.Tables {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// learn keeps what introspection found.
func (c *connection) learn(name string, columns []knownColumn) {
	if t := c.table(name); t != nil {
		t.Columns = columns
		return
	}
	c.Tables = append(c.Tables, &knownTable{Name: name, Columns: columns})
}

var notInSlug = regexp.MustCompile(`[^a-z0-9]+`)

// slug is the part of an endpoint's base that stands for the connection. Names that differ only in what it drops share one.
func slug(name string, id int64) string {
	plain := strings.Map(func(r rune) rune {
		if r >= 0x0300 && r <= 0x036f {
			return -1
		}
		return unicode.ToLower(r)
	}, norm.NFKD.String(name))
	s := strings.Trim(notInSlug.ReplaceAllString(plain, "-"), "-")
	if len(s) > 64 {
		s = s[:64]
	}
	if s == "" {
		return "conn-" + strconv.FormatInt(id, 10)
	}
	return s
}
