// Package chat answers: which ids does a conversation become, and which part of the ids that come back is the answer?
//
//	<bos><|turn>system⏎ … <turn|>⏎          if there is a system message, or thinking is asked for
//	<|turn>user⏎ … <turn|>⏎
//	<|turn>model⏎ … <turn|>⏎                assistant is written model
//	<|turn>model⏎                           where the answer begins
//
// Inside a model turn stand thoughts, <|channel>thought⏎ … <channel|>, calls, <|tool_call>call:name{…}<tool_call|>, and what they returned,
// <|tool_response>response:name{…}<tool_response|>.
//
// Markers are appended as ids and everything a person or a tool wrote as plain text, so nobody can write a marker. <bos> comes first and
// once. Thoughts of earlier turns are left out, as the model card asks; an empty thought is no thought.
//
// Templates are not interpreted: they are programs in a folder that somebody else made. A template is read for the markers it
// writes, which say whether it is Gemma 4's, and for the few strings in which the releases differ ([Detect]).
//
// Start at [Detect].
package chat
