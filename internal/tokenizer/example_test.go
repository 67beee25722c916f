package tokenizer_test

import (
	"fmt"

	"anelab/internal/tokenizer"
)

func ExampleTokenizer_Encode() {
	t, err := tokenizer.Open("../../testdata/tokenizer/small.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	ids, err := t.Encode("the window\n\n<|turn>")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, id := range t.Prompt(ids) {
		fmt.Printf("%q ", t.Piece(id))
	}
	fmt.Println()
	// Output: "<bos>" "t" "he" "▁window" "\n\n" "<" "|" "turn" ">"
}

func ExampleStream() {
	t, err := tokenizer.Open("../../testdata/tokenizer/small.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	ids, err := t.Encode("🧿!") // U+1F9FF has no piece: four byte pieces
	if err != nil {
		fmt.Println(err)
		return
	}
	s := t.Stream(tokenizer.HideSpecials)
	for _, id := range ids {
		fmt.Printf("%q ", s.Push(id))
	}
	fmt.Printf("%q\n", s.Flush())
	// Output: "" "" "" "🧿" "!" ""
}
