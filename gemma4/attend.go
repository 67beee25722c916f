package gemma4

import (
	"anelab/attention"
	"anelab/swa"
)

// oneJob is the attention of one token in one layer, shared among the cores in two ways: scores by blocks of positions, the
// mix by blocks of columns. Sums do not change, because a score belongs to one position and a mixed value to one column.
type oneJob struct {
	m      *Model
	q, out []float32 // [H, d]
	d      int
	k, v   swa.View
	spans  []swa.Span
	n      int           // positions in spans
	heads  attention.Run // that see spans
	scores []float32     // [heads, n]
	phase  phase
}

// phase is what the rows of the job are.
type phase uint8

const (
	scorePositions phase = iota // a row is positionBlock positions
	normHeads                   // a row is one head
	mixColumns                  // a row is columnBlock columns
)

const (
	positionBlock = 256
	columnBlock   = 64
)

// attendOne is attention.Attend for one token.
func (m *Model) attendOne(p *Pass, y Layer, store swa.Store) {
	j, policy := &p.ws.one, m.policies[y.Index]
	j.m, j.q, j.out, j.d = m, p.ws.q, p.ws.mixed, y.HeadDim
	for _, r := range m.runs[y.Index] {
		j.spans = policy.Visible(j.spans[:0], r.Group, p.First)
		j.n, j.heads = swa.Count(j.spans), r
		j.k, j.v = store.Keys().Head(r.KV), store.Values().Head(r.KV)
		j.run()
	}
}

// run is the three phases of one set of heads.
func (j *oneJob) run() {
	heads := j.heads.Hi - j.heads.Lo
	if cap(j.scores) < heads*j.n { // one more position every step: grow in large steps
		j.scores = make([]float32, 2*heads*j.n)
	}
	j.scores = j.scores[:heads*j.n]
	j.phase = scorePositions
	j.m.a.Parallel((j.n+positionBlock-1)/positionBlock, 1, j)
	j.phase = normHeads
	j.m.a.Parallel(heads, 1+1024/max(j.n, 1), j)
	j.phase = mixColumns
	j.m.a.Parallel((j.d+columnBlock-1)/columnBlock, 1+1024/max(j.n, 1), j)
}

func (j *oneJob) Run(lo, hi int) {
	for i := lo; i < hi; i++ {
		switch j.phase {
		case scorePositions:
			j.score(i*positionBlock, min((i+1)*positionBlock, j.n))
		case normHeads:
			j.m.a.Softmax(j.scores[i*j.n:(i+1)*j.n], j.spans)
		default:
			j.mix(i*columnBlock, min((i+1)*columnBlock, j.d))
		}
	}
}

// score fills the scores of the visible positions number lo to hi−1.
func (j *oneJob) score(lo, hi int) {
	heads, n := j.heads.Hi-j.heads.Lo, hi-lo
	s := scratches.Get().(*attention.Scratch)
	defer scratches.Put(s)
	part, spans := s.Room(heads*n), s.Slice(j.spans, lo, hi)
	j.m.a.Scores(part, j.q[j.heads.Lo*j.d:j.heads.Hi*j.d], j.k, spans)
	for h := range heads {
		copy(j.scores[h*j.n+lo:h*j.n+hi], part[h*n:])
	}
}

// mix fills columns [lo, hi) of the heads' outputs.
func (j *oneJob) mix(lo, hi int) {
	heads, w := j.heads.Hi-j.heads.Lo, hi-lo
	s := scratches.Get().(*attention.Scratch)
	defer scratches.Put(s)
	part := s.Room(heads * w)
	j.m.a.Mix(part, j.scores, j.v.Columns(lo, hi), j.spans)
	for h := range heads {
		copy(j.out[(j.heads.Lo+h)*j.d+lo:], part[h*w:(h+1)*w])
	}
}
