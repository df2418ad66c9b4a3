// Package httpapi is the front door over HTTP: it turns requests into calls on the core and the core's answers into
// responses. It decides nothing about history; it decides who may ask, how much may come in at a time, and how long a slow
// peer is waited for.
//
//	POST /v1/actions                          one {Action, Settings} as JSON, or a stream of them as NDJSON  actions.go, stream.go
//	GET  /v1/work-items[/{hash}[/events or /attempts]], /v1/manifests[/{hash}]                               reads.go
//	GET  /v1/status, /v1/writes/{family}/{seq}, POST /v1/local/accept, /v1/prune                             operate.go
//	POST /v1/assignment                       which databeacon keeps which family                            assignment.go
//	GET  /v1/unsettled, POST /v1/unsettled/{family}/retry, /discard                                          unsettled.go
//	GET  /v1/backends, POST /v1/backends/{name}/resync, /adopt, /v1/verify, /v1/copy                         repair.go, lasting.go
//	GET  /v1/export                           the whole history as lines that /v1/actions takes back         export.go
//	GET  /livez, /readyz, /metrics, /         for machines and for people                                    health.go, metrics.go, page.go
//
// Every answer but a stream, a work that lasts, the metrics and the page is one JSON envelope, errors of routing and of access included.
//
// Serving and stopping:
//
//	api, err := httpapi.New(httpapi.Config{Host: httpapi.Over(host), Tokens: tokens, Loopback: loopback, Logger: logger})
//	server := api.Server()
//	go server.Serve(listener)
//	...
//	api.Drain()            // not ready any more, new calls get 503, open streams end behind the lines that they have read
//	server.Shutdown(ctx)   // waits for the answers that are still due
package httpapi
