package beacon

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"holdfast/adapters/mesh/stock"
)

// The processes of a beacon, and what happens to them. Whatever happens comes and goes, and may meet with something else.

// troupe is all processes that serve one store under one name.
type troupe struct {
	t      testing.TB
	config stock.BeaconConfig

	mu    sync.Mutex
	alive []*stock.Beacon // the newest last
	moods map[int]func(w *stock.Work) stock.Fault
	next  int
	ids   map[string]bool // under which it was registered
}

func newTroupe(t testing.TB, config stock.BeaconConfig) *troupe {
	return &troupe{t: t, config: config, moods: map[int]func(*stock.Work) stock.Fault{}, ids: map[string]bool{}}
}

// enter starts one more process.
func (u *troupe) enter(ctx context.Context) {
	b := stock.NewBeacon(u.config)
	b.Misbehave(u.mood)
	u.mu.Lock()
	u.alive = append(u.alive, b)
	u.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, testPatience)
	defer cancel()
	if err := b.Start(ctx); err != nil && ctx.Err() == nil {
		u.t.Errorf("a beacon does not start: %v", err)
	}
	if id := b.State().ID; id != "" {
		u.mu.Lock()
		u.ids[id] = true
		u.mu.Unlock()
	}
}

// front is the newest process; nil: there is none.
func (u *troupe) front() *stock.Beacon {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.alive) == 0 {
		return nil
	}
	return u.alive[len(u.alive)-1]
}

// kill ends a process.
func (u *troupe) kill(b *stock.Beacon) {
	u.mu.Lock()
	u.alive = slices.DeleteFunc(u.alive, func(other *stock.Beacon) bool { return other == b })
	u.mu.Unlock()
	b.Kill()
}

// revive sees to it that there is a process.
func (u *troupe) revive(ctx context.Context) {
	if b := u.front(); b != nil && (b.State().Running || b.State().ID == "") {
		return
	} else if b != nil {
		u.kill(b) // it died of a work
	}
	u.enter(ctx)
}

// calm ends whatever is the matter: one process stays, in good health.
func (u *troupe) calm(ctx context.Context) {
	u.mu.Lock()
	clear(u.moods)
	others := slices.Clone(u.alive[:max(0, len(u.alive)-1)])
	u.mu.Unlock()
	for _, b := range others {
		u.kill(b)
	}
	if b := u.front(); b != nil {
		b.Thaw()
	}
	u.revive(ctx)
}

// end kills all.
func (u *troupe) end() {
	for b := u.front(); b != nil; b = u.front() {
		u.kill(b)
	}
}

// feel has works go wrong until forget.
func (u *troupe) feel(mood func(w *stock.Work) stock.Fault) (forget func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.next++
	n := u.next
	u.moods[n] = mood
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.moods, n)
	}
}

// mood is everything that goes wrong with a work.
func (u *troupe) mood(w *stock.Work) (all stock.Fault) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, mood := range u.moods {
		f := mood(w)
		all.Delay += f.Delay
		all.Late = max(all.Late, f.Late)
		all.Undone, all.Die = all.Undone || f.Undone, all.Die || f.Die
		if f.Error != "" {
			all.Error = f.Error
		}
	}
	return all
}

// trouble is one way in which a beacon fails. It ends by itself.
type trouble func(ctx context.Context, u *troupe, r *dice)

// troubles are those that a beacon must be able to have without any loss.
var troubles = map[string]trouble{
	"killed":                          killed,
	"frozen":                          frozen,
	"slow":                            slow,
	"answering errors":                erring,
	"answering after its deadline":    answeringLate,
	"reconnecting under a new id":     renamed,
	"replaced by another of its name": replaced,
}

// dice are random numbers for many goroutines.
type dice struct {
	mu sync.Mutex
	r  *rand.Rand
}

func newDice(seed uint64) *dice { return &dice{r: rand.New(rand.NewPCG(seed, 0))} }

func (d *dice) n(most int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.IntN(most)
}

// chance is true in so many of a hundred times.
func (d *dice) chance(percent int) bool { return d.n(100) < percent }

// between gives a time.
func (d *dice) between(least, most time.Duration) time.Duration {
	return least + time.Duration(d.n(int(most-least)))
}

func killed(ctx context.Context, u *troupe, r *dice) {
	if b := u.front(); b != nil && r.chance(50) {
		u.kill(b)
	} else { // in the middle of a work, done or not
		left, undone := r.n(20), r.chance(50)
		forget := u.feel(func(*stock.Work) stock.Fault {
			if left--; left != 0 {
				return stock.Fault{}
			}
			return stock.Fault{Die: true, Undone: undone}
		})
		pause(ctx, r.between(0, 3*time.Second))
		forget()
	}
	pause(ctx, r.between(0, 8*time.Second))
	u.revive(ctx)
}

func frozen(ctx context.Context, u *troupe, r *dice) {
	b := u.front()
	if b == nil {
		return
	}
	b.Freeze()
	pause(ctx, r.between(100*time.Millisecond, 20*time.Second))
	b.Thaw()
}

func slow(ctx context.Context, u *troupe, r *dice) {
	defer u.feel(stock.Slow(25 * time.Millisecond))()
	pause(ctx, r.between(time.Second, 10*time.Second))
}

func erring(ctx context.Context, u *troupe, r *dice) {
	reasons := []string{"SQLITE_BUSY: database is locked", "ECONNRESET", "disk I/O error", "Cannot read properties of undefined (reading 'query')"}
	part := 20 + r.n(81)
	defer u.feel(func(*stock.Work) stock.Fault {
		if !r.chance(part) {
			return stock.Fault{}
		}
		return stock.Fault{Error: reasons[r.n(len(reasons))], Undone: r.chance(50)}
	})()
	pause(ctx, r.between(500*time.Millisecond, 8*time.Second))
}

func answeringLate(ctx context.Context, u *troupe, r *dice) {
	part := 5 + r.n(96)
	defer u.feel(func(*stock.Work) stock.Fault {
		if !r.chance(part) {
			return stock.Fault{}
		}
		return stock.Fault{Late: r.between(10*time.Millisecond, 5*time.Second)}
	})()
	pause(ctx, r.between(500*time.Millisecond, 8*time.Second))
}

func renamed(ctx context.Context, u *troupe, r *dice) {
	b := u.front()
	if b == nil {
		return
	}
	leave, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_ = b.Stop(leave) // it says goodbye, if it can; the hub forgets it and its id
	u.kill(b)
	pause(ctx, r.between(0, 5*time.Second))
	u.revive(ctx)
}

// replaced has a second one of its name come, often because the first one hangs; one of them goes again.
func replaced(ctx context.Context, u *troupe, r *dice) {
	old := u.front()
	if old != nil && r.chance(60) {
		old.Freeze()
		pause(ctx, r.between(0, 5*time.Second))
	}
	u.enter(ctx)
	young := u.front()
	pause(ctx, r.between(0, 6*time.Second))
	if old != nil && r.chance(70) {
		old.Thaw()
		pause(ctx, r.between(0, 2*time.Second))
	}
	if old != nil && r.chance(60) {
		u.kill(old)
	} else if young != nil {
		u.kill(young)
	}
	if old != nil {
		old.Thaw()
	}
	u.revive(ctx)
}
