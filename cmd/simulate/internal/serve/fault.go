package serve

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"

	"anelab/internal/format"
)

// fault is an answer that says what is wrong.
type fault struct {
	Status     int
	Message    string
	Param      string // of the request
	Code       string
	RetryAfter string // seconds
}

func (f *fault) Error() string { return f.Message }

// kind is OpenAI's class of the status.
func (f *fault) kind() string {
	switch {
	case f.Status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case f.Status >= 500:
		return "server_error"
	}
	return "invalid_request_error"
}

// document is OpenAI's form of an error; what is not known is null.
func (f *fault) document() map[string]any {
	orNull := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	return map[string]any{"error": map[string]any{"message": f.Message, "type": f.kind(), "param": orNull(f.Param), "code": orNull(f.Code)}}
}

// bad is a request that cannot be understood.
func bad(param, message string) *fault {
	return &fault{Status: http.StatusBadRequest, Param: param, Message: message}
}

// index is the part of a field's name that OpenAI's param leaves out.
var index = regexp.MustCompile(`^(\w+)(\[\d+\])?(.*)$`)

// asFault finds the status for any error.
func asFault(err error) *fault {
	var f *fault
	var outside *format.Error
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, context.DeadlineExceeded):
		return &fault{Status: http.StatusGatewayTimeout, Code: "timeout", Message: "the answer took longer than a request may"}
	case errors.Is(err, context.Canceled):
		return errClosing
	case errors.As(err, &outside):
		f = bad(index.ReplaceAllString(outside.Field, "$1"), err.Error())
		if outside.Field == "context" {
			f.Param, f.Code = "messages", "context_length_exceeded"
		}
		return f
	}
	return &fault{Status: http.StatusInternalServerError, Message: err.Error()}
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, err error) {
	f := asFault(err)
	w.Header().Set("Content-Type", "application/json")
	if f.RetryAfter != "" {
		w.Header().Set("Retry-After", f.RetryAfter)
	}
	w.WriteHeader(f.Status)
	_ = json.NewEncoder(w).Encode(f.document()) // a client that is gone is told nothing
}
