package acceptance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/internal/e2e"
	"holdfast/internal/hostile"
)

// What the tests of hostile plugins share: the programs, what the status says of them, and what may be left of them.

// hostileBuilt is the program of package hostile.
var hostileBuilt = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "hx")
	if err != nil {
		return "", err
	}
	hostileDir = dir
	path := filepath.Join(dir, "hostile")
	if out, err := exec.Command("go", "build", "-o", path, "holdfast/internal/hostile/plugin").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
})

// hostileDir is what TestMain removes.
var hostileDir string

// plant gives programs, one for each fault, in a folder of their own that is removed at the end. No process of it may be left
// then, and nobody who holds a file of it.
func plant(t *testing.T, faults ...hostile.Fault) map[hostile.Fault]hostile.Program {
	t.Helper()
	built, err := hostileBuilt()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(filepath.Dir(built), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		noneLeft(t, dir)
		_ = os.RemoveAll(dir)
	})
	planted := map[hostile.Fault]hostile.Program{}
	for _, f := range faults {
		p := hostile.At(dir, f)
		if err := os.Link(built, p.Path); err != nil {
			t.Fatal(err)
		}
		planted[f] = p
	}
	return planted
}

// noneLeft waits until nothing runs or holds open what lies below a folder.
func noneLeft(t testing.TB, dir string) {
	t.Helper()
	deadline := time.After(2 * time.Second)
	for {
		left := users(dir)
		if len(left) == 0 {
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-deadline:
			t.Errorf("processes are left behind: %v", left)
			return
		}
	}
}

// users lists the live processes that run, or have open, what lies below a folder.
func users(dir string) (list []string) {
	links, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, link := range links {
		proc := filepath.Dir(link)
		if stat, err := os.ReadFile(proc + "/stat"); err != nil || strings.Contains(string(stat), ") Z ") {
			continue
		}
		if filepath.Base(proc) == fmt.Sprint(os.Getpid()) {
			continue
		}
		files, _ := filepath.Glob(proc + "/fd/*")
		for _, file := range append(files, link) {
			if to, err := os.Readlink(file); err == nil && strings.HasPrefix(to, dir+"/") {
				list = append(list, fmt.Sprintf("%s: %s", filepath.Base(proc), to))
				break
			}
		}
	}
	return list
}

// backendTexts is the status, each backend as it stands there.
func backendTexts(h *e2e.Host) (map[string]string, time.Duration, error) {
	began := time.Now()
	res, err := http.Get(h.URL + "/v1/status")
	if err != nil {
		return nil, 0, err
	}
	defer res.Body.Close()
	var s struct{ Backends []json.RawMessage }
	if err := json.NewDecoder(res.Body).Decode(&s); err != nil {
		return nil, 0, err
	}
	texts := map[string]string{}
	for _, text := range s.Backends {
		var b struct{ Name string }
		if err := json.Unmarshal(text, &b); err != nil {
			return nil, 0, err
		}
		texts[b.Name] = string(text)
	}
	return texts, time.Since(began), nil
}

// telling waits until the status tells each fault, and notes when it first did.
type telling struct {
	wanted map[hostile.Fault]*regexp.Regexp
	at     map[hostile.Fault]time.Time
	last   map[string]string
	slow   time.Duration // of a status
}

// look asks once, and says what is not told yet.
func (w *telling) look(h *e2e.Host) (missing []hostile.Fault, err error) {
	texts, took, err := backendTexts(h)
	if err != nil {
		return nil, err
	}
	w.last, w.slow = texts, max(w.slow, took)
	for fault, wanted := range w.wanted {
		if _, told := w.at[fault]; told {
			continue
		}
		if wanted.MatchString(texts[string(fault)]) {
			w.at[fault] = time.Now()
		} else {
			missing = append(missing, fault)
		}
	}
	return missing, nil
}
