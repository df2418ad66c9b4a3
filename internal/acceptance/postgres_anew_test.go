package acceptance

import (
	"fmt"
	"net/url"
	"path"
	"strings"
	"testing"

	"holdfast/internal/e2e"
	"holdfast/internal/pgtest"
)

// A database of two hosts that was lost and made anew is filled by the first one that finds it. The other one is told what it meets, and
// what to do.

func TestTheSecondHostOfADatabaseThatWasMadeAnewSaysWhoseHistoryItFinds(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	dsn := server.Database(t)
	first, second := onShared(t, dsn), onShared(t, dsn)
	client := second.Client()
	defer client.Close()
	client.Do(t, "QP_UpsertWorkItem", item("of the second", ``))
	first.AwaitCopied(t)
	second.AwaitCopied(t)
	second.Kill()
	second.Gone(t)
	place, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	name := path.Base(place.Path)
	if err := server.Exec("DROP DATABASE "+name+" WITH (FORCE)", "CREATE DATABASE "+name+" OWNER holdfast"); err != nil {
		t.Fatal(err)
	}
	other := first.Client()
	defer other.Close()
	other.Do(t, "QP_UpsertWorkItem", item("of the first", ``))
	e2e.Await(t, "the first host has filled it", func() error {
		b, err := first.Backend(t.Context(), "local")
		if err == nil && b.State != "bootstrapped" {
			err = fmt.Errorf("it is %+v", b)
		}
		return err
	})
	passed(t, first)
	second.Launch(t)
	e2e.Await(t, "the second host says what it finds", func() error {
		b, err := second.Backend(t.Context(), "local")
		if err == nil && (b.State != "error" || !strings.Contains(b.Detail, "nothing of it is this host's, but what the host ") || !strings.HasPrefix(b.Remedy, "run `holdfast local accept --adopt`")) {
			err = fmt.Errorf("it is %+v", b)
		}
		return err
	})
	must(t, second, "local", "accept", "--adopt")
	passed(t, second)
	for _, hash := range []string{"of the first", "of the second"} {
		e2e.Await(t, hash, func() error {
			if status, answer := get(t, second, "/v1/work-items/"+url.PathEscape(hash)); status != 200 {
				return fmt.Errorf("it is answered %d %s", status, answer)
			}
			return nil
		})
	}
}
