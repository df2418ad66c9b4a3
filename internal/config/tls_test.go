package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/internal/certtest"
	"holdfast/internal/config"
)

func TestFilesOfTLSAreLookedAtAndTheirLineIsTold(t *testing.T) {
	t.Parallel()
	good, other := certtest.New(t, "holdfast.example"), certtest.New(t, "holdfast.example")
	torn := filepath.Join(t.TempDir(), "torn.pem")
	if err := os.WriteFile(torn, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, cert, key, ca, line, wrong string }{
		{"a pair and an authority", good.Cert, good.Key, good.Authority, "", ""},
		{"a certificate that is not there", "/nowhere.crt", good.Key, good.Authority, ":2:", "/nowhere.crt"},
		{"a key that is not there", good.Cert, "/nowhere.key", good.Authority, ":3:", "/nowhere.key"},
		{"the key of another certificate", good.Cert, other.Key, good.Authority, ":2:", "Private key does not match"},
		{"a certificate that is none", torn, good.Key, good.Authority, ":2:", "Failed to find any PEM data"},
		{"an authority that is none", good.Cert, good.Key, torn, ":7:", "no certificate in PEM form"},
		{"an authority that is not there", good.Cert, good.Key, "/nowhere.ca", ":7:", "/nowhere.ca"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := load(t, "holdfast.hcl", "tls {\n  cert = \""+c.cert+"\"\n  key = \""+c.key+"\"\n}\nmesh {\n  join = \"https://hub\"\n  join_ca = \""+c.ca+"\"\n}\n",
				config.Input{LookupEnv: environment(nil)})
			err := cfg.Err(cfg.CheckFiles())
			switch {
			case c.wrong == "" && err != nil:
				t.Error(err)
			case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.line) || !strings.Contains(err.Error(), c.wrong)):
				t.Errorf("it is told %v", err)
			}
			if !strings.HasPrefix(cfg.URL(), "https://127.0.0.1:") {
				t.Errorf("clients are sent to %s", cfg.URL())
			}
		})
	}
}

func TestAFileOfTLSMayBeNamedInTheEnvironment(t *testing.T) {
	t.Parallel()
	cfg, diags := config.Load(config.Input{LookupEnv: environment(map[string]string{"HOLDFAST_TLS_CERT": "/nowhere.crt"})})
	if err := cfg.Err(diags); err == nil || !strings.Contains(err.Error(), "certificate without a key (from env HOLDFAST_TLS_CERT)") {
		t.Errorf("a certificate without a key is told as %v", err)
	}
}
