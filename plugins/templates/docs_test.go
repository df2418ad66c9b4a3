package templates_test

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "holdfast/plugins/proto/backendv1"
	"holdfast/ports"
)

const docs = "../../docs/"

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(docs + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Whoever writes a backend without our source compares with these.
func TestTheVectorsOfTheContractAreWhatThisHoldfastMakes(t *testing.T) {
	t.Parallel()
	entry := ports.Entry{Seq: 4711, ReceivedMs: 1767225600123, Host: "0b5d7c1e"}
	enqueued, _ := ports.TimeKey("2026-01-01T01:00:00.5+01:00")
	received, _ := ports.TimeKey(entry.ReceivedAt())
	detail := &pb.ErrorDetail{Code: pb.Code_CODE_CONFLICT, Field: "Position", Message: "elsewhere"}
	full, err := status.New(grpccodes.FailedPrecondition, "elsewhere").WithDetails(detail)
	if err != nil {
		t.Fatal(err)
	}
	text := page(t, "plugin-protocol.md")
	for what, vector := range map[string]string{
		"order key": entry.OrderKey(), "received at": entry.ReceivedAt(), "enqueued key": enqueued, "no time": received,
		"detail": hexOf(t, detail), "status": hexOf(t, full.Proto()),
	} {
		if vector == "" || !strings.Contains(text, "`"+vector+"`") {
			t.Errorf("%s: `%s` is not in the page", what, vector)
		}
	}
}

func hexOf(t *testing.T, m proto.Message) string {
	t.Helper()
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(raw)
}

// Each refusal that the guide explains is one that somebody can meet.
func TestTheRefusalsInTheGuideAreThoseOfTheHost(t *testing.T) {
	t.Parallel()
	var sources strings.Builder
	for _, pattern := range []string{"../../adapters/process/*.go", "../../adapters/sqlite/*.go", "../../internal/config/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			sources.Write(text)
		}
	}
	_, refusals, found := strings.Cut(page(t, "plugin-author.md"), "### Refusals")
	refusals, _, _ = strings.Cut(refusals, "\n## ")
	rows := regexp.MustCompile(`(?m)^\| (.*?) \|`).FindAllStringSubmatch(refusals, -1)
	if !found || len(rows) < 25 {
		t.Fatalf("only %d refusals were found", len(rows))
	}
	host := strings.NewReplacer(`"tape"`, `%q`)
	for _, row := range rows {
		for _, quoted := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			if !strings.Contains(sources.String(), host.Replace(quoted[1])) {
				t.Errorf("nothing says %q", quoted[1])
			}
		}
	}
}

// The environment and the cookie are written down once in code and once for people.
func TestThePageNamesWhatAProcessNeeds(t *testing.T) {
	t.Parallel()
	text := page(t, "plugin-protocol.md")
	for _, word := range []string{"5d1c9b6e0f7a4c2d8e3b1a9f6c7d0e24", "HOLDFAST_PLUGIN", "HOLDFAST_LOG_LEVEL", "PLUGIN_UNIX_SOCKET_DIR"} {
		if !strings.Contains(text, word) {
			t.Errorf("%s is missing", word)
		}
	}
	for _, table := range ports.Tables {
		for _, c := range table.Members {
			if !regexp.MustCompile(`[ ` + "`" + `]` + c.Name + `[ ` + "`" + `]`).MatchString(text) {
				t.Errorf("%s has a column %s, which the page does not name", table.Name, c.Name)
			}
		}
	}
}
