package chat_test

import (
	"fmt"

	"anelab/internal/chat"
	"anelab/internal/tokenizer"
)

func ExampleFormat_Render() {
	t, err := tokenizer.Open("../../testdata/tokenizer/small.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	f, err := chat.Detect(t)
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := f.Render([]chat.Message{{Role: chat.System, Content: "Be brief."}, {Role: chat.User, Content: "Hello"}}, chat.NoThinking)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(text)
	// Output:
	// <bos><|turn>system
	// Be brief.<turn|>
	// <|turn>user
	// Hello<turn|>
	// <|turn>model
}
