package process

import (
	"context"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"holdfast/ports"
)

// The texts are what an operator reads when a plugin does not start, so they stand here word for word. PATH is the plugin.
func TestAPluginThatDoesNotStartIsToldForWhatItIs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		habit string
		code  ports.Code
		text  string
	}{
		{"exit", ports.Unavailable, "PATH exited with code 3 before its handshake; its last lines:\n  cannot find my tape"},
		{"killed", ports.Unavailable, "PATH was ended by signal 9 (killed) before its handshake; it said nothing on stderr, start it by hand: HOLDFAST_PLUGIN=5d1c9b6e0f7a4c2d8e3b1a9f6c7d0e24 PATH be-plugin killed"},
		{"only-banner", ports.Unavailable, `PATH exited with code 0 before its handshake; it printed "*** TAPE 1.0 ***" to stdout instead; it said nothing on stderr, start it by hand: HOLDFAST_PLUGIN=5d1c9b6e0f7a4c2d8e3b1a9f6c7d0e24 PATH be-plugin only-banner`},
		{"closes-and-exits", ports.Unavailable, "PATH exited with code 7 before its handshake; its last lines:\n  cannot find my tape"},
		{"closes", ports.Unavailable, "PATH closed its stdout without a handshake on it, and ran on; it said nothing on stderr, start it by hand: HOLDFAST_PLUGIN=5d1c9b6e0f7a4c2d8e3b1a9f6c7d0e24 PATH be-plugin closes"},
		{"listens-nowhere", ports.Unavailable, "PATH prints a handshake but does not listen on DIR/s; listen first, then print the line"},
		{"flood", ports.Invalid, "plugin: PATH printed more than 8 MiB to stdout and no handshake among it; a plugin logs to stderr"},
		{"tcp", ports.Invalid, "plugin: PATH listens on tcp, where every user of the machine could call it; a backend listens on a unix socket in $PLUGIN_UNIX_SOCKET_DIR"},
		{"netrpc", ports.Invalid, `plugin: PATH speaks "netrpc", a backend speaks grpc`},
		{"long-socket", ports.Invalid, "plugin: PATH listens on a socket whose path has 111 bytes, the limit is 107; give the socket a shorter name"},
		{"elsewhere", ports.Invalid, "plugin: PATH listens on /tmp/x; a backend listens on a unix socket in $PLUGIN_UNIX_SOCKET_DIR, which is DIR"},
		{"stranger", ports.Invalid, "plugin: PATH is a plugin of another program: it does not know the cookie of holdfast's backends; name one of holdfast's; its last lines:\n  This binary is a plugin. These are not meant to be executed directly."},
		{"mute", ports.Unavailable, "PATH printed no handshake within 1s; it said nothing on stderr, start it by hand: HOLDFAST_PLUGIN=5d1c9b6e0f7a4c2d8e3b1a9f6c7d0e24 PATH be-plugin mute"},
		{"describe-hangs", ports.Unavailable, "PATH gave no answer to Describe within 1s; it said nothing on stderr, where it should say why"},
		{"configure-hangs", ports.Unavailable, "PATH gave no answer to Configure within 1s; it said nothing on stderr, where it should say why"},
		{"long-name", ports.Invalid, "plugin: PATH describes itself with a kind or a version of 5000 bytes, the limit is 100; shorten it"},
		{"refuse", ports.Invalid, "configure: path: lies outside the data directory"},
	} {
		t.Run(c.habit, func(t *testing.T) {
			t.Parallel()
			spec := specOf(t, hclog.NewNullLogger(), c.habit)
			numbers := quick
			switch c.habit {
			case "mute", "describe-hangs":
				numbers.start = time.Second
			case "configure-hangs":
				numbers.configure = time.Second
			}
			child, err := launch(t.Context(), &spec, spec.Logger, &numbers, func(step) {})
			if err == nil {
				child.discard(&numbers)
				t.Fatal("it started")
			}
			got := strings.ReplaceAll(err.Error(), spec.Path, "PATH")
			got = regexp.MustCompile(regexp.QuoteMeta(spec.RunDir)+`/plugin-dir\d+`).ReplaceAllString(got, "DIR")
			if got != c.text {
				t.Errorf("it says:\n%s\nand not:\n%s", got, c.text)
			}
			if got := ports.CodeOf(err); got != c.code {
				t.Errorf("code %q, want %q", got, c.code)
			}
			left, _ := filepath.Glob(spec.RunDir + "/plugin-dir*")
			if len(left) != 0 {
				t.Errorf("it left %v", left)
			}
		})
	}
}

func TestAFileThatIsNoPluginIsToldForWhatItIs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "nothing"), link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, path, text string }{
		{"missing", filepath.Join(dir, "missing"), "plugin: PATH does not exist; install the plugin there, or name its place with `plugin = \"PATH\"`"},
		{"dangling link", link, "plugin: PATH is a link to a file that does not exist; install the plugin there, or name its place with `plugin = \"PATH\"`"},
		{"folder", dir, "plugin: PATH is a folder; name the executable in it"},
		{"no x", file("plain", "x", 0o644), "plugin: PATH is not executable; try: chmod +x PATH"},
		{"empty", file("empty", "", 0o755), "plugin: PATH is an empty file; install the plugin anew"},
		{"text", file("text", "hello\n", 0o755), `plugin: PATH is no program; a script needs a first line such as "#!/usr/bin/env node"`},
		{"CRLF", file("crlf", "#!/bin/sh\r\necho hi\r\n", 0o755), "plugin: PATH cannot be started because its first line ends with a carriage return; save it with LF line ends"},
		{"CRLF behind env", file("crlf-env", "#!/usr/bin/env sh\r\necho hi\r\n", 0o755), "plugin: PATH exited with code 127: its first line ends with a carriage return; save it with LF line ends"},
		{"lost interpreter", file("script", "#!/no/such/node\n", 0o755), "plugin: PATH cannot be started because its interpreter /no/such/node does not exist; install it, or correct the script's first line"},
		{"other machine", file("arm", foreignELF(), 0o755), "plugin: PATH is built for arm64, this machine is amd64; install the plugin for linux/amd64"},
		{"lost loader", file("linked", orphanELF(), 0o755), "plugin: PATH cannot be started because the loader that it was linked for does not exist; install the plugin that was built for this system, or one that is linked statically"},
		{"Windows", file("win", "MZ\x90\x00", 0o755), "plugin: PATH is a program for Windows, this machine is linux/amd64"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			spec := specOf(t, hclog.NewNullLogger())
			spec.Path = c.path
			_, err := launch(t.Context(), &spec, spec.Logger, &quick, func(step) {})
			if err == nil {
				t.Fatal("it started")
			}
			if left := leftIn(t, spec.RunDir); len(left) != 0 {
				t.Errorf("it left %v", left)
			}
			text, _ := brief(err) // what env says differs between systems
			if got := strings.ReplaceAll(text, c.path, "PATH"); got != c.text || ports.CodeOf(err) != ports.Invalid {
				t.Errorf("it says (%s):\n%s\nand not:\n%s", ports.CodeOf(err), got, c.text)
			}
		})
	}
}

// foreignELF is the head of a program for a 64-bit ARM.
func foreignELF() string {
	head := make([]byte, 64)
	copy(head, "\x7fELF\x02\x01\x01")
	binary.LittleEndian.PutUint16(head[16:], uint16(elf.ET_EXEC))
	binary.LittleEndian.PutUint16(head[18:], uint16(elf.EM_AARCH64))
	binary.LittleEndian.PutUint32(head[20:], 1)
	return string(head)
}

// orphanELF is the head of a program for this machine whose loader is not there.
func orphanELF() string {
	const loader = "/no/such/ld.so\x00"
	head := make([]byte, 64+56)
	copy(head, "\x7fELF\x02\x01\x01")
	binary.LittleEndian.PutUint16(head[16:], uint16(elf.ET_EXEC))
	binary.LittleEndian.PutUint16(head[18:], uint16(elf.EM_X86_64))
	binary.LittleEndian.PutUint32(head[20:], 1)
	binary.LittleEndian.PutUint64(head[32:], 64) // the one program header
	binary.LittleEndian.PutUint16(head[52:], 64)
	binary.LittleEndian.PutUint16(head[54:], 56)
	binary.LittleEndian.PutUint16(head[56:], 1)
	binary.LittleEndian.PutUint32(head[64:], uint32(elf.PT_INTERP))
	binary.LittleEndian.PutUint64(head[72:], 120)
	binary.LittleEndian.PutUint64(head[96:], uint64(len(loader)))
	binary.LittleEndian.PutUint64(head[104:], uint64(len(loader)))
	return string(head) + loader
}

func TestAScriptIsNamedWithItsInterpreter(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "plugin.sh")
	if err := os.WriteFile(script, []byte("echo torn >&2\nexit 3\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	spec := specOf(t, hclog.NewNullLogger())
	spec.Path, spec.Args = "/bin/sh", []string{"-e", script}
	_, err := launch(t.Context(), &spec, spec.Logger, &quick, func(step) {})
	if want := "/bin/sh " + script + " exited with code 3 before its handshake; its last lines:\n  torn"; err == nil || err.Error() != want {
		t.Errorf("it says:\n%v\nand not:\n%s", err, want)
	}
}

func TestAPluginOfAnotherKindIsRefused(t *testing.T) {
	t.Parallel()
	spec := specOf(t, hclog.NewNullLogger())
	spec.Kind = "sqlite"
	p := prepare(t, spec)
	p.Start()
	err := p.Await(t.Context())
	want := "start tape: plugin: " + spec.Path + ` is a plugin of the kind "memory", not "sqlite"; name another plugin, or write backend "memory"`
	if err == nil || err.Error() != want || ports.CodeOf(err) != ports.Invalid {
		t.Errorf("got %v", err)
	}
	eventually(t, 5*time.Second, "it is parked", func() bool { s := p.Status(); return s.State == GivenUp && !s.Running })
}

func TestTooLongARunDirectoryIsToldBeforeTheLaunch(t *testing.T) {
	t.Parallel()
	base := filepath.Join(t.TempDir(), strings.Repeat("d", 120))
	if err := os.Mkdir(base, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := OpenRunDir(base)
	size := len(base) + len("/hf-0123456789/plugin-dir0123456789/plugin0123456789")
	want := fmt.Sprintf("run directory: a socket below %s/hf-0123456789 would have a path of %d bytes, the system's limit is 107; set TMPDIR to a shorter path", base, size)
	if e := ports.AsError(err); e == nil || err.Error() != want || e.Code != ports.Invalid || e.Limit != 107 || e.Size != int64(size) {
		t.Errorf("it says:\n%v\nand not:\n%s", err, want)
	}
}

func TestStopDuringALaunchEndsIt(t *testing.T) {
	t.Parallel()
	p := prepare(t, specOf(t, hclog.NewNullLogger(), "mute"))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	p.Start()
	if err := p.Await(ctx); ports.CodeOf(err) != ports.Deadline {
		t.Fatal(err)
	}
	began := time.Now()
	if err := p.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("stop took %s", took)
	}
}
