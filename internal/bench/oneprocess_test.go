package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"testing"

	"holdfast/internal/workload"
	"holdfast/ports"
)

// The one-process server: net/http and SQLite group commit and nothing else. It is this test binary, started again.

// serveOne names the environment variable with the data directory of the server that this process shall be.
const serveOne = "HOLDFAST_BENCH_SERVE_ONE"

type waiting struct {
	writes []workload.Write
	done   chan error
}

// oneProcess serves until its input ends. It prints where.
func oneProcess(dir string) error {
	f, err := openFile(dir)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	queue := make(chan waiting, workload.BareBatch)
	go groupCommit(f, queue)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := take(r, queue); err != nil {
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

// take puts a call into the next group and waits for its commit.
func take(r *http.Request, queue chan waiting) error {
	body := make([]byte, r.ContentLength)
	if _, err := io.ReadFull(r.Body, body); err != nil {
		return err
	}
	e, err := entryOf(body)
	if err != nil {
		return err
	}
	e.EventGUID = newGUID()
	writes, err := workload.Writes([]ports.Entry{e}, benchHost)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	queue <- waiting{writes, done}
	return <-done
}

// groupCommit writes what waits as one transaction, as often as it can.
func groupCommit(f *workload.Bare, queue chan waiting) {
	for first := range queue {
		group := []waiting{first}
		for more := true; more && len(group) < workload.BareBatch; {
			select {
			case next := <-queue:
				group = append(group, next)
			default:
				more = false
			}
		}
		var writes []workload.Write
		for i := range group {
			writes = append(writes, group[i].writes...)
		}
		err := f.Run(context.Background(), writes)
		for _, one := range group {
			one.done <- err
		}
	}
}

// startOne starts a server and gives its URL, its process and the way to stop it.
func startOne(b *testing.B, dir string) (url string, pid int, stop func()) {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), serveOne+"="+dir)
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
	return "http://" + string(line), cmd.Process.Pid, func() {
		_ = in.Close()
		_ = cmd.Wait()
	}
}
