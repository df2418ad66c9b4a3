package journal

import (
	"runtime/debug"

	bolt "go.etcd.io/bbolt"

	"holdfast/ports"
)

// Transactions of State. A page that cannot be read any more, because the disk fails under a host that runs, makes bbolt
// panic or its mapping fault; both come back as Internal. Where that leaves one of bbolt's locks taken, which nobody could
// ever release, State is broken: it answers everything with what happened, rather than never.

// view runs a transaction that only reads.
func (s *State) view(what string, f func(tx *bolt.Tx) error) error {
	return stateError(what, s.transact(false, f))
}

// update runs one that writes.
func (s *State) update(what string, f func(tx *bolt.Tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return stateError(what, s.change(f))
}

// change is update for those who hold the mutex.
func (s *State) change(f func(tx *bolt.Tx) error) error { return s.transact(true, f) }

func (s *State) transact(writes bool, f func(tx *bolt.Tx) error) error {
	if why := s.broken.Load(); why != nil {
		return why
	}
	var tx *bolt.Tx
	var begun error
	if err := s.unlessBroken(func() { tx, begun = s.db.Begin(writes) }); err != nil {
		return err
	}
	if begun != nil {
		return begun
	}
	err := guarded(func() error {
		if err := f(tx); err != nil || !writes {
			return err
		}
		return tx.Commit()
	})
	if err != nil || !writes {
		// After a commit that failed it is rolled back already, and says so.
		if broken := s.unlessBroken(func() { _ = tx.Rollback() }); broken != nil {
			return broken
		}
	}
	return err
}

// unlessBroken calls what takes or releases bbolt's locks. When it does not come back in the ordinary way State is broken.
func (s *State) unlessBroken(f func()) error {
	err := guarded(func() error { f(); return nil })
	if err == nil {
		return nil
	}
	why := ports.Errorf(ports.Internal, "", "state.db cannot be used any more: %s; look at the disk and start holdfast again", err)
	s.broken.CompareAndSwap(nil, why)
	return why
}

// guarded turns a panic or a fault of the mapping into an error.
func guarded(f func() error) (err error) {
	before := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(before)
		if p := recover(); p != nil {
			err = ports.Errorf(ports.Internal, "", "the file is damaged: %v", p)
		}
	}()
	return f()
}

func stateError(what string, err error) error {
	if err == nil {
		return nil
	}
	op := "state: " + what
	return ports.Wrap(diskError(op, err).Code, op, err)
}
