package anesim

// formatLimits are about number formats and about ops that leave the Neural Engine.
func formatLimits() []LimitRecord {
	const lut, cpu = "weight LUT granularity", "ops on CPU"
	return []LimitRecord{
		predicate("quantised-activations-iphone", IPhone, VerdictNo,
			func(s *Subject) bool { return s.ActivationBits > 0 && s.ActivationBits < 16 },
			observed("activation quantisation", "quantize/dequantize", "iPhone")),
		predicate("quantised-activations-mac", Mac, VerdictNote,
			func(s *Subject) bool { return s.ActivationBits > 0 && s.ActivationBits < 16 },
			observed("activation quantisation", "same", "Mac")),
		predicate("lut-per-block", "", VerdictNo,
			func(s *Subject) bool { return s.BlockLUT },
			observed(lut, "per-(row, block)", "Mac")),
		predicate("lut-channel-scale", Mac, VerdictNo,
			func(s *Subject) bool { return s.Bits == 4 && s.ChannelScale },
			observed(lut, "INT4 + enable_per_channel_scale", "macOS")),
		predicate("linear-4-bit", "", VerdictWarning,
			func(s *Subject) bool { return s.Bits == 4 && s.LinearWeights },
			observed("weight format", "INT4 linear", "Mac")),
		predicate("depthwise-on-cpu", "", VerdictWarning,
			func(s *Subject) bool { return s.has(OpDepthwise) },
			observed(cpu, "depthwise conv", "Mac")),
		predicate("ops-on-cpu", "", VerdictWarning,
			func(s *Subject) bool { return s.has(OpCumsum, OpArgmax, OpFloat32Cast, OpMatmul5D, OpInt32) },
			observed(cpu, "cumsum, argmax", "Mac")),
		// The three were tried together; any of them is enough for a warning, none was tried alone.
		predicate("tiled-mlp-graph-iphone", IPhone, VerdictWarning,
			func(s *Subject) bool { return s.has(OpTiledMLP, OpExp2Softmax) || s.has(OpMatmul5D) },
			observed(cpu, "MLP tile", "iPhone")),
		predicate("runtime-gather", "", VerdictWarning,
			func(s *Subject) bool { return s.has(OpExpertGather) },
			observed("runtime gather", "gather with runtime", "Mac")),
		predicate("weights-as-inputs", "", VerdictWarning,
			func(s *Subject) bool { return s.WeightInputs > 0 },
			observed("weights as inputs", "415 MB", "Mac")),
		predicate("topk-indices", "", VerdictNo,
			func(s *Subject) bool { return s.TopKOver > maxRowsANE },
			observed("topk indices", "topk after soft-cap", "coremltools")),
		predicate("flexible-shapes-iphone", IPhone, VerdictNo,
			func(s *Subject) bool { return s.FlexibleShapes },
			observed("flexible shapes", "RangeDim", "iOS")),
	}
}
