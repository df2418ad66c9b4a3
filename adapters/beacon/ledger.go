package beacon

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/google/renameio/v2"

	"holdfast/ports"
)

// The ledger is what a beacon cannot hold: for each family which beacon it is, its generation, how far it is, and what it must
// have if it still is the store that it was. One small file, replaced whole.

// recentKeys is how many keys are remembered, and compared after a reconnect.
const (
	recentKeys   = 32
	recentEvents = 8 // of one key
	recentStates = 4 // of one key: its last one, and those whose Put had no answer
	longestGUID  = 128
)

// page is what the ledger has of one family.
type page struct {
	StoreID  string // the generation
	Beacon   string // its Name
	Position ports.Position
	Recent   []recent // the last one last
}

// recent is what a beacon must have of one key.
type recent struct {
	Key    string
	Gone   bool         `json:",omitempty"` // the record was removed, or may be
	Kept   bool         `json:",omitempty"` // the record is there: one of States at least
	States []digest     `json:",omitempty"` // of the item or manifest, any of which may be there
	Change ports.Change // of the last state: a later one of the same host is as good
	Events []trace      `json:",omitempty"`
}

// trace is an event that is there.
type trace struct{ GUID, Content string }

func (p *page) clone() page {
	c := *p
	c.Recent = slices.Clone(p.Recent)
	return c
}

// of gives the entry of a key, made the last one.
func (p *page) of(key string) *recent {
	if at := slices.IndexFunc(p.Recent, func(r recent) bool { return r.Key == key }); at >= 0 {
		r := p.Recent[at]
		p.Recent = append(slices.Delete(p.Recent, at, at+1), r)
	} else {
		if len(p.Recent) >= recentKeys {
			p.Recent = slices.Delete(p.Recent, 0, 1)
		}
		p.Recent = append(p.Recent, recent{Key: key})
	}
	return &p.Recent[len(p.Recent)-1]
}

// may notes a state that is about to be sent. Until it is known to be there, the one before it may be there as well.
func (p *page) may(key string, d digest) {
	at := slices.IndexFunc(p.Recent, func(r recent) bool { return r.Key == key })
	if at < 0 {
		return // it says nothing yet
	}
	r := &p.Recent[at]
	if !slices.Contains(r.States, d) {
		r.States = append(slices.Clone(r.States), d)
		r.States = r.States[max(0, len(r.States)-recentStates):]
	}
}

// is notes a state that is there.
func (p *page) is(key string, d digest, change ports.Change) {
	r := p.of(key)
	r.Gone, r.Kept, r.States, r.Change = false, true, []digest{d}, change
}

// mayGo notes a removal that is about to be sent, and isGone one that has happened.
func (p *page) mayGo(key string) {
	if at := slices.IndexFunc(p.Recent, func(r recent) bool { return r.Key == key }); at >= 0 {
		p.Recent[at].Gone = true
	}
}

func (p *page) isGone(key string) {
	r := p.of(key)
	r.Gone, r.Kept, r.States = true, false, nil
}

// has notes an event that is there.
func (p *page) has(key string, e entry) {
	if len(e.guid) > longestGUID {
		return
	}
	r := p.of(key)
	if slices.ContainsFunc(r.Events, func(t trace) bool { return t.GUID == e.guid }) {
		return
	}
	r.Events = append(slices.Clone(r.Events), trace{e.guid, e.content})
	r.Events = r.Events[max(0, len(r.Events)-recentEvents):]
}

// ledger is the file.
type ledger struct {
	path string

	mu    sync.Mutex
	pages map[ports.Family]page
}

// sealed is the file's text: the pages, and a sum over them.
type sealed struct {
	Sum   string
	Pages json.RawMessage
}

// maxLedger bounds what is read: 64 keys of 512 code points with all that belongs to them are below it.
const maxLedger = 1 << 20

func ledgerPath(c ports.Configuration) string {
	return filepath.Join(c.DataDir, "beacon-"+url.PathEscape(c.Name)+".json")
}

// openLedger reads the file. A damaged one is set aside, and then nothing is known: everything is copied again.
func openLedger(path string) (*ledger, error) {
	l := &ledger{path: path, pages: map[ports.Family]page{}}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return l, nil
	case err != nil:
		return nil, ports.Wrap(ports.Unavailable, "beacon: "+filepath.Base(path), err)
	}
	text := []byte(nil)
	if info.Mode().IsRegular() && info.Size() <= maxLedger {
		if text, err = os.ReadFile(path); err != nil {
			return nil, ports.Wrap(ports.Unavailable, "beacon: "+filepath.Base(path), err)
		}
	}
	if !l.read(text) {
		l.pages = map[ports.Family]page{}
		if err := os.Rename(path, path+".corrupt"); err != nil {
			return nil, ports.Wrap(ports.Unavailable, "beacon: set a damaged "+filepath.Base(path)+" aside", err)
		}
	}
	return l, nil
}

func (l *ledger) read(text []byte) bool {
	var s sealed
	if json.Unmarshal(text, &s) != nil || s.Sum != sealOf(s.Pages) || json.Unmarshal(s.Pages, &l.pages) != nil || l.pages == nil {
		return false
	}
	for _, p := range l.pages {
		if p.StoreID == "" || len(p.Recent) > recentKeys {
			return false
		}
	}
	return true
}

func sealOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// page gives what is known of a family.
func (l *ledger) page(f ports.Family) page {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.pages[f]
	return p.clone()
}

// keep replaces what is known of a family, on the disk as well.
func (l *ledger) keep(f ports.Family, p page) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	was, had := l.pages[f]
	l.pages[f] = p.clone()
	err := l.write()
	if err != nil {
		if l.pages[f] = was; !had {
			delete(l.pages, f)
		}
	}
	return err
}

func (l *ledger) write() error {
	pages, err := json.Marshal(l.pages)
	if err != nil {
		return ports.Wrap(ports.Internal, "beacon: ledger", err)
	}
	text, err := json.Marshal(sealed{Sum: sealOf(pages), Pages: pages})
	if err != nil {
		return ports.Wrap(ports.Internal, "beacon: ledger", err)
	}
	err = renameio.WriteFile(l.path, text, 0o600, renameio.WithTempDir(filepath.Dir(l.path)), renameio.WithStaticPermissions(0o600))
	if errors.Is(err, syscall.ENOSPC) {
		return ports.Errorf(ports.Full, "beacon: ledger", "the disk of the data directory is full")
	}
	return ports.Wrap(ports.Unavailable, "beacon: ledger", err)
}
