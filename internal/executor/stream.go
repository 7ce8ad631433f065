package executor

import "bytes"

// maxLine is how many bytes of a line are logged, and how much of an unfinished one is held back.
const maxLine = 8 << 10

// stream divides one of a command's outputs into lines. Whole lines go to the tail together, so that
// the two streams do not mix within a line, unless it is longer than maxLine.
type stream struct {
	name    string
	tail    *tail
	log     *lineLog
	partial []byte // an unfinished line, not yet passed on
	long    bool   // the unfinished line has outgrown maxLine: its beginning was logged, all of it is in the tail
}

func (s *stream) write(p []byte) {
	if i := bytes.LastIndexByte(p, '\n'); i >= 0 {
		s.lines(p[:i+1])
		p = p[i+1:]
	}
	s.begin(p)
}

// lines takes the end of the unfinished line, and whole lines after it.
func (s *stream) lines(p []byte) {
	s.tail.write(s.partial, p)
	first, rest := cutLine(p)
	if !s.long {
		s.log.line(s.name, append(s.partial, first...))
	}
	s.partial, s.long = s.partial[:0], false
	for len(rest) > 0 {
		var line []byte
		line, rest = cutLine(rest)
		if !s.log.line(s.name, line) {
			s.log.skip(bytes.Count(rest, []byte{'\n'})) // counting alone keeps up with a flood
			return
		}
	}
}

// begin takes more of an unfinished line.
func (s *stream) begin(p []byte) {
	if s.long {
		s.tail.write(p)
		return
	}
	s.partial = append(s.partial, p...)
	if len(s.partial) > maxLine {
		s.flush()
		s.long = true
	}
}

// end takes what has no newline at its end for a line.
func (s *stream) end() {
	if len(s.partial) > 0 {
		s.flush()
	}
}

func (s *stream) flush() {
	s.tail.write(s.partial)
	s.log.line(s.name, s.partial)
	s.partial = s.partial[:0]
}

// cutLine divides p, which ends with a newline, after its first one; line is without it.
func cutLine(p []byte) (line, rest []byte) {
	line, rest, _ = bytes.Cut(p, []byte{'\n'})
	return line, rest
}
