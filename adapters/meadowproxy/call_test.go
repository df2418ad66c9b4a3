package meadowproxy

import (
	"errors"
	"strings"
	"testing"

	"holdfast/adapters/meadowproxy/stock"
	"holdfast/ports"
)

func TestALargeTextIsQuotedAsASmallOne(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{"a", `"`, `\`, "\n", "é", "😀", "\x01", "a\"b\\c\nd é"} {
		for _, n := range []int{0, 1, 64<<10 - 1, 64 << 10, 64<<10 + 1, 200_000} {
			text := strings.Repeat(unit, n/len(unit)+1)[:n]
			if got, want := string(appendQuoted([]byte("x"), []byte(text))), "x"+string(ports.AppendQuoted(nil, text)); got != want {
				t.Errorf("%d bytes of %q are quoted otherwise", n, unit)
			}
		}
	}
}

func TestWhatIsNoAnswerOfADatabeaconIsTold(t *testing.T) {
	t.Parallel()
	for _, outputs := range []string{`{}`, `{"StdOut":"Unknown action","ExitCode":-1}`, `{"Status":200,"Body":{}}`, `[]`, `x`, `{"Status":"many","Body":""}`} {
		if _, err := readReply([]byte(outputs)); ports.CodeOf(err) != ports.Internal {
			t.Errorf("%s: %v", outputs, err)
		}
	}
	if r, err := readReply([]byte(`{"Headers":{},"Status":431,"Body":""}`)); err != nil || r.status != 431 || len(r.body) > 0 {
		t.Errorf("%v, %v", r, err)
	}
}

func TestAFailureOnTheWayKeepsWhetherItMayHaveHappened(t *testing.T) {
	t.Parallel()
	for code, want := range map[ports.Code]ports.Code{
		ports.BackendGone: ports.Deadline, ports.Deadline: ports.Deadline, ports.Unavailable: ports.Unavailable, ports.Full: ports.Full, ports.TooLarge: ports.TooLarge,
		ports.Invalid: ports.Unavailable, ports.Internal: ports.Unavailable, ports.Canceled: ports.Canceled,
	} {
		if got := ports.CodeOf(onTheWay("Request", ports.Errorf(code, "mesh", "no"))); got != want {
			t.Errorf("%s becomes %s, want %s", code, got, want)
		}
	}
	tooOdd := ports.InField(ports.Invalid, "Settings", "cannot travel")
	if got := ports.CodeOf(onTheWay("Request", tooOdd)); got != ports.Invalid {
		t.Errorf("a record that cannot travel is %s", got)
	}
	if got := ports.CodeOf(onTheWay("Request", errors.New("boom"))); got != ports.Unavailable {
		t.Errorf("an error without a code is %s", got)
	}
}

func TestAFaultOfAnEngineIsReadByItsCode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		body   string
		want   meaning
		code   ports.Code
	}{
		{500, `{"Error":"UNIQUE constraint failed: UVManifest.Hash","Code":"ERR_SQLITE_ERROR"}`, faultVague, ports.Invalid},
		{500, `{"Error":"my unique value","Code":"22P02"}`, faultRefused, ports.Invalid},
		{500, `{"Error":"x","Code":"23505"}`, faultDuplicate, ports.Conflict},
		{500, `{"Error":"x","Code":"ER_DUP_ENTRY"}`, faultDuplicate, ports.Conflict},
		{500, `{"Error":"x","Code":"SQLITE_CONSTRAINT_UNIQUE"}`, faultDuplicate, ports.Conflict},
		{500, `{"Error":"x","Code":"22001"}`, faultTooLong, ports.TooLarge},
		{500, `{"Error":"x","Code":"ER_DATA_TOO_LONG"}`, faultTooLong, ports.TooLarge},
		{500, `{"Error":"x","Code":"57P01"}`, faultNotNow, ports.Unavailable},
		{500, `{"Error":"x","Code":"53300"}`, faultNotNow, ports.Unavailable},
		{500, `{"Error":"x","Code":"53100"}`, faultFull, ports.Full},
		{500, `{"Error":"x","Code":"42501"}`, faultDenied, ports.Unauthorized},
		{500, `{"Error":"database is locked","Code":"ERR_SQLITE_ERROR"}`, faultNotNow, ports.Unavailable},
		{500, `{"Error":"database or disk is full","Code":"ERR_SQLITE_ERROR"}`, faultFull, ports.Full},
		{500, `{"Error":"no such table: UVManifest","Code":"ERR_SQLITE_ERROR"}`, faultForgotten, ports.Unavailable},
		{500, `{"Error":"Connection terminated unexpectedly"}`, faultNotNow, ports.Unavailable},
		{404, `{"Error":"Record not Found","StatusCode":404}`, faultMissing, ports.NotFound},
		{404, "<!DOCTYPE html>", faultForgotten, ports.Unavailable},
		{404, `{"code":"ResourceNotFound","message":"/1.0 does not exist"}`, faultForgotten, ports.Unavailable},
		{405, `{"code":"MethodNotAllowed","message":"PUT is not allowed"}`, faultForgotten, ports.Unavailable},
		{431, "", faultTooLong, ports.TooLarge}, {413, "", faultTooLong, ports.TooLarge}, {503, "", faultNotNow, ports.Unavailable}, {429, "{}", faultNotNow, ports.Unavailable},
	} {
		r := reply{c.status, []byte(c.body)}
		f, m := r.readFault()
		err := f.err("test", m)
		if m != c.want || ports.CodeOf(err) != c.code || (m == faultForgotten) != (ports.AsError(err).Field == ports.FieldBootstrap) {
			t.Errorf("%d %s means %d: %v", c.status, c.body, m, err)
		}
	}
	for raw, want := range map[string]meaning{
		`{"code":"ERR_SQLITE_ERROR","errcode":2067}`: faultDuplicate, `{"code":"ERR_SQLITE_ERROR","errcode":5,"errstr":"database is locked"}`: faultNotNow,
		`{"code":"23505","detail":"Key exists"}`: faultDuplicate, `{"code":"ER_DUP_ENTRY","errno":1062}`: faultDuplicate, `{}`: faultVague,
		`{"Error":"x","Code":"22001"}`: faultTooLong, `"text"`: faultVague, `{"StatusCode":404,"SuppressSoftwareTrace":true}`: faultVague,
	} {
		if f, m := rowFault([]byte(raw)); m != want {
			t.Errorf("%s means %d (%+v)", raw, m, f)
		}
	}
}

func TestWorksAreAddressedToTheBeacon(t *testing.T) {
	t.Parallel()
	b := newBehind(t, stock.Options{})
	b.w.beacon = "another"
	if _, err := b.w.item(t.Context(), "key"); ports.CodeOf(err) != ports.Unavailable {
		t.Errorf("a beacon that is not there answers %v", err)
	}
}
