package beacon

import "sync"

var villages = struct {
	sync.Mutex
	of map[string]*village
}{of: map[string]*village{}}
