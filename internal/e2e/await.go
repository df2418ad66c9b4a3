package e2e

import "time"

// patience bounds every wait: far more than a healthy host needs on a busy machine.
const patience = 60 * time.Second

// await tries until there is no error, a bounded time; it gives the last error.
func await(try func() error) error { return awaitFor(patience, try) }

func awaitFor(limit time.Duration, try func() error) error {
	deadline, tick := time.After(limit), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-deadline:
			return err
		}
	}
}
