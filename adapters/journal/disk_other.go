//go:build !linux

package journal

import "os"

// syncFile asks macOS for F_FULLFSYNC, by way of File.Sync.
func syncFile(f *os.File) error { return f.Sync() }
