package swa

// Halves returns the rows of positions p, p+1, … of the selected head as the fp16 numbers that the store keeps, without copying: row i
// begins at rows[i·stride]. count is how many of the n positions lie one behind the other from p on; zero where p is kept in
// another form.
func (v View) Halves(p, n int) (rows []uint16, stride, count int) {
	s, count := &v.past, n
	switch {
	case p >= v.first:
		s = &v.staged
	case v.sink != nil && p < v.sink.rows:
		s, count = &v.sink.segment, min(n, v.sink.rows-p)
	default:
		count = min(n, v.first-p)
	}
	if p < v.closed || s.data.elem != Float16 || s.data.bytes != nil {
		return nil, 0, 0
	}
	at := p - s.base
	if at >= s.rows {
		at %= s.rows
	}
	return s.data.h[at*s.rowStride+v.head*s.headStride+v.column:], s.rowStride, min(count, s.rows-at)
}
