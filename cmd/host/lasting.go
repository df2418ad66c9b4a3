package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"golang.org/x/term"

	"holdfast/core"
	"holdfast/internal/exitcode"
)

// Some orders take minutes. The host tells how far it is, line by line, and its last line has the outcome. An interrupt ends
// the work in the host, too.

// far shows how far a work is, on a terminal only.
type far struct {
	out  *os.File // nil: nobody looks
	what string   // what became of the records that Changed counts
}

func (in *invocation) far(what string) far { return far{in.terminal(), what} }

// terminal is standard error, if a person looks at it.
func (in *invocation) terminal() *os.File {
	f, ok := in.stderr.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return f
}

const clearLine = "\r\x1b[K"

func (f far) tell(p core.Progress) {
	if f.out != nil {
		fmt.Fprintf(f.out, "%s%s: %s, %d %s", clearLine, clean(string(p.Family)), counted(p.Looked, "record"), p.Changed, f.what)
	}
}

func (f far) end() {
	if f.out != nil {
		fmt.Fprint(f.out, clearLine)
	}
}

// last gives an order that may take long and takes its outcome apart; the outcome as it came is for --json.
func (c *client) last(ctx context.Context, path string, order any, show far, into any) (answer []byte, err error) {
	text, err := json.Marshal(order)
	if err != nil {
		return nil, err
	}
	r, err := c.request(ctx, http.MethodPost, path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	got, err := c.http.Do(r)
	if err != nil {
		return nil, c.interrupted(ctx, err)
	}
	defer got.Body.Close()
	defer show.end()
	lines := bufio.NewReaderSize(got.Body, 64<<10)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("the outcome is missing")
			}
			return nil, c.interrupted(ctx, err)
		}
		var far struct{ Progress *core.Progress }
		if err := json.Unmarshal(line, &far); err != nil {
			return nil, c.foreign()
		}
		if far.Progress != nil {
			show.tell(*far.Progress)
			continue
		}
		return c.decode(into)(line, c.refusal(got.StatusCode, line))
	}
}

// interrupted is the error of an order whose outcome did not come.
func (c *client) interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return exitcode.With(exitcode.Environment, errors.New("interrupted; the same command begins again, or goes on where it can"))
	}
	return c.unreachable(err)
}
