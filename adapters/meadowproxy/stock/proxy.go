package stock

// MeadowProxy: which requests are let through to the REST service, and how its answers come back.

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// headMax is what Node takes for a request line with its headers.
const headMax = 16 * 1024

// proxy is the configuration of a process. It is lost with the process.
type proxy struct {
	allowWrites bool
	patterns    []pattern
}

type pattern struct {
	source string // as JavaScript shows it
	is     *regexp.Regexp
}

func newProxy() proxy {
	var p proxy
	p.allowWrites = true
	_, _ = p.allow(`^\/?1\.0\/[a-z0-9][a-z0-9-]{0,63}\/`) // it compiles
	return p
}

// allow adds a pattern unless it is there.
func (p *proxy) allow(text string) (added bool, err error) {
	is, err := regexp.Compile(text)
	if err != nil {
		return false, err
	}
	source := escapeSlashes(text)
	for _, have := range p.patterns {
		if have.source == source {
			return false, nil
		}
	}
	p.patterns = append(p.patterns, pattern{source, is})
	return true, nil
}

// escapeSlashes is the source of a JavaScript expression: slashes outside of brackets are escaped.
func escapeSlashes(text string) string {
	var b strings.Builder
	inClass := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			b.WriteByte(c)
			i++
			b.WriteByte(text[i])
			continue
		case c == '[':
			inClass = true
		case c == ']':
			inClass = false
		case c == '/' && !inClass:
			b.WriteByte('\\')
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

func (p *proxy) sources() []string {
	list := []string{}
	for _, one := range p.patterns {
		list = append(list, one.source)
	}
	return list
}

func (d *Databeacon) updateProxyConfig(s json.RawMessage) (outputs any, failed string) {
	var settings struct {
		PathAllowlist []string
		AllowWrites   *bool
	}
	if err := json.Unmarshal(s, &settings); err != nil {
		return nil, "MeadowProxy: PathAllowlist must be an array of strings."
	}
	added := 0
	for _, text := range settings.PathAllowlist {
		isNew, err := d.proxy.allow(text)
		if err != nil {
			return nil, "Invalid regular expression: /" + text + "/"
		}
		if isNew {
			added++
		}
	}
	if settings.AllowWrites != nil {
		d.proxy.allowWrites = *settings.AllowWrites
	}
	return map[string]any{
		"Success": true, "PatternsAdded": added,
		"ActiveConfig": map[string]any{"AllowWrites": d.proxy.allowWrites, "PathAllowlist": d.proxy.sources()},
	}, ""
}

// answer is what the REST service says.
type answer struct {
	status  int
	body    []byte
	html    bool
	headers object
}

func (d *Databeacon) request(s json.RawMessage) (outputs any, failed string) {
	settings := value{raw: s}.members()
	text := func(name string) string {
		if v, ok := settings.get(name); ok && v.isString() {
			return v.text()
		}
		return ""
	}
	method, path, user := strings.ToUpper(text("Method")), text("Path"), text("RemoteUser")
	switch {
	case method == "":
		return nil, "MeadowProxy: Method is required."
	case !d.proxy.allowWrites && method != http.MethodGet && method != http.MethodHead:
		return nil, "MeadowProxy: writes are disabled."
	case !d.proxy.allows(path):
		return nil, "MeadowProxy: path is not in the allowlist."
	}
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	if strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, "MeadowProxy: loopback request failed: Request path contains unescaped characters"
	}
	if user == "" {
		user = "anonymous"
	}
	if method != http.MethodGet && method != http.MethodHead {
		d.mu.Lock()
		d.users[user]++
		d.mu.Unlock()
	}
	session := ""
	if v, ok := settings.get("Session"); ok && (v.isObject() || v.isString()) {
		session = v.compact()
	}
	if len(method)+len(path)+len(user)+len(session)+len(loopbackHead) > headMax {
		return map[string]any{"Status": http.StatusRequestHeaderFieldsTooLarge, "Headers": map[string]string{"connection": "close"}, "Body": ""}, ""
	}
	began := time.Now()
	a, cost := d.rest(method, path, []byte(text("Body")))
	d.pace.charge(d, began, cost)
	return a.outputs(method), ""
}

// loopbackHead is about what stands in a request beside its path.
const loopbackHead = "GET  HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 000\r\nX-DataBeacon-MeadowProxy: 1\r\n" +
	"X-Beacon-User: \r\nHost: 127.0.0.1:8389\r\nConnection: keep-alive\r\n\r\n"

func (p *proxy) allows(path string) bool {
	for _, one := range p.patterns {
		if one.is.MatchString(path) {
			return true
		}
	}
	return false
}

func (a answer) outputs(method string) map[string]any {
	if method == http.MethodHead {
		a.body = nil
	}
	headers := map[string]string{"server": "restify"}
	kind := "application/json"
	if a.html {
		kind = "text/html; charset=utf-8"
		headers["content-security-policy"] = "default-src 'none'"
		headers["x-content-type-options"] = "nosniff"
	}
	headers["content-type"] = kind
	headers["content-length"] = strconv.Itoa(len(a.body))
	headers["date"] = time.Now().UTC().Format(http.TimeFormat)
	headers["connection"] = "keep-alive"
	headers["keep-alive"] = "timeout=5"
	for _, m := range a.headers {
		headers[m.name] = m.value.text()
	}
	return map[string]any{"Status": a.status, "Headers": headers, "Body": glued(a.body)}
}

// pieceMax is how much of an answer the loopback gives at once, with the headers in the first piece.
const pieceMax = 64 << 10

const headersSize = 177

// glued puts an answer together as the original does: each piece is read as a text of its own. Of a character on the border its first
// bytes become one U+FFFD, and each of the others one more.
func glued(body []byte) string {
	var all strings.Builder
	for border := pieceMax - headersSize; len(body) > 0; border = pieceMax {
		piece := body[:min(border, len(body))]
		body = body[len(piece):]
		for len(piece) > 0 && !utf8.RuneStart(piece[0]) {
			all.WriteRune(utf8.RuneError)
			piece = piece[1:]
		}
		whole := len(piece)
		for whole > 0 && !utf8.RuneStart(piece[whole-1]) {
			whole--
		}
		if whole--; len(body) == 0 || whole < 0 || utf8.FullRune(piece[whole:]) {
			whole = len(piece)
		}
		all.Write(piece[:whole])
		if whole < len(piece) {
			all.WriteRune(utf8.RuneError)
		}
	}
	return all.String()
}

// done is an answer with a JSON body.
func done(body json.RawMessage) answer { return answer{status: http.StatusOK, body: body} }

// coded is an answer of the router itself.
func coded(status int, code, message string) answer {
	return answer{status: status, body: object{{"code", of(code)}, {"message", of(message)}}.json()}
}

// nowhere is the answer to a GET that no route takes.
func nowhere(path string) answer {
	shown := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;").Replace(strings.TrimPrefix(path, "/"))
	return answer{status: http.StatusNotFound, html: true, body: fmt.Appendf(nil,
		"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Error</title>\n</head>\n<body>\n<pre>Cannot GET %s</pre>\n</body>\n</html>\n", shown)}
}
