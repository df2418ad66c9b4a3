package acceptance

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/internal/e2e"
)

func TestASecretIsShownNowhere(t *testing.T) {
	t.Parallel()
	const inFile, inEnv, wrong = "s3cret-of-the-file-0123456789", "s3cret-of-the-environment-0123456789", "s3cret-that-is-wrong-0123456789"
	h := e2e.StartWith(t, e2e.Setup{
		Config: fmt.Sprintf("log_level = \"trace\"\ntoken \"file\" {\n  role   = \"admin\"\n  secret = %q\n}\ntoken \"env\" {\n  role   = \"read\"\n  secret = env(\"OPS_SECRET\")\n}\n", inFile),
		Env:    []string{"OPS_SECRET=" + inEnv},
	})
	var seen strings.Builder // everything that holdfast says
	call := func(method, path, secret, body string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, h.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+secret)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&seen, res.Header, string(text))
		return res.StatusCode
	}
	write := string(e2e.Line("QP_UpsertWorkItem", item("w", "")))
	for _, c := range []struct {
		method, path, secret, body string
		want                       int
	}{
		{"POST", "/v1/actions", inFile, write, 200},
		{"POST", "/v1/actions", inEnv, write, 401},
		{"POST", "/v1/actions", wrong, write, 401},
		{"GET", "/v1/work-items", inEnv, "", 200},
		{"GET", "/v1/work-items?limit=" + wrong, inEnv, "", 400},
		{"GET", "/v1/status", inFile, "", 200},
		{"GET", "/metrics", inFile, "", 200},
		{"GET", "/", inFile, "", 200},
		{"POST", "/v1/prune", inEnv, `{"OlderThan":"1h"}`, 401},
	} {
		if got := call(c.method, c.path, c.secret, c.body); got != c.want && !(c.want == 401 && got == 403) {
			t.Errorf("%s %s is answered %d, want %d", c.method, c.path, got, c.want)
		}
	}
	for _, args := range [][]string{
		{"config", "show"}, {"config", "check"}, {"status"}, {"status", "--json"}, {"doctor"}, {"backends"}, {"items"},
	} {
		out, _ := h.Run(t, args...)
		fmt.Fprintln(&seen, out)
	}
	for _, pid := range h.Processes() {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&seen, "%s\n", text)
	}
	// A configuration with a mistake on the secret's own line says where, not what.
	broken := filepath.Join(t.TempDir(), "broken.hcl")
	for _, text := range []string{
		fmt.Sprintf("token \"x\" {\n  role = \"admin\"\n  secret = %q %q\n}\n", inFile, inEnv),
		fmt.Sprintf("token \"x\" {\n  role = \"nobody\"\n  secret = %q\n}\n", inFile),
		fmt.Sprintf("token \"x\" {\n  role = \"admin\"\n  secret = [%q]\n}\n", inFile),
		fmt.Sprintf("token \"x\" {\n  role = \"admin\"\n  secret = %q\n}\ntoken \"y\" {\n  role = \"admin\"\n  secret = %q\n}\n", inFile, inFile),
	} {
		if err := os.WriteFile(broken, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, code := h.Run(t, "config", "check", "--config", broken)
		if code == 0 {
			t.Errorf("no mistake is found in\n%s", text)
		}
		fmt.Fprintln(&seen, out)
	}
	h.Stop(t)
	seen.WriteString(h.Log())
	if !strings.Contains(seen.String(), "plugin started") {
		t.Fatal("nothing was seen")
	}
	for _, secret := range []string{inFile, inEnv} {
		if at := strings.Index(seen.String(), secret); at >= 0 {
			t.Errorf("a secret is shown: ...%s", seen.String()[max(0, at-200):min(at+100, seen.Len())])
		}
	}
	for line := range strings.Lines(h.Log()) {
		if strings.Contains(line, wrong) {
			t.Errorf("what a caller took for a secret is logged: %s", line)
		}
	}
}
