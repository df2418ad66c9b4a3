package process

import "github.com/hashicorp/go-hclog"

// quiet is the logger of go-plugin itself, which calls the ordinary end of a plugin an error. What matters of it is said
// here in our own words, so all of it is for debugging.
type quiet struct{ hclog.Logger }

func (q quiet) Info(msg string, args ...any)  { q.Logger.Debug(msg, args...) }
func (q quiet) Warn(msg string, args ...any)  { q.Logger.Debug(msg, args...) }
func (q quiet) Error(msg string, args ...any) { q.Logger.Debug(msg, args...) }
func (q quiet) Named(name string) hclog.Logger {
	return quiet{q.Logger.Named(name)}
}
func (q quiet) With(args ...any) hclog.Logger { return quiet{q.Logger.With(args...)} }
