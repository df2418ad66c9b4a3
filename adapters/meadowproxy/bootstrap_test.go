package meadowproxy

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/adapters/meadowproxy/stock"
	"holdfast/ports"
)

// manners are the engines that a databeacon can have behind it, as the stock one plays them.
var manners = map[string]stock.Options{
	"sqlite":            {Manner: stock.SQLite},
	"postgresql":        {Manner: stock.Postgres},
	"strict postgresql": {Manner: stock.Postgres, Strict: true},
	"mysql":             {Manner: stock.MySQL},
}

// inManners runs a test in each of them.
func inManners(t *testing.T, run func(t *testing.T, o stock.Options)) {
	t.Helper()
	for name, o := range manners {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o.Dir, o.Name = t.TempDir(), "db"
			run(t, o)
		})
	}
}

// theatre is a scene with a databeacon in it, and a seat at its first connection.
type theatre struct {
	*scene
	t  *testing.T
	db *stock.Databeacon
	at seat
}

func newTheatre(t *testing.T, o stock.Options, connections ...string) *theatre {
	t.Helper()
	db, err := stock.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	h := &theatre{scene: newScene(), t: t, db: db, at: seat{o.Name, 1, 1}}
	if len(connections) == 0 {
		connections = []string{"UV Store"}
	}
	for i, name := range connections {
		if _, err := db.AddConnection(name, fmt.Sprintf("%d.sqlite", i+1), true); err != nil {
			t.Fatal(err)
		}
	}
	h.does[o.Name] = db
	h.turn(func(is *ports.Beacons) { is.List = []ports.Beacon{databeacon(o.Name, 1)} })
	return h
}

// fit bootstraps a seat of the theatre.
func (h *theatre) fit(s seat) (*binding, error) {
	ctx, cancel := context.WithTimeout(h.t.Context(), 30*time.Second)
	defer cancel()
	return fit(ctx, h, s, 3, usualTimeout)
}

func (h *theatre) mustFit(s seat) *binding {
	h.t.Helper()
	b, err := h.fit(s)
	if err != nil {
		h.t.Fatal(err)
	}
	return b
}

func TestABootstrapMakesEverythingAndCanBeRepeated(t *testing.T) {
	t.Parallel()
	inManners(t, func(t *testing.T, o stock.Options) {
		h := newTheatre(t, o)
		first := h.mustFit(h.at)
		if string(first.way.engine) != string(o.Manner) || first.own.storeID == "" || first.own.version != ports.SchemaVersion {
			t.Errorf("engine %q, store %q, version %d", first.way.engine, first.own.storeID, first.own.version)
		}
		for _, table := range tablesOf() {
			if base := first.way.bases[table.Name]; base != "/1.0/uv-store/"+table.Name {
				t.Errorf("%s is at %q", table.Name, base)
			}
			for _, c := range wanted(first.way.engine, table) {
				if _, has := first.way.column(table.Name, c.Name); !has {
					t.Errorf("%s has no column %s", table.Name, c.Name)
				}
			}
		}
		again := h.mustFit(h.at)
		h.db.Restart()
		restarted := h.mustFit(seat{"db", 2, 1})
		for _, b := range []*binding{again, restarted} {
			if b.own.storeID != first.own.storeID || b.way.bases[ownTable] != first.way.bases[ownTable] {
				t.Errorf("the store was %q and is %q at %q", first.own.storeID, b.own.storeID, b.way.bases[ownTable])
			}
		}
	})
}

func TestABootstrapWhoseStepFailsSaysWhichAndCanBeRepeated(t *testing.T) {
	t.Parallel()
	steps := []string{"IntrospectSchema", "EnsureSchema", "Introspect", "UpdateProxyConfig", "ListConnections", "EnableEndpoint", "Request"}
	inManners(t, func(t *testing.T, o stock.Options) {
		h := newTheatre(t, o)
		for _, step := range steps {
			h.db.Fault(func(_, action string, _ json.RawMessage) (string, bool) {
				return "Connection 1 is not connected.", action == step
			})
			_, err := h.fit(h.at)
			e := ports.AsError(err)
			if e == nil || e.Code != ports.Unavailable || e.Field != ports.FieldBootstrap || !strings.Contains(e.Error(), "is not connected") {
				t.Errorf("%s fails: %v", step, err)
			}
			if step != "Request" && !strings.Contains(e.Message, step) {
				t.Errorf("%s fails, and that is not said: %v", step, err)
			}
		}
		h.db.Fault(nil)
		h.mustFit(h.at)
	})
}

func TestABootstrapThatWasCutShortGoesOn(t *testing.T) {
	t.Parallel()
	inManners(t, func(t *testing.T, o stock.Options) {
		h := newTheatre(t, o)
		for works, made := 0, false; !made; works++ {
			if works > 100 {
				t.Fatal("it never ends")
			}
			left := works
			h.db.Fault(func(string, string, json.RawMessage) (string, bool) {
				left--
				return "gone", left < 0
			})
			_, err := h.fit(h.at)
			made = err == nil
			h.db.Fault(nil)
			h.db.Restart()
		}
		h.mustFit(h.at)
	})
}

func TestHostsThatBootstrapAtOnceFindOneStore(t *testing.T) {
	t.Parallel()
	inManners(t, func(t *testing.T, o stock.Options) {
		h := newTheatre(t, o)
		var all sync.WaitGroup
		var mu sync.Mutex
		stores, failures := map[string]bool{}, []error{}
		for range 6 {
			all.Go(func() {
				for range 20 { // as the binder does
					b, err := h.fit(h.at)
					mu.Lock()
					if err == nil {
						stores[b.own.storeID] = true
					} else {
						failures = append(failures, err)
					}
					mu.Unlock()
					if err == nil {
						return
					}
				}
			})
		}
		all.Wait()
		if len(stores) != 1 || len(failures) > 20 {
			t.Errorf("%d stores, failures: %v", len(stores), failures)
		}
	})
}

func TestTablesOfTheFirstVersionAreWidenedWhileTheyAreServed(t *testing.T) {
	t.Parallel()
	inManners(t, func(t *testing.T, o stock.Options) {
		h := newTheatre(t, o)
		h.act(schemaCapability, "EnsureSchema", schemaSettings(firstVersion()))
		h.act(managementCapability, "Introspect", map[string]any{})
		for _, table := range ports.Tables {
			h.act(managementCapability, "EnableEndpoint", map[string]any{"TableName": table.Name})
		}
		h.act(ports.MeadowProxy, "Request", map[string]any{"Method": "POST", "Path": "/1.0/uv-store/UVQueueWorkItem", "Body": `{"WorkItemHash":"of a bridge","Status":"Running"}`})
		for range 2 {
			b := h.mustFit(h.at)
			if c, has := b.way.column(ports.Items.Name, "Extra"); !has {
				t.Errorf("no Extra, %v", c)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			for _, key := range []string{"ours", "of a bridge"} {
				if _, err := b.way.put(ctx, []ports.Row{item(key, 7)}, ports.ClassLive); err != nil {
					t.Fatal(err)
				}
				if row, err := b.way.item(ctx, key); err != nil || row.Change.Seq != 7 {
					t.Errorf("%s: %v, %v", key, row, err)
				}
			}
		}
		if n := h.count(1, ports.Items.Name); n != 2 {
			t.Errorf("%d items", n)
		}
	})
}

// act has the databeacon do something that must succeed.
func (h *theatre) act(capability, action string, settings map[string]any) {
	h.t.Helper()
	settings["IDBeaconConnection"] = 1
	text, err := json.Marshal(settings)
	if err != nil {
		h.t.Fatal(err)
	}
	if _, failure := h.db.Do(h.t.Context(), capability, action, text); failure != "" {
		h.t.Fatalf("%s: %s", action, failure)
	}
}

// firstVersion is the schema as the bridges make it, in sizes that every engine takes.
func firstVersion() descriptor {
	d := descriptor{SchemaName: schemaName, Version: 1}
	for _, t := range ports.Tables {
		spec := tableSpec{Scope: t.Name, DefaultIdentifier: t.Engine[0].Name}
		for _, c := range append(append(t.Engine[:1:1], t.Members...), t.Engine[1:]...) {
			c.Size = min(c.Size, 255)
			spec.Schema = append(spec.Schema, specOf(c))
		}
		for _, i := range t.Indexes {
			if i.Unique {
				spec.Indexes = append(spec.Indexes, indexSpec(i))
			}
		}
		d.Tables = append(d.Tables, spec)
	}
	return d
}

func TestAStoreOfANewerHoldfastIsLeftAlone(t *testing.T) {
	t.Parallel()
	h := newTheatre(t, stock.Options{Dir: t.TempDir(), Name: "db"})
	h.mustFit(h.at)
	if _, err := h.db.Database(1).Exec(`UPDATE UVHoldfast SET Value = ? WHERE Name = 'Version'`, ports.SchemaVersion+1); err != nil {
		t.Fatal(err)
	}
	if _, err := h.fit(h.at); ports.CodeOf(err) != ports.Conflict {
		t.Errorf("%v", err)
	}
}

func TestAStoreIDThatWasRemovedIsAnotherStore(t *testing.T) {
	t.Parallel()
	inManners(t, func(t *testing.T, o stock.Options) {
		h := newTheatre(t, o)
		was := h.mustFit(h.at).own.storeID
		if _, err := h.db.Database(1).Exec(`UPDATE UVHoldfast SET Deleted = 1`); err != nil {
			t.Fatal(err)
		}
		if is := h.mustFit(h.at).own; is.storeID == was || is.storeID == "" || is.version != ports.SchemaVersion {
			t.Errorf("the store was %q and is %q", was, is.storeID)
		}
	})
}

func TestConnectionsWhoseEndpointsStandAtOnePlaceAreToldApart(t *testing.T) {
	t.Parallel()
	inManners(t, func(t *testing.T, o stock.Options) {
		h := newTheatre(t, o, "UV Store", "uv-store", "other")
		first := h.mustFit(seat{"db", 1, 1})
		_, err := h.fit(seat{"db", 1, 2})
		if e := ports.AsError(err); e == nil || e.Field != ports.FieldBootstrap || !strings.Contains(e.Message, `"UV Store"`) {
			t.Errorf("the second of one slug: %v", err)
		}
		if n := h.count(2, ownTable); n != 0 {
			t.Errorf("%d rows in the database of the second", n)
		}
		if again := h.mustFit(seat{"db", 1, 1}); again.own.storeID != first.own.storeID {
			t.Errorf("the first is another store: %q, %q", first.own.storeID, again.own.storeID)
		}
		if other := h.mustFit(seat{"db", 1, 3}); other.own.storeID == first.own.storeID {
			t.Error("another connection is the same store")
		}
	})
}

// count counts the rows of a table behind a connection.
func (h *theatre) count(connection int64, table string) (n int) {
	h.t.Helper()
	if err := h.db.Database(connection).QueryRow(fmt.Sprintf(`SELECT count(*) FROM %q`, table)).Scan(&n); err != nil {
		h.t.Fatal(err)
	}
	return n
}
