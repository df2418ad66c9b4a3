package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/google/renameio/v2"

	"holdfast/adapters/httpapi"
	"holdfast/internal/exitcode"
)

// exportCommand is `holdfast export`.
type exportCommand struct {
	Family string `placeholder:"NAME" help:"Only queue or only manifest."`
	Stamps bool   `help:"With a member Stamp in each line: what the record's first write fixed."`
	Output string `short:"o" placeholder:"FILE" help:"Write to this file, which appears only when it is whole."`
}

func (exportCommand) Help() string {
	return "Writes the whole history as {Action, Settings} lines, which `holdfast ingest` takes back, in the order of their keys."
}

func (c exportCommand) Run(in *invocation) error {
	host, err := in.client()
	if err != nil {
		return err
	}
	query := url.Values{}
	if c.Family != "" {
		query.Set("family", c.Family)
	}
	if c.Stamps {
		query.Set("stamps", "true")
	}
	path := "/v1/export?" + query.Encode()
	if c.Output == "" || c.Output == "-" {
		_, err := host.export(in.ctx, path, in.stdout)
		return err
	}
	file, err := renameio.NewPendingFile(c.Output, renameio.WithPermissions(0o600))
	if err != nil {
		return exitcode.With(exitcode.Environment, err)
	}
	defer file.Cleanup() //nolint:errcheck // of what is not whole nothing stays
	rows, err := host.export(in.ctx, path, file)
	if err != nil {
		return err
	}
	if err := file.CloseAtomicallyReplace(); err != nil {
		return exitcode.With(exitcode.Environment, err)
	}
	fmt.Fprintf(in.stderr, "%s in %s\n", counted(rows, "line"), clean(c.Output))
	return nil
}

// export copies an export and fails unless it is whole.
func (c *client) export(ctx context.Context, path string, to io.Writer) (rows int64, err error) {
	r, err := c.request(ctx, http.MethodGet, path, nil)
	if err != nil {
		return 0, err
	}
	got, err := c.http.Do(r)
	if err != nil {
		return 0, c.unreachable(err)
	}
	defer got.Body.Close()
	if got.StatusCode != http.StatusOK {
		text, err := io.ReadAll(io.LimitReader(got.Body, 1<<20))
		if err != nil {
			return 0, c.unreachable(err)
		}
		return 0, c.refusal(got.StatusCode, text)
	}
	var end lastLine
	_, err = io.Copy(io.MultiWriter(to, &end), got.Body)
	if err == nil && got.Trailer.Get(httpapi.RowsTrailer) == strconv.FormatInt(end.lines, 10) {
		return end.lines, nil
	}
	if fault := end.fault(); fault != nil {
		return end.lines, fault
	}
	if err == nil {
		err = errors.New("the end is missing")
	}
	return end.lines, exitcode.With(exitcode.Environment, fmt.Errorf("the export was cut after %s: %w", counted(end.lines, "line"), err))
}

// lastLine counts the lines that pass and keeps the beginning of the last one.
type lastLine struct {
	lines int64
	text  []byte
	over  bool // the line in text is complete
}

const lastLineKept = 4 << 10

func (l *lastLine) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		if l.over {
			l.text, l.over = l.text[:0], false
		}
		part := rest
		if end := bytes.IndexByte(rest, '\n'); end >= 0 {
			part, rest = rest[:end], rest[end+1:]
			l.lines++
			l.over = true
		} else {
			rest = nil
		}
		l.text = append(l.text, part[:min(len(part), lastLineKept-len(l.text))]...)
	}
	return len(p), nil
}

// fault is the error that a host put in the place of the rest, nil for none.
func (l *lastLine) fault() error {
	var last struct{ Error *envelope }
	if err := json.Unmarshal(l.text, &last); err == nil && last.Error != nil {
		return last.Error.fault()
	}
	return nil
}
