//go:build unix && !linux

package process

// mindMemory enforces nothing here.
func (p *program) mindMemory(_ int64, done <-chan struct{}) { <-done }
