package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast/internal/e2e"
	"holdfast/internal/pgtest"
)

// inPostgres is a host with backends, of which those of kind postgres are in a database of the test's own.
func inPostgres(t *testing.T, config string) *e2e.Host {
	t.Helper()
	return e2e.StartWith(t, e2e.Setup{Config: config, Env: []string{"TEST_DSN=" + pgtest.Shared(t).Database(t)}})
}

func TestTheRecordedStreamIsTheSameHistoryInPostgres(t *testing.T) {
	t.Parallel()
	host := inPostgres(t, `
backend "postgres" "local" {
  local = true
  dsn   = env("TEST_DSN")
}`)
	client := host.Client()
	defer client.Close()
	for pass := range 2 { // the second time adds nothing
		ingest(t, host)
		client.Settle(t)
		if got, want := client.Counts(t), recorded(t).model.Counts(); got != want {
			t.Errorf("pass %d gives %+v, want %+v", pass+1, got, want)
		}
	}
	e2e.Compare(t, client, recorded(t).model)
}

func TestEveryLineOfTheRecordedStreamIsAnsweredFromPostgresAsTheModelSays(t *testing.T) {
	t.Parallel()
	host := inPostgres(t, `
backend "postgres" "local" {
  local = true
  dsn   = env("TEST_DSN")
}`)
	client := host.Client()
	defer client.Close()
	recorded(t).checkAnswers(t, client)
}

func TestTheRecordedStreamIsBehindAPostgresThatFollows(t *testing.T) {
	t.Parallel()
	host := inPostgres(t, `
route = ["mirror", "local"]
backend "sqlite" "local" {
  local = true
}
backend "postgres" "mirror" {
  dsn = env("TEST_DSN")
}`)
	client := host.Client()
	defer client.Close()
	for range 2 {
		ingest(t, host)
		host.AwaitEqual(t)
		host.Verify(t, "local", "mirror")
	}
	client.Answered()
	e2e.Compare(t, client, recorded(t).model)
	if by := client.Answered(); by["mirror"] == 0 || len(by) != 1 {
		t.Errorf("reads are answered by %v, want the mirror alone", by)
	}
}

func TestTheRecordedStreamIsTheSameHistoryAfterACopyIntoPostgres(t *testing.T) {
	t.Parallel()
	source := e2e.Start(t)
	ingest(t, source)
	old := source.Client()
	defer old.Close()
	old.Settle(t)
	e2e.Compare(t, old, recorded(t).model)
	source.Stop(t)
	from := filepath.Join(t.TempDir(), "old.db")
	for _, suffix := range []string{"", "-wal"} {
		if text, err := os.ReadFile(source.File("local") + suffix); err == nil {
			if err := os.WriteFile(from+suffix, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}

	host := e2e.StartWith(t, e2e.Setup{Env: []string{"TEST_DSN=" + pgtest.Shared(t).Database(t), "TEST_OLD=" + from}, Config: `
backend "sqlite" "local" {
  local = true
}
backend "sqlite" "old" {
  path = env("TEST_OLD")
}
backend "postgres" "copied" {
  dsn = env("TEST_DSN")
}`})
	host.AwaitCopied(t)
	if out, code := host.Run(t, "copy", "--from", "old", "--to", "copied"); code != 0 {
		t.Fatalf("copy ends with %d: %s", code, out)
	}
	host.Verify(t, "old", "copied")
	host.Verify(t, "copied", "old")
}

func TestAWrongPasswordIsToldAndNeverShown(t *testing.T) {
	t.Parallel()
	const secret = "sEcReT-of-the-test"
	dsn := pgtest.DSN(pgtest.Shared(t).Addr(), "holdfast", secret, "postgres")
	host := e2e.StartWith(t, e2e.Setup{Waits: true, Env: []string{"TEST_DSN=" + dsn}, Config: `
backend "postgres" "local" {
  local = true
  dsn   = env("TEST_DSN")
}`})
	e2e.Await(t, "the status tells of the password", func() error {
		out, _ := host.Run(t, "status")
		if !strings.Contains(out, "wrong password") {
			return fmt.Errorf("it tells\n%s", out)
		}
		return nil
	})
	for _, args := range [][]string{{"status", "--json"}, {"backends"}, {"doctor"}, {"config", "show"}, {"config", "check"}} {
		if out, _ := host.Run(t, args...); strings.Contains(out, secret) {
			t.Errorf("%s shows the password:\n%s", args, out)
		}
	}
	if strings.Contains(host.Log(), secret) {
		t.Errorf("the log shows the password:\n%s", host.Log())
	}
}

func TestTheOriginalOfACopyThatRanGoesOnWithEverythingItHadAcknowledged(t *testing.T) {
	t.Parallel()
	setup := e2e.Setup{Env: []string{"TEST_DSN=" + pgtest.Shared(t).Database(t)}, Config: `
backend "postgres" "local" {
  local = true
  dsn   = env("TEST_DSN")
}`}
	original := e2e.StartWith(t, setup)
	client := original.Client()
	defer client.Close()
	write := func(client *e2e.Client, key string) e2e.Answer {
		return client.Do(t, "QP_UpsertWorkItem", fmt.Appendf(nil, `{"WorkItem":{"WorkItemHash":%q,"Status":"Pending"}}`, key))
	}
	write(client, "before")
	client.Settle(t)
	copied := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(copied, os.DirFS(original.Data())); err != nil { // while it runs
		t.Fatal(err)
	}

	setup.Data = copied
	clone := e2e.StartWith(t, setup) // the store takes it, for it knows no better
	if a := write(client, "waiting"); !a.Deferred {
		t.Errorf("the original's write is answered %+v, want that it waits", a)
	}
	e2e.Await(t, "the original says what to do", func() error {
		out, _ := original.Run(t, "status")
		if !strings.Contains(out, "do so in both") {
			return fmt.Errorf("it says\n%s", out)
		}
		return nil
	})
	if out, code := original.Run(t, "local", "accept"); code == 0 || !strings.Contains(out, "holdfast status") {
		t.Errorf("local accept ends with %d: %s", code, out)
	}
	for _, each := range []*e2e.Host{clone, original} {
		each.Stop(t)
		if out, code := each.Run(t, "local", "new-id"); code != 0 {
			t.Fatalf("local new-id ends with %d: %s", code, out)
		}
	}
	clone.Restart(t)
	original.Restart(t)
	theirs := clone.Client()
	defer theirs.Close()
	write(client, "by the original")
	write(theirs, "by the copy")
	client.Settle(t)
	for _, each := range []*e2e.Client{client, theirs} {
		if n := each.Counts(t).Items; n != 4 {
			t.Errorf("there are %d items, want 4", n)
		}
	}
}

// What another host that follows into the same database leaves there is its position. It would wait for a minute before its first one.
func TestAHostThatIsNotAloneInTheDatabaseOfAFollowerSaysSo(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Shared(t).Database(t)
	host := e2e.StartWith(t, e2e.Setup{Env: []string{"TEST_DSN=" + dsn}, Config: `
backend "sqlite" "local" {
  local = true
}
backend "postgres" "reports" {
  dsn = env("TEST_DSN")
}`})
	client := host.Client()
	defer client.Close()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	write := func(n int) {
		client.Do(t, "QP_UpsertWorkItem", fmt.Appendf(nil, `{"WorkItem":{"WorkItemHash":"w%d","Status":"Pending"}}`, n))
	}
	for n := range 3 {
		write(n)
		host.AwaitEqual(t)
		_, err := conn.Exec(t.Context(), `UPDATE "UVHoldfast" SET "Value" = $1 WHERE "Key" = 'Follower/Queue'`,
			fmt.Sprintf(`{"Epoch":"of another","Seqs":{"another host":%d}}`, n+1))
		if err != nil {
			t.Fatal(err)
		}
	}
	write(3)
	e2e.Await(t, "the host says that it is not alone", func() error {
		s, err := host.Backend(t.Context(), "reports")
		if err == nil && (!strings.Contains(s.Detail, "another host follows") || !strings.Contains(s.Remedy, "holdfast resync reports")) {
			err = fmt.Errorf("it says %+v", s)
		}
		return err
	})
	if out, code := host.Run(t, "resync", "reports"); code != 0 {
		t.Fatalf("resync ends with %d: %s", code, out)
	}
	host.AwaitEqual(t)
	host.Verify(t, "local", "reports")
}
