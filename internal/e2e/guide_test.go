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
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	_, chapter, found := strings.Cut(string(text), "\n### "+lang+"\n")
	chapter, _, _ = strings.Cut(chapter, "\n### ")
	block := func(kind string) string {
		parts := regexp.MustCompile("(?s)```" + kind + "\n(.*?)```").FindStringSubmatch(chapter)
		if parts == nil {
			t.Fatalf("the way of %s has no %s", lang, kind)
		}
		return parts[1]
	}
	if !found {
		t.Fatalf("the guide has no way of %s", lang)
	}
	return road{commands: block("sh"), config: block("hcl")}
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
			a.serves(t)
		})
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

// serves starts the host with the author's own configuration and waits until his backend follows.
func (a *author) serves(t *testing.T) {
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
