package acceptance

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"holdfast/internal/hostile"
)

// lifted ends every fault. Then every follower must become equal, with a person's help for the keys that it was found to refuse.
func (s *siege) lifted() {
	s.Helper()
	now := time.Now()
	for _, p := range s.programs {
		_ = p.End()
		_ = os.Chtimes(p.Path, now, now) // a changed file is tried at once
	}
	for _, f := range []hostile.Fault{hostile.NoFamilies, hostile.NoPowers} { // what it keeps and can, it says at its start
		s.host.Signal(s.Context(), string(f), syscall.SIGKILL)
	}
	deadline := time.Now().Add(5 * time.Minute)
	for {
		missing := s.unequal()
		if len(missing) == 0 {
			break
		}
		if time.Now().After(deadline) {
			s.Fatalf("these do not become equal: %v", missing)
		}
		for name := range missing {
			for _, family := range []string{"queue", "manifest"} {
				s.host.Run(s, "unsettled", "retry", "--backend", name, family, "--all")
			}
		}
		<-time.After(2 * time.Second)
	}
	for _, o := range s.ordeals {
		s.host.Verify(s, "local", string(o.fault))
	}
}

// unequal are the followers that lack something, or may.
func (s *siege) unequal() map[string]string {
	missing := map[string]string{}
	status, err := s.host.Status(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	for _, b := range status.Backends {
		for _, f := range b.Followers {
			if f.Phase != "ready" || f.Behind+uint64(f.Unsettled+f.InDoubt) > 0 {
				missing[b.Name] = fmt.Sprintf("%s %s, %d behind, %d unsettled, %d in doubt: %s", f.Family, f.Phase, f.Behind, f.Unsettled, f.InDoubt, f.Detail)
			}
		}
	}
	return missing
}
