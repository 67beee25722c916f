package tokenizer

import (
	"encoding/json"
	"path/filepath"
	"strings"

	"anelab/internal/checkpoint/mapped"
	"anelab/internal/format"
	"anelab/internal/tokenizer/gguf"
)

// Names of files in a model's folder.
const (
	FileName     = "tokenizer.json"
	configName   = "tokenizer_config.json"
	templateName = "chat_template.jinja"
)

// Open reads a vocabulary from a tokenizer.json, a GGUF file, or a model's folder with a tokenizer.json. Beside a tokenizer.json it
// looks for the chat template. Nothing of the folder is executed, whatever a configuration names.
func Open(path string) (*Tokenizer, error) {
	if strings.EqualFold(filepath.Ext(path), ".gguf") {
		return openGGUF(path)
	}
	if strings.EqualFold(filepath.Ext(path), ".model") {
		return nil, &format.Error{Path: path, Got: "a sentencepiece model", Want: FileName + " or a .gguf file", Fix: "take " + FileName + " from the same folder"}
	}
	dir, name := mapped.Disk(path), FileName
	if strings.EqualFold(filepath.Ext(path), ".json") {
		dir, name = mapped.Disk(filepath.Dir(path)), filepath.Base(path)
	}
	return OpenIn(dir, name)
}

// OpenIn reads the tokenizer.json called name of a folder.
func OpenIn(dir mapped.Folder, name string) (*Tokenizer, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	v, err := ParseJSON(f.Path, f.Data)
	if err != nil {
		return nil, err
	}
	if v.ChatTemplate, err = templateOf(dir); err != nil {
		return nil, err
	}
	return New(v)
}

// openGGUF reads the metadata; the weights stay unread.
func openGGUF(path string) (*Tokenizer, error) {
	f, err := mapped.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // the vocabulary holds copies
	directory, err := gguf.Parse(path, f.Data)
	if err != nil {
		return nil, err
	}
	v, err := FromGGUF(directory)
	if err != nil {
		return nil, err
	}
	return New(v)
}

// templateOf is the chat template of a folder, "" where there is none: a file of its own, or a field of tokenizer_config.json.
func templateOf(dir mapped.Folder) (string, error) {
	if dir.Has(templateName) {
		f, err := dir.Open(templateName)
		if err != nil {
			return "", err
		}
		defer f.Close()
		return string(f.Data), nil
	}
	if !dir.Has(configName) {
		return "", nil
	}
	f, err := dir.Open(configName)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var c struct {
		ChatTemplate json.RawMessage `json:"chat_template"`
	}
	if err := json.Unmarshal(f.Data, &c); err != nil {
		return "", &format.Error{Path: f.Path, Got: "no JSON object", Err: err}
	}
	return templateText(f.Path, c.ChatTemplate)
}

// templateText reads the field's two forms: a text, or a list of named texts of which "default" counts.
func templateText(path string, data json.RawMessage) (string, error) {
	if len(data) == 0 || string(data) == "null" {
		return "", nil
	}
	var text string
	if json.Unmarshal(data, &text) == nil {
		return text, nil
	}
	var named []struct{ Name, Template string }
	if err := json.Unmarshal(data, &named); err != nil {
		return "", &format.Error{Path: path, Field: "chat_template", Err: err, Want: "a text, or a list of names and texts"}
	}
	for _, n := range named {
		if n.Name == "default" {
			return n.Template, nil
		}
	}
	return "", &format.Error{Path: path, Field: "chat_template", Got: "a list without a default", Want: `one called "default"`}
}
