package templates

import (
	"bytes"
	"embed"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	contract "holdfast/plugins/proto"
	"holdfast/plugins/proto/backendv1"
	"holdfast/ports"
)

// The languages that there are templates for.
const (
	Go     = "go"
	Node   = "node"
	Python = "python"
)

// Langs lists them, the first being the usual one.
var Langs = []string{Go, Node, Python}

// Options say which project to render.
type Options struct {
	Name   string // the kind of the backend, as in `backend "NAME" "archive"`
	Lang   string // one of Langs
	Source string // of a Go project: the folder of the holdfast module, which it is built with
}

// File is one file of a project.
type File struct {
	Path string // below the project's folder
	Mode fs.FileMode
	Text []byte
}

//go:embed go/*.go go/README.md node/plugin.js node/package.json node/package-lock.json node/README.md python/plugin.py python/README.md
var projects embed.FS

// kind is what the templates are called; rendering puts another name in its place.
const kind = "tape"

var nameForm = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,63}$`)

// Render gives the files of a project, ready to be built and run. It fails with Invalid and the field that is wrong.
func Render(o Options) ([]File, error) {
	switch {
	case !nameForm.MatchString(o.Name):
		return nil, ports.InField(ports.Invalid, "name", "%q is no kind of backend; take a lower case letter, then up to 63 of a-z, 0-9, _ and -", o.Name)
	case !slices.Contains(Langs, o.Lang):
		return nil, ports.InField(ports.Invalid, "lang", "there is no template for %q; the languages are %s", o.Lang, strings.Join(Langs, ", "))
	}
	files, err := common(o)
	if err != nil {
		return nil, err
	}
	switch o.Lang {
	case Go:
		module, err := goModule(o)
		if err != nil {
			return nil, err
		}
		files = append(files, module...)
	case Node:
		files = append(files, File{"backend.proto", 0o644, contract.Source})
	case Python:
		set, err := descriptors()
		if err != nil {
			return nil, err
		}
		files = append(files, File{"backend.binpb", 0o644, set})
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return files, nil
}

// common are the files that stand in the language's folder.
func common(o Options) (files []File, err error) {
	entries, err := projects.ReadDir(o.Lang)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		text, err := projects.ReadFile(path.Join(o.Lang, e.Name()))
		if err != nil {
			return nil, err
		}
		f := File{Path: e.Name(), Mode: 0o644, Text: bytes.ReplaceAll(text, []byte(kind), []byte(o.Name))}
		if bytes.HasPrefix(text, []byte("#!")) {
			f.Mode = 0o755
		}
		files = append(files, f)
	}
	return files, nil
}

// descriptors is the contract as a FileDescriptorSet, with all that it imports and google.rpc.Status, which carries errors: for
// languages that make messages of it at run time.
func descriptors() ([]byte, error) {
	var set descriptorpb.FileDescriptorSet
	seen := map[string]bool{}
	var add func(f protoreflect.FileDescriptor)
	add = func(f protoreflect.FileDescriptor) {
		if seen[f.Path()] {
			return
		}
		seen[f.Path()] = true
		for i := range f.Imports().Len() {
			add(f.Imports().Get(i).FileDescriptor)
		}
		set.File = append(set.File, protodesc.ToFileDescriptorProto(f))
	}
	add(backendv1.File_holdfast_backend_v1_backend_proto)
	status, err := protoregistry.GlobalFiles.FindFileByPath("google/rpc/status.proto") // of the errors of gRPC
	if err != nil {
		return nil, err
	}
	add(status)
	return proto.MarshalOptions{Deterministic: true}.Marshal(&set)
}

// Write puts the files into a folder, which is made if it is not there. Nothing is overwritten: a file that is there already is an
// error, and nothing is written then.
func Write(dir string, files []File) error {
	const op = "write project"
	for _, f := range files {
		if _, err := os.Lstat(filepath.Join(dir, f.Path)); err == nil {
			return ports.Errorf(ports.Conflict, op, "%s is there already; name another folder", filepath.Join(dir, f.Path))
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return ports.Wrap(ports.Internal, op, err)
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f.Path), f.Text, f.Mode); err != nil {
			return ports.Wrap(ports.Internal, op, err)
		}
	}
	return nil
}
