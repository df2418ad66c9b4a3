package ports

import "time"

// keyLayout has nine fraction digits always, so that its texts sort as the instants do.
const keyLayout = "2006-01-02T15:04:05.000000000Z"

// TimeKey turns a caller's time text (RFC 3339 with any fraction and offset) into UTC text that sorts bytewise. ok is false
// when it cannot be parsed.
func TimeKey(text string) (key string, ok bool) {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return "", false
	}
	at = at.UTC()
	if y := at.Year(); y < 0 || y > 9999 {
		return "", false
	}
	return at.Format(keyLayout), true
}

// KeyOfTime is the TimeKey of an instant.
func KeyOfTime(at time.Time) string { return at.UTC().Format(keyLayout) }
