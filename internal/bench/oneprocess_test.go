package bench

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"testing"
)

// The one-process server: net/http and SQLite group commit and nothing else. It is this test binary, started again.

// serveOne names the environment variable with the database file of the server that this process shall be.
const serveOne = "HOLDFAST_BENCH_SERVE_ONE"

type waiting struct {
	row  row
	done chan error
}

// oneProcess serves until its input ends. It prints where.
func oneProcess(path string) error {
	f, err := openFile(path)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	queue := make(chan waiting, bareBatch)
	go groupCommit(f, queue)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, r.ContentLength)
		_, err := io.ReadFull(r.Body, body)
		var decoded row
		if err == nil {
			decoded, err = decode(body)
		}
		if err == nil {
			done := make(chan error, 1)
			queue <- waiting{decoded, done}
			err = <-done
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"Available":true,"Success":true}`+"\n") // a client that is gone needs no answer
	})}
	fmt.Println(l.Addr())
	go func() { _ = server.Serve(l) }()
	_, _ = io.Copy(io.Discard, os.Stdin)
	return server.Close()
}

// groupCommit writes what waits as one transaction, as often as it can.
func groupCommit(f *file, queue chan waiting) {
	for first := range queue {
		group := []waiting{first}
		for more := true; more && len(group) < bareBatch; {
			select {
			case next := <-queue:
				group = append(group, next)
			default:
				more = false
			}
		}
		rows := make([]row, len(group))
		for i := range group {
			rows[i] = group[i].row
		}
		err := f.commit(rows)
		for _, one := range group {
			one.done <- err
		}
	}
}

// startOne starts a server and gives its URL and the way to stop it.
func startOne(b *testing.B, path string) (url string, stop func()) {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), serveOne+"="+path)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	line, _, err := bufio.NewReader(out).ReadLine()
	if err != nil {
		b.Fatal(err)
	}
	return "http://" + string(line), func() {
		_ = in.Close()
		_ = cmd.Wait()
	}
}
