// Package certtest makes certificates for tests: an authority of its own for each, and files as a configuration names them.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Files are a certificate with its key, and the authority that signed it, all PEM.
type Files struct {
	Cert, Key, Authority string
	Leaf                 *x509.Certificate
}

// New makes a certificate for names and addresses, in a folder of its own.
func New(t testing.TB, names ...string) Files {
	t.Helper()
	dir := t.TempDir()
	f := Files{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), Authority: filepath.Join(dir, "ca.crt")}
	authority := template("authority of " + t.Name())
	authority.IsCA, authority.BasicConstraintsValid, authority.KeyUsage = true, true, x509.KeyUsageCertSign
	authorityKey := newKey(t)
	signed, root := sign(t, authority, authority, authorityKey, authorityKey)
	write(t, f.Authority, "CERTIFICATE", signed)

	leaf := template("holdfast")
	leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			leaf.IPAddresses = append(leaf.IPAddresses, ip)
		} else {
			leaf.DNSNames = append(leaf.DNSNames, name)
		}
	}
	key := newKey(t)
	signed, f.Leaf = sign(t, leaf, root, key, authorityKey)
	write(t, f.Cert, "CERTIFICATE", signed)
	text, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, f.Key, "PRIVATE KEY", text)
	return f
}

func template(name string) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100))
	if err != nil {
		panic(err) // it never fails
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature,
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t testing.TB, what, by *x509.Certificate, key, byKey *ecdsa.PrivateKey) (signed []byte, parsed *x509.Certificate) {
	t.Helper()
	signed, err := x509.CreateCertificate(rand.Reader, what, by, &key.PublicKey, byKey)
	if err != nil {
		t.Fatal(err)
	}
	if parsed, err = x509.ParseCertificate(signed); err != nil {
		t.Fatal(err)
	}
	return signed, parsed
}

func write(t testing.TB, file, kind string, content []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600); err != nil {
		t.Fatal(err)
	}
}
