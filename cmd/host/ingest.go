package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"holdfast/adapters/httpapi"
	"holdfast/internal/exitcode"
)

// ingestCommand is `holdfast ingest`: it sends files of actions to a running host, line by line as they stand, and counts the
// answers.
type ingestCommand struct {
	Files  []string `arg:"" name:"file" type:"existingfile" help:"A file of {Action, Settings} lines, also gzipped; - is standard input."`
	Stream string   `placeholder:"NAME" help:"Name of the stream, by which a file that is sent again is known: its events are not doubled. Without it the file's base name; standard input has none."`
}

func (ingestCommand) Help() string {
	return "Sending a file again is safe. The exit code is 1 when a line failed, and 3 when the host stopped answering before every line had its answer."
}

// shownFailures is how many failed lines are told one by one.
const shownFailures = 20

func (c ingestCommand) Run(in *invocation) error {
	host, err := in.client()
	if err != nil {
		return err
	}
	var total tally
	for _, name := range c.Files {
		i := ingest{in: in, host: host, name: name, stream: c.Stream, tally: newTally()}
		err := i.file()
		if len(c.Files) > 1 && (err == nil || i.sent > 0) {
			fmt.Fprintf(in.stdout, "%s: %s\n", clean(name), i.summary())
		}
		total.add(&i.tally)
		if err != nil {
			fmt.Fprintln(in.stdout, total.summary())
			return err
		}
	}
	fmt.Fprintln(in.stdout, total.summary())
	if total.failed > 0 {
		return exitcode.With(exitcode.Failed, fmt.Errorf("%s failed", counted(total.failed, "line")))
	}
	return nil
}

// ingest is the sending of one file.
type ingest struct {
	in     *invocation
	host   *client
	name   string
	stream string
	tally
}

func (i *ingest) file() error {
	source, err := openSource(i.name, i.in.stdin)
	if err != nil {
		return exitcode.With(exitcode.Environment, err)
	}
	defer source.Close()
	bar := i.in.progress(filepath.Base(i.name), source.size)
	defer bar.end()
	lines := &lineCounter{in: source, moved: bar.at(source)}

	ctx, cancel := context.WithCancel(i.in.ctx)
	defer cancel()
	r, err := i.host.request(ctx, http.MethodPost, "/v1/actions", lines)
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-ndjson")
	if name := i.streamName(); name != "" {
		r.Header.Set(httpapi.StreamHeader, name)
	}
	got, err := i.host.http.Do(r)
	if err != nil {
		return i.broken(lines, i.host.unreachable(err))
	}
	defer got.Body.Close()
	if got.StatusCode != http.StatusOK {
		text, err := io.ReadAll(io.LimitReader(got.Body, 1<<20))
		if err != nil {
			return i.broken(lines, i.host.unreachable(err))
		}
		return i.host.refusal(got.StatusCode, text)
	}
	answers := bufio.NewReaderSize(got.Body, 64<<10)
	for {
		text, err := answers.ReadBytes('\n')
		if err != nil {
			if err == io.EOF && lines.settled() {
				return nil
			}
			return i.broken(lines, i.host.unreachable(err))
		}
		var answer envelope
		if json.Unmarshal(text, &answer) != nil {
			return i.host.foreign()
		}
		line, ok := lines.answered()
		if !ok { // an answer to no line tells why the stream ends
			return i.broken(lines, cmp.Or(answer.fault(), errors.New("an answer came to no line")))
		}
		i.count(line, &answer)
	}
}

// streamName is the name by which the host knows the file again.
func (i *ingest) streamName() string {
	name := i.stream
	if name == "" && i.name != "-" {
		name = strings.TrimSuffix(filepath.Base(i.name), ".gz") // zipped or not, it is the same stream
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, name)
}

// broken is the error of a file whose lines do not all have their answers.
func (i *ingest) broken(lines *lineCounter, cause error) error {
	sent, read := lines.progress()
	if read != nil {
		cause = read
	}
	if i.in.ctx.Err() != nil {
		cause = errors.New("interrupted")
	}
	if sent == 0 && i.sent == 0 && read == nil && errors.Is(cause, errUnreachable) {
		return cause
	}
	return exitcode.With(exitcode.Environment, fmt.Errorf("%s: %s answered, then it broke off: %w; what was answered is kept, and sending the file again is safe",
		clean(i.name), counted(i.sent, "line"), cause))
}

// count takes an answer to a line.
func (i *ingest) count(line int, answer *envelope) {
	failed := i.tally.count(answer)
	if !failed {
		return
	}
	if i.failed <= shownFailures {
		code := string(answer.Code)
		if code == "" {
			code = string(answer.Refused)
		}
		fmt.Fprintf(i.in.stderr, "%s:%d: %s: %s\n", clean(i.name), line, clean(code), brief(answer.Reason, 300))
	}
	if i.failed == shownFailures+1 {
		fmt.Fprintf(i.in.stderr, "%s: more lines fail; they are counted\n", clean(i.name))
	}
}

// tally counts answers by what became of their lines.
type tally struct {
	sent, failed int64
	outcomes     map[string]int64
}

func newTally() tally { return tally{outcomes: map[string]int64{}} }

// count takes an answer and says whether its line failed.
func (t *tally) count(a *envelope) (failed bool) {
	outcome := "stored"
	switch {
	case a.SetAside:
		outcome, failed = "set aside", true
	case a.Refused != "":
		outcome, failed = "refused as "+string(a.Refused), true
	case a.NotFound:
		outcome = "not found"
	case !a.Success && a.Code != "":
		outcome, failed = string(a.Code), true
	case !a.Success:
		outcome, failed = "not available", true
	case a.Deferred:
		outcome = "deferred"
	case a.AlreadyPresent:
		outcome = "already present"
	case a.AlreadyAbsent:
		outcome = "already absent"
	case a.Ignored:
		outcome = "ignored"
	case a.Expired:
		outcome = "expired"
	case a.Late:
		outcome = "late"
	case a.Seq == 0:
		outcome = "read"
	}
	t.sent++
	if failed {
		t.failed++
	}
	t.outcomes[outcome]++
	return failed
}

func (t *tally) add(other *tally) {
	if t.outcomes == nil {
		t.outcomes = map[string]int64{}
	}
	t.sent += other.sent
	t.failed += other.failed
	for outcome, n := range other.outcomes {
		t.outcomes[outcome] += n
	}
}

// summary is "4552 sent, 0 failed: 4000 stored, 552 already present", the most frequent first.
func (t *tally) summary() string {
	outcomes := slices.SortedFunc(maps.Keys(t.outcomes), func(a, b string) int {
		if t.outcomes[a] != t.outcomes[b] {
			return int(t.outcomes[b] - t.outcomes[a])
		}
		return strings.Compare(a, b)
	})
	parts := make([]string, len(outcomes))
	for i, outcome := range outcomes {
		parts[i] = fmt.Sprintf("%d %s", t.outcomes[outcome], clean(outcome))
	}
	text := fmt.Sprintf("%d sent, %d failed: %s", t.sent, t.failed, strings.Join(parts, ", "))
	return strings.TrimSuffix(text, ": ")
}
