package meadowproxy

import "holdfast/ports"

// optOuts is what of the contract a database behind a databeacon cannot keep.
var optOuts = []ports.OptOut{}
