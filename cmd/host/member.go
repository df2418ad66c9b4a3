package main

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/hashicorp/go-hclog"

	"holdfast/adapters/httpapi"
	"holdfast/adapters/mesh"
	"holdfast/core"
	"holdfast/internal/config"
	"holdfast/ports"
)

// membership is this host as a beacon of somebody else's hub, which keeps its history here. A nil membership joins nothing.
type membership struct {
	member *mesh.Member
	quit   context.CancelFunc
	ran    chan struct{} // closed when it is over
}

// join makes the membership that a configuration asks for; nothing is connected yet.
func join(cfg *config.Config, state ports.State, host *core.Host, log hclog.Logger) (*membership, error) {
	if cfg.Mesh.Join == "" {
		return nil, nil
	}
	who, err := state.Host()
	if err != nil {
		return nil, err
	}
	machine, _ := os.Hostname()
	var roots *x509.CertPool // of the system
	if cfg.Mesh.JoinCA != "" {
		if roots, err = config.Authorities(cfg.Mesh.JoinCA); err != nil {
			return nil, err
		}
	}
	member, err := mesh.NewMember(mesh.MemberConfig{
		URL: cfg.Mesh.Join, Name: cmp.Or(cfg.Mesh.As, "holdfast-"+who.Short()), HostID: cmp.Or(machine, "machine") + "/" + who.Short(), // tells two of one name apart
		User: cfg.Mesh.JoinUser, Password: cfg.Mesh.JoinPassword.Reveal(), JoinSecret: cfg.Mesh.JoinWith.Reveal(), Roots: roots,
		Core: mesh.Over(host), Logger: log,
	})
	if err != nil {
		return nil, err
	}
	return &membership{member: member}, nil
}

// start connects, and goes on doing so until rest.
func (m *membership) start() {
	if m == nil {
		return
	}
	ctx, quit := context.WithCancel(context.Background())
	m.quit, m.ran = quit, make(chan struct{})
	go func() {
		defer close(m.ran)
		_ = m.member.Run(ctx)
	}()
}

// goodbye begins to leave: the hub is told, and what is in hand is answered.
func (m *membership) goodbye() {
	if m != nil {
		m.quit()
	}
}

// rest waits until the hub was left, as far as ctx allows.
func (m *membership) rest(ctx context.Context) {
	if m == nil {
		return
	}
	select {
	case <-m.ran:
	case <-ctx.Done():
	}
}

// told is what the status says of it; nil for nothing.
func (m *membership) told() httpapi.Joined {
	if m == nil {
		return nil
	}
	return func() (any, string) {
		s := m.member.Status()
		notice := ""
		if s.Detail != "" {
			notice = "hub " + hubText(&s)
		}
		return s, notice
	}
}

// beside gives plugins the beacons of the joined hub with those of our own, which may be nil; nil where there are neither.
func (m *membership) beside(own *mesh.Hub) ports.Mesh {
	switch {
	case m != nil:
		return mesh.Together(own, m.member)
	case own != nil:
		return own
	}
	return nil
}

// hubText is a membership in one line.
func hubText(s *mesh.MemberStatus) string {
	return sentence(fmt.Sprintf("%s: %s as %s", s.Hub, s.State, s.Name), s.Detail, s.Remedy)
}
