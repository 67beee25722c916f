package serve

import (
	"context"
	"errors"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/stretchr/testify/require"
)

// official is OpenAI's own client library, pointed at the server.
func official(t testing.TB, s *started) openai.Client {
	t.Helper()
	return openai.NewClient(option.WithBaseURL(s.url+"/v1"), option.WithAPIKey("none"), option.WithMaxRetries(0), option.WithHTTPClient(client(t)))
}

func conversation() openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model:       "tiny",
		Messages:    []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("be brief"), openai.UserMessage("Hello"), openai.AssistantMessage("Hi"), openai.UserMessage("Go on")},
		MaxTokens:   openai.Int(17),
		Temperature: openai.Float(1.2),
		TopP:        openai.Float(0.9),
		Seed:        openai.Int(7),
	}
}

func TestOfficialClientStreams(t *testing.T) { // invariant: pieces are the whole, and the accumulator understands them
	s := start(t, quick(), nil)
	c := official(t, s)
	whole, err := c.Chat.Completions.New(context.Background(), conversation())
	require.NoError(t, err)
	require.Equal(t, "tiny", whole.Model)
	require.Equal(t, "length", whole.Choices[0].FinishReason)
	require.EqualValues(t, 17, whole.Usage.CompletionTokens)
	require.Equal(t, whole.Usage.PromptTokens+17, whole.Usage.TotalTokens)
	require.NotEmpty(t, whole.Choices[0].Message.Content)

	ask := conversation()
	ask.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := c.Chat.Completions.NewStreaming(context.Background(), ask)
	accumulated := openai.ChatCompletionAccumulator{}
	pieces := 0
	for stream.Next() {
		require.True(t, accumulated.AddChunk(stream.Current()))
		pieces++
	}
	require.NoError(t, stream.Err())
	require.Greater(t, pieces, 5)
	require.Equal(t, whole.Choices[0].Message.Content, accumulated.Choices[0].Message.Content, "the same seed, the same text")
	require.Equal(t, "length", accumulated.Choices[0].FinishReason)
	require.Equal(t, whole.Usage.TotalTokens, accumulated.Usage.TotalTokens)
}

func TestOfficialClientCompletesAndLists(t *testing.T) { // invariant
	s := start(t, quick(), nil)
	c := official(t, s)
	models, err := c.Models.List(context.Background())
	require.NoError(t, err)
	require.Len(t, models.Data, 1)
	require.Equal(t, "tiny", models.Data[0].ID)
	one, err := c.Models.Get(context.Background(), "tiny")
	require.NoError(t, err)
	require.Equal(t, "tiny", one.ID)

	ask := openai.CompletionNewParams{Model: "tiny", Prompt: openai.CompletionNewParamsPromptUnion{OfString: openai.String("Hello")}, MaxTokens: openai.Int(9), Temperature: openai.Float(0), Logprobs: openai.Int(2)}
	text, err := c.Completions.New(context.Background(), ask)
	require.NoError(t, err)
	require.Len(t, text.Choices[0].Logprobs.Tokens, 9)
	for i, top := range text.Choices[0].Logprobs.TopLogprobs {
		require.Len(t, top, 2)
		require.InDelta(t, top[text.Choices[0].Logprobs.Tokens[i]], text.Choices[0].Logprobs.TokenLogprobs[i], 1e-12, "greedy takes the likeliest")
	}
	ids, err := s.engine.Tokenizer.Encode("Hello")
	require.NoError(t, err)
	var tokens []int64
	for _, id := range s.engine.Tokenizer.Prompt(ids) {
		tokens = append(tokens, int64(id))
	}
	ask.Prompt = openai.CompletionNewParamsPromptUnion{OfArrayOfTokens: tokens}
	byIDs, err := c.Completions.New(context.Background(), ask)
	require.NoError(t, err)
	require.Equal(t, text.Choices[0].Text, byIDs.Choices[0].Text)

	stream := c.Completions.NewStreaming(context.Background(), ask)
	joined := ""
	for stream.Next() {
		joined += stream.Current().Choices[0].Text
	}
	require.NoError(t, stream.Err())
	require.Equal(t, text.Choices[0].Text, joined)
}

func TestOfficialClientReadsLogProbs(t *testing.T) { // invariant
	s := start(t, quick(), nil)
	ask := conversation()
	ask.Logprobs, ask.TopLogprobs, ask.Temperature = openai.Bool(true), openai.Int(3), openai.Float(0)
	c := official(t, s)
	whole, err := c.Chat.Completions.New(context.Background(), ask)
	require.NoError(t, err)
	require.Len(t, whole.Choices[0].Logprobs.Content, 17)
	for _, k := range whole.Choices[0].Logprobs.Content {
		require.Len(t, k.TopLogprobs, 3)
		require.LessOrEqual(t, k.Logprob, 0.0)
		require.Equal(t, k.Logprob, k.TopLogprobs[0].Logprob)
	}
}

func TestOfficialClientUnderstandsErrors(t *testing.T) { // hand
	s := start(t, quick(), nil)
	ask := conversation()
	ask.MaxTokens = openai.Int(5000)
	c := official(t, s)
	_, err := c.Chat.Completions.New(context.Background(), ask)
	var fault *openai.Error
	require.True(t, errors.As(err, &fault), "%v", err)
	require.Equal(t, 400, fault.StatusCode)
	require.Equal(t, "context_length_exceeded", fault.Code)
	require.Equal(t, "invalid_request_error", fault.Type)

	ask = conversation()
	ask.Stop = openai.ChatCompletionNewParamsStopUnion{OfString: openai.String("")}
	stream := c.Chat.Completions.NewStreaming(context.Background(), ask)
	require.False(t, stream.Next())
	require.True(t, errors.As(stream.Err(), &fault), "%v", stream.Err())
	require.Equal(t, "stop", fault.Param)
}

func TestOfficialClientCancels(t *testing.T) { // hand
	s := start(t, quick(), nil)
	ctx, cancel := context.WithCancel(context.Background())
	ask := conversation()
	ask.MaxTokens = openai.Int(150)
	c := official(t, s)
	stream := c.Chat.Completions.NewStreaming(ctx, ask)
	require.True(t, stream.Next())
	cancel()
	for stream.Next() {
	}
	require.Error(t, stream.Err())
	waitFor(t, "the slot", func() bool { busy, waiting := s.loop.load(); return busy+waiting == 0 })
}
