package e2e_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/e2e"
	"holdfast/internal/languages"
)

// The guide for plugin authors promises five commands from nothing to a backend that serves. Here they are, as they stand there.

const guide = "../../docs/plugin-author.md"

// road is the way of one language: its commands, and the configuration that the last one needs.
type road struct{ commands, config string }

func roadOf(t *testing.T, lang string) road {
	t.Helper()
	return road{commands: blockAfter(t, "### "+lang, "sh"), config: blockAfter(t, "### "+lang, "hcl")}
}

// blockAfter is the first block of a kind behind a heading of the guide.
func blockAfter(t *testing.T, heading, kind string) string {
	t.Helper()
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	_, chapter, _ := strings.Cut(string(text), "\n"+heading+"\n")
	parts := regexp.MustCompile("(?s)```" + kind + "\n(.*?)```").FindStringSubmatch(chapter)
	if parts == nil {
		t.Fatalf("the guide has no %s behind %q", kind, heading)
	}
	return parts[1]
}

func TestTheCommandsOfTheGuideLeadToABackendThatServes(t *testing.T) {
	host := authored(t, e2e.Setup{}) // for its binary and what is beside it
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, lang := range []string{"Go", "Node", "Python"} {
		t.Run(lang, func(t *testing.T) {
			way := roadOf(t, lang)
			lines := strings.Split(strings.TrimSpace(way.commands), "\n")
			if len(lines) > 5 || lines[len(lines)-1] != "holdfast serve" {
				t.Errorf("the way is of %d commands and ends with %q", len(lines), lines[len(lines)-1])
			}
			dir, err := os.MkdirTemp("", "hf")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			a := author{host: host, dir: dir, path: pathOf(t, host, dir, lang)}
			a.does(t, strings.Replace(lines[0], "--lang go", "--lang go --source "+root, 1)) // the binary is not in its module here
			a.dir = filepath.Join(dir, "tape")
			for _, line := range lines[1 : len(lines)-1] {
				if line == "npm install" {
					languages.Install(t, a.dir) // from what was fetched once
					continue
				}
				out := a.does(t, line)
				if strings.HasPrefix(line, "holdfast plugin check") && !strings.Contains(out, "certified holdfast.backend.v1") {
					t.Errorf("%s: %s", line, out)
				}
			}
			if err := os.WriteFile(filepath.Join(a.dir, "holdfast.hcl"), []byte(way.config), 0o600); err != nil {
				t.Fatal(err)
			}
			a.serves(t, func(at string) {
				if lang == "Node" {
					a.looksFor(t, at)
				}
			})
		})
	}
}

// looksFor runs the commands for when something is wrong, beside a host that serves.
func (a *author) looksFor(t *testing.T, at string) {
	t.Helper()
	ran := 0
	for line := range strings.Lines(blockAfter(t, "## When something is wrong", "sh")) {
		line, _, _ = strings.Cut(line, "  #")
		line = strings.TrimSpace(line)
		fails := strings.HasPrefix(line, "./") // by hand
		if strings.HasSuffix(line, "serve") {
			continue // it does already
		}
		cmd := a.command(t, line)
		cmd.Env = append(cmd.Env, "HOLDFAST_LISTEN="+at)
		out, err := cmd.CombinedOutput()
		if ran++; (err != nil) != fails || len(out) == 0 {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
	}
	if ran < 8 {
		t.Errorf("only %d commands were found", ran)
	}
}

// author is somebody at a shell.
type author struct {
	host      *e2e.Host
	dir, path string
}

// pathOf is a PATH with holdfast and the interpreters, and nothing else before them.
func pathOf(t *testing.T, host *e2e.Host, dir, lang string) string {
	t.Helper()
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(host.Command().Path, filepath.Join(bin, "holdfast")); err != nil {
		t.Fatal(err)
	}
	path := bin + ":"
	switch lang {
	case "Node":
		path += languages.Node(t).Path()
	case "Python":
		path += languages.Python(t).Path()
	default:
		path += os.Getenv("PATH")
	}
	return path
}

func (a *author) command(t *testing.T, line string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-euc", line)
	cmd.Dir = a.dir
	cmd.Env = slices.Concat(a.host.Command().Env, []string{"PATH=" + a.path, "HOLDFAST_CONFIG=", "GOPROXY=off", "GOFLAGS="})
	return cmd
}

func (a *author) does(t *testing.T, line string) string {
	t.Helper()
	out, err := a.command(t, line).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return string(out)
}

// serves starts the host with the author's own configuration, waits until his backend follows, and has something done meanwhile.
func (a *author) serves(t *testing.T, meanwhile func(at string)) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	_ = l.Close()
	cmd := a.command(t, "exec holdfast serve --listen "+at)
	var log strings.Builder
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	e2e.Await(t, "the author's backend does not follow", func() error {
		res, err := http.Get("http://" + at + "/v1/status")
		if err != nil {
			return err
		}
		defer res.Body.Close()
		var s e2e.Status
		if err := json.NewDecoder(res.Body).Decode(&s); err != nil {
			return err
		}
		for _, b := range s.Backends {
			if b.Name == "archive" && b.State == "bootstrapped" {
				return nil
			}
		}
		return fmt.Errorf("the backends are %+v", s.Backends)
	})
	meanwhile(at)
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the host ended with %v\n%s", err, &log)
		}
	case <-time.After(30 * time.Second):
		_ = cmd.Process.Kill()
		t.Errorf("the host did not stop\n%s", &log)
	}
}
