//go:build unix && !linux

package process

// KillStrays finds nothing here: only a plugin's process group ends with it.
func KillStrays(string) []string { return nil }
