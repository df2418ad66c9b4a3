package process

import (
	"math/rand/v2"
	"time"
)

// backoff is how long to wait before the next launch, after so many failures in a row. It doubles from t.base to the limit;
// the jitter keeps the plugins of one host, or of many, from starting in step. A failure that no repetition can mend waits
// for the limit at once. givenUp says that the limit is reached.
func (t *timing) backoff(failures int, permanent bool) (wait time.Duration, givenUp bool) {
	wait = t.limit
	if doublings := failures - 1; !permanent && doublings < 16 {
		wait = min(t.limit, t.base<<doublings)
	}
	return wait/2 + rand.N(wait/2+1), wait == t.limit
}
