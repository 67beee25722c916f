package gemma4

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"

	"anelab/internal/format"
)

// fieldNames lists the JSON names of Config.
func fieldNames() []string {
	t := reflect.TypeFor[Config]()
	names := make([]string, t.NumField())
	for i := range names {
		names[i] = t.Field(i).Tag.Get("json")
	}
	return names
}

// decodeFields fills c field by field, so that an error names the field. null leaves the zero value.
func decodeFields(path string, raw map[string]json.RawMessage, c *Config) error {
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("json")
		text, ok := raw[name]
		if !ok || string(bytes.TrimSpace(text)) == "null" {
			continue
		}
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.DisallowUnknownFields()
		if err := dec.Decode(v.Field(i).Addr().Interface()); err != nil {
			return &format.Error{Path: path, Field: name, Got: clip(text),
				Want: strings.TrimPrefix(v.Field(i).Type().String(), "gemma4."), Err: err}
		}
	}
	return nil
}

// Text is a config.json of this configuration in the flat form; ParseConfig reads it back.
func (c Config) Text() ([]byte, error) {
	fields := map[string]any{"model_type": "gemma4_text", "hidden_activation": "gelu_pytorch_tanh", "tie_word_embeddings": true}
	v := reflect.ValueOf(c)
	for i := range v.NumField() {
		fields[v.Type().Field(i).Tag.Get("json")] = v.Field(i).Interface()
	}
	return json.MarshalIndent(fields, "", "  ")
}
