package speculate

import "slices"

// Suffix is suffix decoding (Oliaro et al., SuffixDecoding: A Model-Free Approach to Speeding Up Large Language Model Inference,
// 2024): a tree of everything seen, cut off at a depth, with how often each path occurred. Of the matches of the newest tokens it
// follows the one whose greedy continuation promises the most accepted tokens.
type Suffix struct {
	depth int
	root  *node
	open  []*node // ends of the paths that the next token extends, the longest first
	tail  []int   // the newest tokens, at most depth−1
}

// node is a path of tokens from the root.
type node struct {
	count int // occurrences
	last  int // when it was last walked, to prefer the newer of two continuations
	next  map[int]*node
}

// leastPath is the probability below which a draft is not worth its row in the verify call.
const leastPath = 0.1

// NewSuffix keeps paths of at most depth tokens.
func NewSuffix(depth int) *Suffix {
	if depth < 2 {
		panic("speculate: a suffix tree needs paths of two tokens and more")
	}
	return &Suffix{depth: depth, root: &node{}}
}

// See adds the paths that end in each token.
func (s *Suffix) See(tokens ...int) {
	for _, token := range tokens {
		s.root.count++
		if len(s.open) == s.depth {
			s.open = s.open[1:]
		}
		s.open = append(s.open, s.root)
		for i, n := range s.open {
			s.open[i] = n.step(token, s.root.count)
		}
		if s.tail = append(s.tail, token); len(s.tail) == s.depth {
			s.tail = s.tail[1:]
		}
	}
}

// step walks to a child, which is made where it is missing.
func (n *node) step(token, now int) *node {
	c := n.next[token]
	if c == nil {
		if n.next == nil {
			n.next = map[int]*node{}
		}
		c = &node{}
		n.next[token] = c
	}
	c.count++
	c.last = now
	return c
}

// Draft follows the match that promises most; of equal promises the longest match.
func (s *Suffix) Draft(most int) []int {
	var best []int
	promise := 0.0
	for from := range s.tail {
		n := s.find(s.tail[from:])
		if n == nil {
			continue
		}
		if draft, sum := s.follow(n, s.tail[from:], most); sum > promise {
			best, promise = draft, sum
		}
	}
	return best
}

// find is the node of a path, nil if it never occurred.
func (s *Suffix) find(path []int) *node {
	n := s.root
	for _, t := range path {
		if n = n.next[t]; n == nil {
			return nil
		}
	}
	return n
}

// follow walks down from a match by the most frequent token, and re-enters the tree behind the drafted tokens where the walk
// reaches its depth. The second result is the expected number of accepted drafts: the sum of the path's probabilities.
func (s *Suffix) follow(n *node, match []int, most int) (draft []int, promise float64) {
	path, p := slices.Clone(match), 1.0
	for len(draft) < most {
		token, share := n.likeliest()
		if p *= share; share == 0 || p < leastPath {
			break
		}
		draft, promise = append(draft, token), promise+p
		path = append(path, token)
		n = n.next[token]
		for n != nil && len(n.next) == 0 && len(path) > 1 {
			path = path[1:]
			n = s.find(path)
		}
		if n == nil {
			break
		}
	}
	return draft, promise
}

// likeliest is the child seen most often, the newest of equals, and its share of all; the newest occurrence of a path has no
// continuation yet, so shares are of those that have one.
func (n *node) likeliest() (token int, share float64) {
	var best *node
	total := 0
	for t, c := range n.next {
		total += c.count
		if best == nil || c.count > best.count || c.count == best.count && c.last > best.last {
			token, best = t, c
		}
	}
	if best == nil {
		return 0, 0
	}
	return token, float64(best.count) / float64(total)
}
