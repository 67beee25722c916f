package mil

// recurrent ops run along the first dimension of x [S, N, I].
var recurrent = table{
	{"lstm 15 | x:float/T initial_h:float/T initial_c:float/T weight_ih!:float weight_hh!:float bias?!:float peephole?!:float weight_ih_back?!:float weight_hh_back?!:float " +
		"bias_back?!:float peephole_back?!:float direction?!:string output_sequence?!:bool recurrent_activation?!:string cell_activation?!:string activation?!:string clip?!:float", inferLSTM},
	{"gru 15 | x:float/T initial_h:float/T weight_ih!:float weight_hh!:float bias?!:float direction?!:string output_sequence?!:bool recurrent_activation?!:string " +
		"activation?!:string reset_after?!>18:bool input_bias?!>18:float", inferRNN},
	{"rnn 15 | x:float/T initial_h:float/T weight_ih!:float weight_hh!:float bias?!:float direction?!:string output_sequence?!:bool activation?!:string", inferRNN},
}

// inferRNN yields the sequence (or its last step) and the last state.
func inferRNN(c *call) []Type {
	d := c.typeOf("x").DType
	h := c.typeOf("initial_h")
	x, ok := c.shape("x")
	if _, three := c.rank("x", 3, 3); !ok || !three || !h.Ranked() || len(h.Shape) != 2 {
		return []Type{unranked(d), h}
	}
	steps := int64(1)
	if c.flag("output_sequence", false) {
		steps = x[0]
	}
	return []Type{TensorOf(d, steps, x[1], h.Shape[1]), h}
}

func inferLSTM(c *call) []Type {
	return append(inferRNN(c), c.typeOf("initial_c"))
}
