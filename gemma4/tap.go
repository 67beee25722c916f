package gemma4

// Point names a tensor inside the forward pass, as the goldens name them (spec design.md D6).
type Point string

// The closed list of points, in the order in which a pass visits them.
const (
	PointRopeCosSliding Point = "rope_cos.sliding" // [T, d]
	PointRopeSinSliding Point = "rope_sin.sliding"
	PointRopeCosFull    Point = "rope_cos.full"
	PointRopeSinFull    Point = "rope_sin.full"
	PointEmbeds         Point = "embeds"           // [T, D], scaled
	PointPLE            Point = "per_layer_inputs" // [T, L, P], combined
	PointQ              Point = "q"                // [T, H, d], after norm and RoPE
	PointK              Point = "k"                // [T, K, d], as attention reads it: a shared layer gives its donor's
	PointV              Point = "v"                // [T, K, d]
	PointProbs          Point = "probs"            // [H, T, positions], zero where not visible
	PointAttnOut        Point = "attn_out"         // [T, D], after o_proj, before the norm
	PointFFNOut         Point = "ffn_out"          // [T, D], after down_proj, before the norm
	PointPLEOut         Point = "ple_out"          // [T, D], after per_layer_projection, before the norm
	PointHidden         Point = "hidden"           // [T, D], output of the layer, after layer_scalar
	PointFinalNorm      Point = "final_norm"       // [T, D]
	PointLogitsPre      Point = "logits_pre"       // [T, V], before the soft-cap
	PointLogits         Point = "logits"           // [T, V]
)

// Tap is one named intermediate tensor of a call.
type Tap struct {
	Point Point
	Layer int // −1 for points outside the layers
	First int // absolute position of row 0
	Shape []int
	Data  []float32 // valid only during the call of the Tracer
}

// Tracer receives taps in the order of the points, layer by layer.
type Tracer func(Tap)
