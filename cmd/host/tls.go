package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"holdfast/internal/config"
	"holdfast/ports"
)

// certificate is the one that the listener shows. Its files are looked at when somebody connects, at most once a second, and
// read again when they have changed; while the new ones do not fit together the old ones serve.
type certificate struct {
	files config.TLS
	log   hclog.Logger
	clock func() time.Time

	mu     sync.Mutex
	now    *tls.Certificate
	marks  [2]os.FileInfo // of the files when they were last read
	looked time.Time
}

// lookEvery is how often the files of a certificate are looked at, at most.
const lookEvery = time.Second

func openCertificate(files config.TLS, log hclog.Logger) (*certificate, error) {
	c := &certificate{files: files, log: log, clock: time.Now}
	return c, c.read()
}

// over puts TLS over a listener. Sockets are no matter of HTTP/2, so it is not offered.
func (c *certificate) over(listener net.Listener) net.Listener {
	return tls.NewListener(listener, &tls.Config{GetCertificate: c.show, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}})
}

// show gives the certificate to a handshake.
func (c *certificate) show(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.clock(); now.Sub(c.looked) >= lookEvery {
		c.looked = now
		if c.changed() {
			if err := c.read(); err != nil {
				c.log.Warn("the certificate has changed and cannot be used; the one before is shown on", "cert", c.files.Cert, "key", c.files.Key, "error", err)
			} else {
				c.log.Info("the certificate has changed", "cert", c.files.Cert, "until", c.now.Leaf.NotAfter)
			}
		}
	}
	return c.now, nil
}

func (c *certificate) marked() (marks [2]os.FileInfo) {
	for i, file := range []string{c.files.Cert, c.files.Key} {
		marks[i], _ = os.Stat(file) // nil for one that is not there
	}
	return marks
}

func (c *certificate) changed() bool {
	for i, mark := range c.marked() {
		before := c.marks[i]
		if (mark == nil) != (before == nil) || mark != nil && (!os.SameFile(mark, before) || mark.Size() != before.Size() || !mark.ModTime().Equal(before.ModTime())) {
			return true
		}
	}
	return false
}

func (c *certificate) read() error {
	c.marks = c.marked() // before they are read: what changes meanwhile is a change
	pair, err := tls.LoadX509KeyPair(c.files.Cert, c.files.Key)
	if err != nil {
		return ports.Wrap(ports.Invalid, "certificate", err)
	}
	c.now = &pair
	return nil
}

// trust is what a command believes of a host that it reaches by https: the authorities of the system and those of --ca, or,
// where the host is the one that is configured here, the very certificate that the configuration names.
func trust(ca string, own *config.Config) (*tls.Config, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12}
	if own != nil && ca == "" {
		if leaf := leafOf(own.TLS.Cert); leaf != nil {
			t.InsecureSkipVerify = true // its name and its authority do not count where it is known itself
			t.VerifyConnection = func(s tls.ConnectionState) error {
				if !bytes.Equal(s.PeerCertificates[0].Raw, leaf.Raw) {
					return errors.New("it shows another certificate than the configured one")
				}
				return nil
			}
			return t, nil
		}
	}
	if ca == "" {
		return t, nil
	}
	roots, err := config.Authorities(ca)
	t.RootCAs = roots
	return t, err
}

// leafOf is the certificate itself of a file; nil where it cannot be read.
func leafOf(file string) *x509.Certificate {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	block, text := pem.Decode(text)
	for block != nil && block.Type != "CERTIFICATE" {
		block, text = pem.Decode(text)
	}
	if block == nil {
		return nil
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil
	}
	return leaf
}
