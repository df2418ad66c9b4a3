package pgtest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/debian"
)

// pgbouncer takes the machine's PgBouncer, or unpacks Debian's.
var pgbouncer = sync.OnceValues(func() (programs, error) {
	for _, path := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if found, err := exec.LookPath(path); err == nil {
			return programs{bin: filepath.Dir(found)}, nil
		}
	}
	root, err := unpacked("pgbouncer", func(root string) bool { return executable(filepath.Join(root, "usr/sbin/pgbouncer")) })
	return programs{bin: filepath.Join(root, "usr/sbin"), libraries: debian.Libraries(root)}, err
})

// Bouncer is a PgBouncer that stands before a server and gives its sessions away for one transaction at a time. It keeps no prepared
// statements.
type Bouncer struct {
	port int
	dir  string
	cmd  *exec.Cmd
}

// Addr is where it listens.
func (b *Bouncer) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(b.port)) }

// StartBouncer starts a PgBouncer that opens at most some sessions per database. It ends with the test.
func StartBouncer(t testing.TB, s *Server, sessions int) *Bouncer {
	t.Helper()
	p, err := pgbouncer()
	debian.Need(t, "PgBouncer", err)
	b := &Bouncer{}
	if b.dir, err = s.keeper.folder(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("PgBouncer said:\n%s", tail(b.dir))
		}
		if b.cmd != nil {
			_ = b.cmd.Process.Signal(syscall.SIGTERM)
			_ = b.cmd.Wait()
		}
		if err := os.RemoveAll(b.dir); err != nil {
			t.Error(err)
		}
	})
	for range 10 {
		b.port = freePort()
		if err := b.configure(s, sessions); err != nil {
			t.Fatal(err)
		}
		ready, err := b.start(s.keeper, p)
		if err != nil {
			t.Fatal(err)
		}
		if ready {
			return b
		}
	}
	t.Fatalf("PgBouncer does not start:\n%s", tail(b.dir))
	return nil
}

func (b *Bouncer) configure(s *Server, sessions int) error {
	users := filepath.Join(b.dir, "users")
	text := fmt.Sprintf(`[databases]
* = host=127.0.0.1 port=%d
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = scram-sha-256
auth_file = %s
pool_mode = transaction
default_pool_size = %d
max_client_conn = 500
`, s.port, b.port, users, sessions)
	var all []error
	for path, text := range map[string]string{
		users: fmt.Sprintf("%q %q\n", role, password), b.config(): text,
	} {
		all = append(all, os.WriteFile(path, []byte(text), 0o600), s.keeper.own(path))
	}
	return errors.Join(all...)
}

func (b *Bouncer) config() string { return filepath.Join(b.dir, "pgbouncer.ini") }

// start waits until somebody listens; it is not ready when the process ended first.
func (b *Bouncer) start(k *keeper, p programs) (ready bool, err error) {
	cmd, log, err := k.command(p, b.dir, "pgbouncer", b.config())
	if err != nil {
		return false, err
	}
	defer log.Close()
	if err := cmd.Start(); err != nil {
		return false, err
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); time.Now().Before(end) && !ended(cmd.Process.Pid); <-tick.C {
		if conn, err := net.Dial("tcp", b.Addr()); err == nil {
			b.cmd = cmd
			return true, conn.Close()
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return false, nil
}
