//go:build unix

package process

import (
	"io"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"holdfast/ports"
)

// maxNoise is how much a program may print before its handshake. Nothing of it is kept; the limit ends a program that does
// nothing else.
const maxNoise = 8 << 20

// lastMoment is what a program gets to end by itself once its stdout ended. Only then go-plugin hears of it, and kills what gave
// no handshake: how it would have ended nobody could tell any more.
const lastMoment = time.Second

// output reads a program's stdout for ever: it finds the handshake, hands it on, and drops the rest into the log.
type output struct {
	log  *allowance
	line *io.PipeWriter  // to go-plugin: the handshake and then the end
	fail func()          // ends the program
	exit <-chan struct{} // closed when it is dead

	speaks []int  // the versions of the service that were offered
	folder string // where its socket must be

	mu        sync.Mutex
	handshake string
	noise     string // the first line that was none
	fault     error  // why this output will never do

	seen  int
	ended bool
}

// read is done when the program's stdout ends.
func (o *output) read(r io.Reader) {
	split := &lines{emit: o.take}
	_, _ = io.Copy(split, &counted{r: r, o: o})
	o.ended = true // what stands behind the last newline is no handshake
	split.flush()
	moment := time.NewTimer(lastMoment)
	defer moment.Stop()
	select {
	case <-o.exit:
	case <-moment.C:
	}
	_ = o.line.Close()
}

// counted refuses a flood without a handshake even when it has no newline.
type counted struct {
	r io.Reader
	o *output
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if c.o.found() == "" {
		if c.o.seen += n; c.o.seen > maxNoise {
			c.o.refuse(ports.InField(ports.Invalid, "plugin", "printed more than %d MiB to stdout and no handshake among it; a plugin logs to stderr", maxNoise>>20))
		}
	}
	return n, err
}

func (o *output) take(line []byte, cut int) {
	text := string(line)
	if o.found() == "" && cut == 0 && !o.ended && handshakeForm.MatchString(text) {
		if err := o.check(text); err != nil {
			o.refuse(err)
			return
		}
		o.mu.Lock()
		o.handshake = text
		o.mu.Unlock()
		// What may stand behind the protocol, a certificate, go-plugin would put into a configuration that is not there.
		fields := strings.Split(strings.TrimSpace(text), "|")
		_, _ = io.WriteString(o.line, strings.Join(fields[:5], "|")+"|\n")
		return
	}
	if strings.TrimSpace(text) == "" {
		return
	}
	o.mu.Lock()
	if o.handshake == "" && o.noise == "" {
		o.noise = text
	}
	o.mu.Unlock()
	o.log.line(hclog.Debug, "stdout noise", "text", shown(text))
}

func (o *output) found() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.handshake
}

func (o *output) refuse(err error) {
	o.mu.Lock()
	first := o.fault == nil
	if first {
		o.fault = err
	}
	o.mu.Unlock()
	if first {
		o.fail()
	}
}

// facts tells what is known of the output.
func (o *output) facts() (handshake, noise string, fault error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.handshake, o.noise, o.fault
}
