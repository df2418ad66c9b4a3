package main

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"
)

// source is a file of lines as it is sent: unzipped when it is gzipped, by its content and not by its name.
type source struct {
	io.Reader
	file *os.File // nil for standard input
	size int64    // of the file as it lies there, -1 when nobody knows
	raw  atomic.Int64
}

func openSource(name string, stdin io.Reader) (*source, error) {
	s := &source{size: -1}
	from := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			s.size = info.Size()
		}
		s.file, from = f, f
	}
	in := bufio.NewReaderSize(countingReader{from, &s.raw}, 256<<10)
	s.Reader = in
	if magic, _ := in.Peek(2); string(magic) == "\x1f\x8b" {
		unzipped, err := gzip.NewReader(in)
		if err != nil {
			s.Close()
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		s.Reader = unzipped
	}
	return s, nil
}

func (s *source) Close() {
	if s.file != nil {
		_ = s.file.Close() // it was only read
	}
}

type countingReader struct {
	io.Reader
	n *atomic.Int64
}

func (r countingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.n.Add(int64(n))
	return n, err
}

// lineCounter is the body of an ingest. It passes the bytes through and keeps the numbers of the lines that went out and
// await an answer; blank lines get none.
type lineCounter struct {
	in    io.Reader
	moved func() // after bytes went out

	mu      sync.Mutex
	line    int  // lines that are complete
	filled  bool // the line at hand has something in it
	waiting []int
	sent    int   // lines that get an answer
	ended   bool  // the whole file went out
	err     error // of reading the file
}

func (c *lineCounter) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.mu.Lock()
	for _, b := range p[:n] {
		switch b {
		case '\n':
			c.complete()
		case ' ', '\t', '\r':
		default:
			c.filled = true
		}
	}
	switch {
	case err == io.EOF:
		if c.filled {
			c.complete()
		}
		c.ended = true
	case err != nil:
		c.err = err
	}
	c.mu.Unlock()
	c.moved()
	return n, err
}

func (c *lineCounter) complete() {
	c.line++
	if c.filled {
		c.waiting = append(c.waiting, c.line)
		c.sent++
	}
	c.filled = false
}

// answered gives the number of the line that an answer is for.
func (c *lineCounter) answered() (line int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 {
		return 0, false
	}
	line, c.waiting = c.waiting[0], c.waiting[1:]
	return line, true
}

// settled says whether every line went out and has its answer.
func (c *lineCounter) settled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended && len(c.waiting) == 0
}

func (c *lineCounter) progress() (sent int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sent, c.err
}

// progress is a bar on standard error, when that is a terminal.
type progress struct{ bar *progressbar.ProgressBar }

func (in *invocation) progress(name string, size int64) progress {
	f := in.terminal()
	if f == nil {
		return progress{}
	}
	return progress{progressbar.NewOptions64(size,
		progressbar.OptionSetWriter(f), progressbar.OptionSetDescription(clean(name)), progressbar.OptionShowBytes(true),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionSetWidth(30))}
}

// at gives the function that moves the bar to where a source is.
func (p progress) at(s *source) func() {
	if p.bar == nil {
		return func() {}
	}
	return func() { _ = p.bar.Set64(s.raw.Load()) } // a bar that cannot be drawn is no reason to stop
}

func (p progress) end() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
