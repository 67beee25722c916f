package talk

import "strings"

// stopper cuts a text that comes in pieces at the first of several stop texts, and holds back what may be the beginning of one.
type stopper struct {
	stops []string
	held  string
}

func newStopper(stops []string) *stopper { return &stopper{stops: stops} }

// push returns the text that may be shown, and whether a stop text has ended it.
func (s *stopper) push(text string) (shown string, stopped bool) {
	if len(s.stops) == 0 {
		return text, false
	}
	s.held += text
	if i := s.first(); i >= 0 {
		shown, s.held = s.held[:i], ""
		return shown, true
	}
	keep := 0
	for _, stop := range s.stops {
		for n := min(len(stop)-1, len(s.held)); n > keep; n-- {
			if strings.HasPrefix(stop, s.held[len(s.held)-n:]) {
				keep = n
			}
		}
	}
	shown, s.held = s.held[:len(s.held)-keep], s.held[len(s.held)-keep:]
	return shown, false
}

// first is where the earliest stop text begins; −1 = nowhere.
func (s *stopper) first() int {
	at := -1
	for _, stop := range s.stops {
		if i := strings.Index(s.held, stop); i >= 0 && (at < 0 || i < at) {
			at = i
		}
	}
	return at
}

// flush returns what was held back in vain.
func (s *stopper) flush() string {
	rest := s.held
	s.held = ""
	return rest
}
