package mil

// states are read and written in program order. Buffers are the form that tensors have outside a placed program.
var states = table{
	{"read_state 18 | input:state", inferReadState},
	{"write_state 18 | input:state data:data", inferWriteState},
	{"tensor_buffer_to_tensor 17 | input:buffer", inferFromBuffer},
	{"tensor_to_tensor_buffer 17 | input:any interleave_factors?!:int strides?!:int", nil},
}

func inferReadState(c *call) []Type {
	t, _ := c.typeOf("input").AsTensor()
	return []Type{t}
}

// inferWriteState has no outputs.
func inferWriteState(c *call) []Type {
	state, _ := c.typeOf("input").AsTensor()
	if data := c.typeOf("data"); !state.Compatible(data) {
		c.fail(ErrType, "data", data.String(), state.String()+", the type of the state")
	}
	return []Type{}
}

func inferFromBuffer(c *call) []Type {
	t, _ := c.typeOf("input").AsTensor()
	return []Type{t}
}

// control ops have blocks, lists or constants.
var control = table{
	{"const 15 | val!:anything", inferConst},
	{"cond 15 | pred:bool", nil},
	{"while_loop 15 | loop_vars*:anything", nil},
	{"make_list 15 | init_length?!:int dynamic_length?!:bool elem_shape*:any dtype?!:string", nil},
	{"list_gather 15 | ls:list indices:int", nil},
	{"list_length 15 | ls:list", nil},
	{"list_read 15 | ls:list index:int", nil},
	{"list_scatter 15 | ls:list indices:int value:data", nil},
	{"list_write 15 | ls:list index:int value:data", nil},
	{"classify 15 | probabilities:float classes!:anything", nil},
}

func inferConst(c *call) []Type { return []Type{c.typeOf("val")} }
