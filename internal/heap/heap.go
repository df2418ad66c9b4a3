// Package heap lets a small process collect its garbage seldom. The collector starts when the heap has grown to twice of what lives,
// and holdfast's processes keep a few megabytes and allocate tens of them for every thousand writes: they would collect without end.
package heap

// floor has floorBytes. It is never touched, so it costs address space and no memory; the collector counts it as living.
var floor []byte //nolint:unused // it is held, not read

const floorBytes = 32 << 20

// Floor puts a floor under what the collector takes for living: it starts at twice the floor or later. A percentage
// (GOGC) instead would multiply what lives while large records are under way, and a memory limit would make the collector run without
// end when more than that lives.
func Floor() { floor = make([]byte, floorBytes) }
