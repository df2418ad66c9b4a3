package httpapi

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"net/http"
	"strings"
)

// The status page is one file without data: it asks /v1/status and /v1/work-items like any other client, and shows every
// value as text. The policy lets it run only its own script and reach only this host.

//go:embed page.html
var pageText []byte

var pagePolicy = "default-src 'none'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'" +
	"; script-src " + hashOf("script") + "; style-src " + hashOf("style")

// hashOf is the policy's source for the text of the page's one element of a name.
func hashOf(element string) string {
	text := string(pageText)
	_, text, _ = strings.Cut(text, "<"+element+">")
	text, _, _ = strings.Cut(text, "</"+element+">")
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func (a *API) page(w http.ResponseWriter, _ *http.Request, _ caller) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-cache")
	_, _ = w.Write(pageText) // a browser that went away is not told anything
}
