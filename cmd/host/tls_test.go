package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"holdfast/adapters/httpapi"
	"holdfast/internal/certtest"
	"holdfast/internal/config"
	"holdfast/internal/exitcode"
)

// secured serves a stand-in by TLS on a port of this machine.
func secured(t *testing.T, files certtest.Files) (address string) {
	t.Helper()
	api, err := httpapi.New(httpapi.Config{Host: &standIn{}, Loopback: true, Logger: hclog.NewNullLogger()})
	if err != nil {
		t.Fatal(err)
	}
	shown, err := openCertificate(config.TLS{Cert: files.Cert, Key: files.Key}, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := api.Server()
	served := make(chan error, 1)
	go func() { served <- server.Serve(shown.over(listener)) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("it ended with %v", err)
		}
	})
	return listener.Addr().String()
}

func TestCommandsAskForACertificateThatTheyTrust(t *testing.T) {
	t.Parallel()
	files, others := certtest.New(t, "127.0.0.1"), certtest.New(t, "127.0.0.1")
	address := secured(t, files)
	file := filepath.Join(t.TempDir(), "a.ndjson")
	if err := os.WriteFile(file, []byte(actionLine(1)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	at(t, "https://"+address, "ingest", file, "--ca", files.Authority).wants(t, exitcode.OK, "1 sent, 0 failed")
	at(t, "https://"+address, "ingest", file).wants(t, exitcode.Environment, "is not trusted", "--ca or HOLDFAST_CA")
	at(t, "https://"+address, "ingest", file, "--ca", others.Authority).wants(t, exitcode.Environment, "is not trusted")
	at(t, "https://"+address, "ingest", file, "--ca", file).wants(t, exitcode.Usage, "--ca", "no certificate in PEM form")
	at(t, "http://"+address, "ingest", file).wants(t, exitcode.Environment, "https")
}

func TestCommandsKnowTheCertificateThatIsConfigured(t *testing.T) {
	t.Parallel()
	files := certtest.New(t, "history.example") // a name that this machine does not reach it by
	address := secured(t, files)
	for name, c := range map[string]struct {
		shown certtest.Files
		code  int
		says  string
	}{
		"its own":      {files, exitcode.OK, "1 sent, 0 failed"},
		"another one ": {certtest.New(t, "history.example"), exitcode.Environment, "it shows another certificate than the configured one"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			text := fmt.Sprintf("listen = %q\ntls {\n  cert = %q\n  key = %q\n}\n", address, c.shown.Cert, c.shown.Key)
			conf, file := filepath.Join(dir, "holdfast.hcl"), filepath.Join(dir, "a.ndjson")
			if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(actionLine(1)+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			runProgram(t, nil, "ingest", file, "--config", conf).wants(t, c.code, c.says)
		})
	}
}

// A certificate that was renewed is shown a second later, and one that came half is not.
func TestARenewedCertificateIsShownWithoutARestart(t *testing.T) {
	t.Parallel()
	files := certtest.New(t, "a.example")
	next, broken := certtest.New(t, "b.example"), certtest.New(t, "c.example")
	said := &strings.Builder{}
	shown, err := openCertificate(config.TLS{Cert: files.Cert, Key: files.Key}, hclog.New(&hclog.LoggerOptions{Output: said}))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	shown.clock = func() time.Time { return now }
	put := func(from, to string) {
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to+".new", text, 0o600)
		}
		if err == nil {
			err = os.Rename(to+".new", to)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	is := func(what string, leaf *x509.Certificate) {
		t.Helper()
		pair, err := shown.show(&tls.ClientHelloInfo{})
		if err != nil || !pair.Leaf.Equal(leaf) {
			t.Errorf("%s: %v is shown, %v", what, pair.Leaf.DNSNames, err)
		}
	}
	is("at the start", files.Leaf)
	put(next.Cert, files.Cert)
	is("at once", files.Leaf)
	now = now.Add(lookEvery)
	is("while its key is missing", files.Leaf)
	put(next.Key, files.Key)
	now = now.Add(lookEvery)
	is("a second later", next.Leaf)
	put(broken.Key, files.Key)
	for range 3 {
		now = now.Add(lookEvery)
		is("with the key of another one", next.Leaf)
	}
	if err := os.Remove(files.Cert); err != nil {
		t.Fatal(err)
	}
	now = now.Add(lookEvery)
	is("with no certificate at all", next.Leaf)
	if n := strings.Count(said.String(), "cannot be used"); n != 3 {
		t.Errorf("three mistakes were told %d times:\n%s", n, said)
	}
}
