package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"strings"
)

// A key in a path may hold anything: "/", "..", nothing but dots. The mux would clean such paths, so the key is taken out
// before it sees them.

// keyInPath is where a request's context has the key.
type keyInPath struct{}

// keyed are the paths that go on with a key.
var keyed = []string{"/v1/work-items/", "/v1/manifests/"}

// takeKey gives a request whose key stands in its context and as "-" in its path.
func takeKey(r *http.Request) *http.Request {
	path := r.URL.EscapedPath()
	for _, prefix := range keyed {
		rest, found := strings.CutPrefix(path, prefix)
		if !found {
			continue
		}
		segment, tail, deeper := strings.Cut(rest, "/")
		key, err := url.PathUnescape(segment)
		if err != nil || segment == "" {
			return r
		}
		taken := r.WithContext(context.WithValue(r.Context(), keyInPath{}, key))
		at := *r.URL
		at.Path, at.RawPath = prefix+"-", ""
		if deeper {
			at.Path += "/" + tail
		}
		taken.URL = &at
		return taken
	}
	return r
}
