package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"holdfast/ports"
)

// Status is the part of /v1/status that tests look at.
type Status struct {
	Ready    bool
	Detail   string
	Notices  []string
	Families []FamilyStatus
	Backends []BackendStatus // the local store first

	Assignments []AssignmentStatus
	Survey      struct{ Counts map[string]int }
}

// FamilyStatus is how far a family is on its way into the local store.
type FamilyStatus struct {
	Family                   string
	Head, Committed, Backlog uint64
	Lost                     []ports.Span
	Journal                  struct {
		First uint64
		Bytes int64
	}
}

// BackendStatus is how one backend is.
type BackendStatus struct {
	Name, State, Detail, Remedy string
	PID, Starts                 int
	Followers                   []FollowerStatus
}

// FollowerStatus is how far a backend has come with one family.
type FollowerStatus struct {
	Family, State, Phase, Detail  string
	Suspect                       bool
	Position, Behind              uint64
	Unsettled, InDoubt, Discarded int
	LastErrorAt                   time.Time
}

// AssignmentStatus is how it stands with the databeacon of one family.
type AssignmentStatus struct {
	Family, State, BeaconID, AssignedAt string
	IDBeaconConnection                  int64
	Tagged                              bool
	Detail, Remedy                      string
}

// Verification is what a comparison of two backends finds.
type Verification struct {
	Compared, OnlyA, OnlyB, Different int64
	OneWay                            bool
	Differences                       []json.RawMessage
}

// Equal says that no difference was found.
func (v Verification) Equal() bool { return v.OnlyA+v.OnlyB+v.Different == 0 && !v.OneWay }

// Status asks the host how it is.
func (h *Host) Status(ctx context.Context) (Status, error) {
	return askStatus(ctx, http.DefaultClient, h.URL, "")
}

func askStatus(ctx context.Context, client *http.Client, url, query string) (s Status, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/v1/status"+query, nil)
	if err != nil {
		return s, err
	}
	res, err := client.Do(req)
	if err != nil {
		return s, err
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&s); err != nil {
		return s, fmt.Errorf("/v1/status answers %s: %w", res.Status, err)
	}
	return s, nil
}

// Backend tells how one backend is.
func (h *Host) Backend(ctx context.Context, name string) (BackendStatus, error) {
	s, err := h.Status(ctx)
	if err != nil {
		return BackendStatus{}, err
	}
	for _, b := range s.Backends {
		if b.Name == name {
			return b, nil
		}
	}
	return BackendStatus{}, fmt.Errorf("the status knows no backend %s", name)
}
