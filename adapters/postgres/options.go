package postgres

import (
	"encoding/json"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast/ports"
)

const (
	defaultPool    = 4
	minPool        = 2
	maxPool        = 64
	defaultTimeout = 3 * time.Second // the host takes a plugin for hung that does not answer a batch within 5
)

// options are the store's settings as data.
var options = []ports.Option{
	{
		Name: "dsn", Type: ports.OptionString, Required: true, Secret: true,
		Help: "where the database is, as a URL (postgres://user@host/database) or as key=value words; several hosts are tried for the one that takes writes",
	},
	{
		Name: "schema", Type: ports.OptionString, Example: "history",
		Help: "the schema that has the tables; made where it is missing. Default: the first of the role's search_path",
	},
	{
		Name: "pool", Type: ports.OptionInt, Default: "4", Example: "8",
		Help: "how many connections are open at most, from 2 to 64; one of them is kept for writing",
	},
	{
		Name: "pooler", Type: ports.OptionBool, Default: "false", Example: "true",
		Help: "whether a pooler such as PgBouncer in transaction mode stands before the server: nothing is kept in a session then",
	},
	{
		Name: "timeout", Type: ports.OptionDuration, Default: defaultTimeout.String(), Example: "4s",
		Help: "how long one transaction may take before it is given up, from 1s to 1m; one with large records gets more. The host gives a batch 5s",
	},
}

type settings struct {
	pool    *pgxpool.Config // of the dsn
	schema  string
	size    int
	pooler  bool
	timeout time.Duration
}

var schemaName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_$-]{0,62}$`)

// parseOptions checks the options; a refusal names the option, and never shows what stands in the dsn.
func parseOptions(c ports.Configuration) (settings, error) {
	given := map[string]json.RawMessage{}
	if len(c.Options) > 0 {
		if err := json.Unmarshal(c.Options, &given); err != nil {
			return settings{}, ports.Errorf(ports.Invalid, "postgres: configure", "options are not one object")
		}
	}
	s := settings{size: defaultPool, timeout: defaultTimeout}
	if _, has := given["dsn"]; !has {
		return settings{}, ports.InField(ports.Invalid, "dsn", "is missing; say where the database is, such as postgres://holdfast@db.example/history")
	}
	for name, raw := range given {
		if err := s.set(name, raw); err != nil {
			return settings{}, err
		}
	}
	s.arrange()
	return s, nil
}

func (s *settings) set(name string, raw json.RawMessage) error {
	var text string
	switch name {
	case "dsn":
		var err error
		if json.Unmarshal(raw, &text) != nil {
			return ports.InField(ports.Invalid, name, "is not a text")
		}
		if text == "" { // the driver would take it for the words of its own environment
			return ports.InField(ports.Invalid, name, "is empty; is the variable set that it comes from?")
		}
		if s.pool, err = pgxpool.ParseConfig(text); err != nil { // its text may show the password
			return ports.InField(ports.Invalid, name, "is not a connection string such as postgres://holdfast@db.example/history, "+
				"or names a file that cannot be read; characters with a meaning of their own stand as %%XX in it")
		}
	case "schema":
		if json.Unmarshal(raw, &text) != nil || text != "" && !schemaName.MatchString(text) {
			return ports.InField(ports.Invalid, name, "is not the name of a schema: letters, digits, _, $ and -, at most 63")
		}
		s.schema = text
	case "pool":
		if json.Unmarshal(raw, &s.size) != nil || s.size < minPool || s.size > maxPool {
			return ports.InField(ports.Invalid, name, "is not a number from %d to %d", minPool, maxPool)
		}
	case "pooler":
		if json.Unmarshal(raw, &s.pooler) != nil {
			return ports.InField(ports.Invalid, name, "is not true or false")
		}
	case "timeout":
		var err error
		if json.Unmarshal(raw, &text) == nil {
			s.timeout, err = time.ParseDuration(text)
		}
		if text == "" || err != nil || s.timeout < time.Second || s.timeout > time.Minute {
			return ports.InField(ports.Invalid, name, "is not a duration from 1s to 1m, such as %q", defaultTimeout)
		}
	default:
		return ports.InField(ports.Invalid, name, "is unknown; there are dsn, schema, pool, pooler and timeout")
	}
	return nil
}
