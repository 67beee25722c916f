// Package format is how every reader of outside bytes says what is wrong with them.
//
// One shape of error for all formats: which file, which field or tensor, what was found, what is allowed, and what to do.
// Readers build it in one place per format; callers use errors.As to get at the parts.
//
// Start at [Error].
package format
