// Package wire carries ports across the process boundary: both halves of the service in plugins/proto, and the one codec of
// errors between them.
//
//	host                                              plugin
//	ports.LocalStore = *Client --- gRPC, DialOptions ---> ServerOptions, Register ---> ports.Backend
//
// A call through the wire behaves as the same call without it: the same results, the same codes, the bytes of records
// untouched. What is added can only happen to a wire: BackendGone when the connection breaks, TooLarge for a message over
// ports.MaxMessageBytes, Internal for a panic on the other side, which the plugin survives.
//
//	enum, row, entry, query, describe   messages <-> ports, a file for each idea
//	fault, intercept                    errors <-> statuses, panics
//	client, commits                     the host's half; commits keeps the ordered streams
//	server, powers, serve_commits       the plugin's half; drain counts its calls
package wire
