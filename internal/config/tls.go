package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// TLS is what the listener shows of itself: the files of a certificate, with those of its authorities behind it, and of its
// key, both PEM. Without them the listener speaks plain HTTP.
type TLS struct {
	Cert string
	Key  string
}

// On says whether the listener speaks TLS.
func (t TLS) On() bool { return t.Cert != "" }

// path takes the name of a file as it is; whether it can be read is looked at when it is needed.
func path(field func(*Config) *string) func(*Config, string) error {
	return func(c *Config, text string) error {
		*field(c) = text
		return nil
	}
}

// checkTLS finds halves: a certificate without its key, and an authority that nothing is held against.
func (c *Config) checkTLS() (diags hcl.Diagnostics) {
	for _, half := range []struct{ name, value, other, missing string }{
		{"tls.cert", c.TLS.Cert, c.TLS.Key, "certificate without a key"}, {"tls.key", c.TLS.Key, c.TLS.Cert, "key without a certificate"},
	} {
		if half.value != "" && half.other == "" {
			from := c.places[half.name]
			diags = append(diags, problem(from.rng, from.from(half.missing), "TLS needs both, cert and key, each the path of a PEM file.")...)
		}
	}
	if c.Mesh.JoinCA != "" && !strings.HasPrefix(c.Mesh.Join, "https://") {
		from := c.places["mesh.join_ca"]
		diags = append(diags, problem(from.rng, from.from("no certificate to hold it against"),
			`Only a hub that is joined by https shows a certificate; write join = "https://...", or leave join_ca out.`)...)
	}
	return diags
}

// CheckFiles finds what is wrong with the certificates and the key that the file names, as they are now.
func (c *Config) CheckFiles() (diags hcl.Diagnostics) {
	wrong := func(name string, err error) {
		from := c.places[name]
		diags = append(diags, problem(from.rng, from.from("unusable file in "+name), "%s", sentence(err))...)
	}
	if c.TLS.On() {
		if _, err := os.ReadFile(c.TLS.Cert); err != nil {
			wrong("tls.cert", err)
		} else if _, err := os.ReadFile(c.TLS.Key); err != nil {
			wrong("tls.key", err)
		} else if _, err := tls.LoadX509KeyPair(c.TLS.Cert, c.TLS.Key); err != nil {
			wrong("tls.cert", errors.New(strings.TrimPrefix(err.Error(), "tls: ")))
		}
	}
	if c.Mesh.JoinCA != "" {
		if _, err := Authorities(c.Mesh.JoinCA); err != nil {
			wrong("mesh.join_ca", err)
		}
	}
	return diags
}

// Authorities are those that the system trusts, and those in a PEM file.
func Authorities(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool, err := x509.SystemCertPool()
	if err != nil { // a system without any
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, errors.New(file + " has no certificate in PEM form")
	}
	return pool, nil
}
