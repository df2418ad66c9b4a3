package acceptance

import (
	"fmt"
	"net/url"
	"path"
	"testing"
	"time"

	"holdfast/internal/e2e"
	"holdfast/internal/pgtest"
)

// A database that is not where the dsn says is nothing that passes by itself: somebody has to see it, and an alarm looks for "error".

func TestABackendWhoseDatabaseIsNotThereNeedsSomebodyAndGoesOnByItselfThen(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	dsn, copyDSN := server.Database(t), server.Database(t)
	h := e2e.StartWith(t, e2e.Setup{
		Config: "backend \"postgres\" \"local\" {\n  local = true\n  dsn = env(\"TEST_DSN\")\n}\n" +
			"backend \"postgres\" \"reports\" {\n  dsn = env(\"TEST_COPY\")\n}\n",
		Env: []string{"TEST_DSN=" + dsn, "TEST_COPY=" + copyDSN},
	})
	client := h.Client()
	defer client.Close()
	client.Do(t, "QP_UpsertWorkItem", item("before", ``))
	h.AwaitEqual(t)
	rename := func(from, to string) {
		t.Helper()
		e2e.Await(t, "the database is called "+to, func() error {
			return server.Exec(
				fmt.Sprintf(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '%s'`, from),
				fmt.Sprintf(`ALTER DATABASE "%s" RENAME TO "%s"`, from, to))
		})
	}
	for _, c := range []struct{ backend, dsn string }{{"reports", copyDSN}, {"local", dsn}} {
		place, err := url.Parse(c.dsn)
		if err != nil {
			t.Fatal(err)
		}
		name := path.Base(place.Path)
		rename(name, name+"_elsewhere")
		client.Do(t, "QP_UpsertWorkItem", item("meanwhile "+c.backend, ``))
		state := func(want string) func() error {
			return func() error {
				b, err := h.Backend(t.Context(), c.backend)
				if err == nil && (b.State != want || (want == "error") != (b.Remedy != "")) {
					err = fmt.Errorf("%s is %+v", c.backend, b)
				}
				return err
			}
		}
		e2e.Await(t, c.backend+" needs somebody", state("error"))
		rename(name+"_elsewhere", name)
		began := time.Now()
		e2e.Await(t, c.backend+" is back", state("bootstrapped"))
		if took := time.Since(began); took > 45*time.Second {
			t.Errorf("%s was tried again after %s", c.backend, took)
		}
	}
	h.AwaitEqual(t)
	for _, hash := range []string{"before", "meanwhile reports", "meanwhile local"} {
		if status, _ := get(t, h, "/v1/work-items/"+url.PathEscape(hash)); status != 200 {
			t.Errorf("%s is answered %d", hash, status)
		}
	}
}
