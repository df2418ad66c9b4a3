package pgtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/internal/debian"
)

// Options say how a server is to be.
type Options struct {
	Settings map[string]string // of postgresql.conf
}

// patience is how long a server may take to start or to stop: a busy machine takes its time.
const patience = 60 * time.Second

// Server is a PostgreSQL. Its methods that return errors may be called from any goroutine, one at a time.
type Server struct {
	keeper   *keeper
	programs programs
	dir      string
	settings map[string]string
	port     int
	shared   bool

	mu  sync.Mutex
	cmd *exec.Cmd // nil while it is stopped

	databases int
	place     string // of new databases, in the words of CREATE DATABASE
}

var shared = sync.OnceValues(func() (*Server, error) {
	s, err := create(map[string]string{
		"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off", // nobody kills this one
		"max_connections": "300", // many tests at once, each with a pool
	})
	if err == nil {
		s.shared = true
	}
	return s, err
})

// Shared gives the one server that all tests of this process share. A test that stops it, or changes its settings, wants its own.
func Shared(t testing.TB) *Server {
	t.Helper()
	_, err := postgres()
	debian.Need(t, "PostgreSQL", err)
	s, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Start gives a test a server of its own, which ends with the test. It keeps what it promised even when it is killed.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	_, err := postgres()
	debian.Need(t, "PostgreSQL", err)
	s, err := create(o.Settings)
	if err != nil {
		t.Fatal(err)
	}
	endWith(t, s)
	return s
}

// create makes an empty server and starts it. On failure nothing of it is left.
func create(settings map[string]string) (*Server, error) {
	p, err := postgres()
	if err != nil {
		return nil, err
	}
	k, err := keeping()
	if err != nil {
		return nil, err
	}
	s := &Server{keeper: k, programs: p, settings: settings}
	if s.dir, err = k.folder(); err != nil {
		return nil, err
	}
	if err := errors.Join(s.initialize(), s.configure()); err != nil {
		return nil, err
	}
	if err := s.Resume(); err != nil {
		return nil, err
	}
	if err := s.Exec("CREATE ROLE " + role + " LOGIN PASSWORD '" + password + "'"); err != nil {
		return nil, errors.Join(err, s.Stop(Immediate))
	}
	return s, nil
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// initialize makes the data directory. Text sorts by a language where the version allows it, because a statement that forgets to
// compare bytes must be caught.
func (s *Server) initialize() error {
	args := []string{"-D", s.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions"}
	if versionOf(s.programs.bin) >= 15 {
		args = append(args, "--locale-provider=icu", "--icu-locale=en-US")
	}
	if err := s.keeper.run(s.programs, s.dir, "initdb", args...); err != nil {
		return err
	}
	access := "local all all trust\nlocal replication all trust\nhost all all 127.0.0.1/32 scram-sha-256\n"
	return os.WriteFile(filepath.Join(s.data(), "pg_hba.conf"), []byte(access), 0o600)
}

// configure writes the settings. Those that the server itself is told later (ALTER SYSTEM) come after them.
func (s *Server) configure() error {
	all := map[string]string{
		"listen_addresses": "127.0.0.1", "unix_socket_directories": s.dir, "shared_buffers": "32MB",
		"password_encryption": "scram-sha-256", "log_line_prefix": "%m [%p] ", "max_wal_size": "256MB", "min_wal_size": "32MB",
	}
	maps.Copy(all, s.settings)
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&text, "%s = '%s'\n", name, strings.ReplaceAll(all[name], "'", "''"))
	}
	return os.WriteFile(filepath.Join(s.data(), "postgresql.conf"), []byte(text.String()), 0o600)
}

// Shutdown is a way to stop.
type Shutdown syscall.Signal

const (
	Fast      = Shutdown(syscall.SIGINT)  // sessions are ended, everything is written
	Immediate = Shutdown(syscall.SIGQUIT) // as after a crash
)

// Resume starts a server that was stopped, at the same address; it returns when the server takes connections.
func (s *Server) Resume() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil {
		return errors.New("the server runs already")
	}
	for range 10 {
		chosen := s.port
		if chosen == 0 {
			chosen = freePort()
		}
		ready, err := s.start(chosen)
		if err != nil {
			return err
		}
		if ready {
			s.port = chosen
			return nil
		}
		if s.port != 0 {
			break
		}
	}
	return fmt.Errorf("PostgreSQL does not start:\n%s", tail(s.dir))
}

// freePort takes one below those that the kernel gives to clients, so that it is free again after a restart.
func freePort() int {
	for {
		port := 15000 + rand.IntN(17000)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil && l.Close() == nil {
			return port
		}
	}
}

// start starts the process and waits until it takes connections; it is not ready when it ended first.
func (s *Server) start(port int) (ready bool, err error) {
	cmd, log, err := s.keeper.command(s.programs, s.dir, "postgres", "-D", s.data(), "-p", strconv.Itoa(port))
	if err != nil {
		return false, err
	}
	defer log.Close()
	if err := cmd.Start(); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil && !ended(cmd.Process.Pid) {
		if conn, err := pgx.Connect(ctx, s.superuser(port, "postgres")); err == nil {
			s.cmd = cmd
			return true, conn.Close(ctx)
		}
		<-tick.C
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return false, ctx.Err()
}

// Stop ends the server. One that is not running is left as it is.
func (s *Server) Stop(how Shutdown) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return nil
	}
	if err := s.cmd.Process.Signal(syscall.Signal(how)); err != nil {
		return err
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !ended(s.cmd.Process.Pid); <-tick.C {
		if time.Now().After(end) {
			return fmt.Errorf("PostgreSQL does not stop:\n%s", tail(s.dir))
		}
	}
	_ = s.cmd.Wait()
	s.cmd = nil
	return nil
}

// Kill ends every process of the server at once, as a failing machine does.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return nil
	}
	if err := s.cmd.Process.Kill(); err != nil {
		return err
	}
	_ = s.cmd.Wait()
	s.cmd = nil
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); ; <-tick.C {
		rest := workingIn(s.data())
		if len(rest) == 0 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("processes %v do not end", rest)
		}
		for _, pid := range rest {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
