package mil

import "strings"

// products sum over common dimensions of two operands.
var products = table{
	{"linear 15 | x:number weight:number bias?:number", inferLinear},
	{"matmul 15 | x:number y:number transpose_x?!:bool transpose_y?!:bool", inferMatmul},
	{"einsum 15 | values*:number/T equation!:string", inferEinsum},
	{"scaled_dot_product_attention 18 | query:float/T key:float/T value:float/T attn_mask?:mask", inferAttention},
}

// inferLinear: x [..., Din], weight [Dout, Din], bias [Dout].
func inferLinear(c *call) []Type {
	d := c.typeOf("x").DType
	x, ok := c.shape("x")
	if _, two := c.rank("weight", 2, 2); !ok || !two {
		return []Type{unranked(d)}
	}
	weight, _ := c.shape("weight")
	if len(x) == 0 || !CompatibleShapes(x[len(x)-1:], weight[1:]) {
		c.wrongShape("weight", "second dimension %s, the last of x", lastDim(x))
		return nil
	}
	c.biasOf(weight[0])
	return []Type{TensorOf(d, append(append([]int64{}, x[:len(x)-1]...), weight[0])...)}
}

func lastDim(shape []int64) string {
	if len(shape) == 0 {
		return "of nothing"
	}
	return dimString(shape[len(shape)-1])
}

// inferMatmul follows numpy: batch dimensions broadcast, an operand of rank 1 is a row (x) or a column (y) that vanishes again.
func inferMatmul(c *call) []Type {
	d := c.typeOf("x").DType
	x, okX := c.shape("x")
	y, okY := c.shape("y")
	if !okX || !okY {
		return []Type{unranked(d)}
	}
	if len(x) == 0 || len(y) == 0 {
		c.fail(ErrShape, "x", c.typeOf("x").String()+" and "+c.typeOf("y").String(), "rank 1 or more")
		return nil
	}
	rowX, columnY := len(x) == 1, len(y) == 1
	a, b := matrix(x, c.flag("transpose_x", false)), matrix(y, c.flag("transpose_y", false))
	if rowX {
		a = []int64{1, x[0]}
	}
	if columnY {
		b = []int64{y[0], 1}
	}
	inner, other := a[len(a)-1], b[len(b)-2]
	batch, ok := broadcast(a[:len(a)-2], b[:len(b)-2])
	if !ok || inner >= 0 && other >= 0 && inner != other {
		c.wrongShape("y", "a matrix that %s can be multiplied with", ShapeString(a))
		return nil
	}
	if !rowX {
		batch = append(batch, a[len(a)-2])
	}
	if !columnY {
		batch = append(batch, b[len(b)-1])
	}
	return []Type{TensorOf(d, batch...)}
}

// matrix is a copy of shape with the last two dimensions swapped if wanted.
func matrix(shape []int64, swap bool) []int64 {
	s := append([]int64{}, shape...)
	if n := len(s); swap && n >= 2 {
		s[n-2], s[n-1] = s[n-1], s[n-2]
	}
	return s
}

// inferEinsum reads an equation such as nchw,nwhu->nchu; letters without dots.
func inferEinsum(c *call) []Type {
	d := c.typeOf("values").DType
	left, right, ok := strings.Cut(strings.ReplaceAll(c.text("equation", ""), " ", ""), "->")
	terms := strings.Split(left, ",")
	bindings := c.bindings("values")
	if !ok || len(terms) != len(bindings) {
		c.fail(ErrValue, "equation", "\""+c.text("equation", "")+"\"", "one term for each of the values, and a result")
		return nil
	}
	size := map[rune]int64{}
	for i, b := range bindings {
		t, _ := c.typeOfBinding(b)
		if !t.Ranked() {
			return []Type{unranked(d)}
		}
		if len(t.Shape) != len(terms[i]) || !c.noteSizes(size, terms[i], t) {
			c.fail(ErrShape, "values", t.String(), "what the equation says: "+terms[i])
			return nil
		}
	}
	var shape []int64
	for _, letter := range right {
		n, ok := size[letter]
		if !ok {
			c.fail(ErrValue, "equation", "a letter of the result that no term has", "")
			return nil
		}
		shape = append(shape, n)
	}
	return []Type{TensorOf(d, shape...)}
}

// noteSizes records what each letter of a term stands for.
func (c *call) noteSizes(size map[rune]int64, term string, t Type) bool {
	for i, letter := range []rune(term) {
		if i >= len(t.Shape) {
			return false
		}
		old, seen := size[letter]
		n := t.Shape[i]
		if seen {
			var ok bool
			if n, ok = broadcastDim(old, n); !ok {
				return false
			}
		}
		size[letter] = n
	}
	return true
}

// inferAttention: query [B…, L, E], key [B…, S, E], value [B…, S, V].
func inferAttention(c *call) []Type {
	d := c.typeOf("query").DType
	q, ok := c.shape("query")
	if !ok {
		return []Type{unranked(d)}
	}
	if _, ok := c.rank("query", 3, 16); !ok {
		return nil
	}
	for _, p := range []string{"key", "value"} {
		if _, ok := c.rank(p, len(q), len(q)); !ok {
			return []Type{unranked(d)}
		}
	}
	k, _ := c.shape("key")
	v, _ := c.shape("value")
	n := len(q)
	if !CompatibleShapes(q[n-1:], k[n-1:]) {
		c.wrongShape("key", "the last dimension of query, %s", dimString(q[n-1]))
	}
	if !CompatibleShapes(k[n-2:n-1], v[n-2:n-1]) {
		c.wrongShape("value", "as many rows as key, %s", dimString(k[n-2]))
	}
	if mask, ok := c.shape("attn_mask"); ok {
		if _, fits := broadcast(append(append([]int64{}, q[:n-1]...), k[n-2]), mask); !fits {
			c.wrongShape("attn_mask", "a shape that stretches to [… %s, %s]", dimString(q[n-2]), dimString(k[n-2]))
		}
	}
	return []Type{TensorOf(d, append(append([]int64{}, q[:n-1]...), v[n-1])...)}
}
