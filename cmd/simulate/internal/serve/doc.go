// Package serve answers: how do existing OpenAI clients talk to a model that was cut for the Neural Engine?
//
//	GET  /health                  how busy the server is
//	GET  /v1/models[/NAME]        the one model there is
//	POST /v1/chat/completions     a conversation
//	POST /v1/completions          text, or token ids
//
// A request is admitted, waits for one of a few slots, and is computed; more than the queue holds are told to come back (429 with
// Retry-After). A client that goes away frees its slot or its place in the queue at the next token. Answers come whole or, with "stream",
// as server-sent events.
//
// What a request asks for is done or refused: a parameter that would change the answer and is not supported is an error with its name, in
// OpenAI's form, {"error": {"message", "type", "param", "code"}}, and so is one that nobody knows. Bodies, headers and times are
// limited. A server on a loopback address answers only requests addressed to it by such a name, so that no web page can reach it
// through a name of its own.
//
// Start at [New].
package serve
