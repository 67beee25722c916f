package view

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"anelab/anesim"
	"anelab/cmd/simulate/internal/metrics"
	"anelab/cmd/simulate/internal/results"
	"anelab/internal/shareddata"
)

var update = flag.Bool("update", false, "write docs/schema")

// documents are those that other programs read.
var documents = map[string]struct {
	title string
	of    any
}{
	"plan":           {"simulate plan --format json", planDocument{}},
	"plan_explain":   {"simulate plan --explain --format json", breakdownDocument{}},
	"sweep_record":   {"one line of simulate sweep --format jsonl", results.Record{}},
	"calibrate":      {"simulate calibrate --format json", (&Calibrate{Calibration: &anesim.Calibration{}}).Document()},
	"verify":         {"simulate verify --format json", verifyDocument{}},
	"verify_program": {"simulate verify PACKAGE --format json", verifyProgramDocument{}},
	"request":        {"simulate request --format json", requestDocument{}},
	"ideas":          {"simulate ideas --format json", ideasDocument{}},
	"inspect":        {"simulate inspect --format json", inspectDocument{}},
	"palettize":      {"simulate palettize --format json", palettizeDocument{}},
	"generate":       {"simulate generate --format json", generateDocument{}},
	"emit":           {"simulate emit --format json", emitDocument{}},
	"check":          {"simulate check --format json", (&Check{}).Document()},
	"quality":        {"simulate quality --format json", qualityDocument{}},
	"heads":          {"simulate heads --format json", headsDocument{}},
	"draft":          {"simulate draft --format json", draftDocument{}},
	"frontier":       {"simulate frontier --format json", frontierDocument{}},
}

// invariant: docs/schema describes what the types in this package write.
func TestSchemasAreGenerated(t *testing.T) {
	dir := filepath.Join(shareddata.ModuleRoot(t), "docs", "schema")
	for name, d := range documents {
		w := schemaWriter{}
		s := w.object(reflect.TypeOf(d.of))
		s["$schema"], s["title"], s["$defs"] = "https://json-schema.org/draft/2020-12/schema", d.title, w
		want, err := json.MarshalIndent(s, "", "  ")
		require.NoError(t, err)
		path := filepath.Join(dir, name+".json")
		if *update {
			require.NoError(t, os.WriteFile(path, append(want, '\n'), 0o644))
		}
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(want)+"\n", string(got), "%s: run this test with -update", path)
	}
}

// schemaWriter collects the schemas of named structs.
type schemaWriter map[string]any

// of is the JSON Schema of what encoding/json makes of a type. Keys may be added in minor versions, so other properties are
// allowed; all those listed are always there.
func (w schemaWriter) of(t reflect.Type) map[string]any {
	switch t.Kind() {
	case reflect.Pointer:
		return map[string]any{"anyOf": []any{w.of(t.Elem()), map[string]any{"type": "null"}}}
	case reflect.Slice, reflect.Array:
		return map[string]any{"type": "array", "items": w.of(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": w.of(t.Elem())}
	case reflect.Struct:
		name := strings.TrimSuffix(t.Name(), "Document")
		if w[name] == nil {
			w[name] = w.object(t)
		}
		return map[string]any{"$ref": "#/$defs/" + name}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float64:
		if t.Implements(reflect.TypeFor[json.Marshaler]()) { // null where there is no number
			return map[string]any{"type": []string{"number", "null"}}
		}
		return map[string]any{"type": "number"}
	case reflect.Int, reflect.Int64:
		return map[string]any{"type": "integer"}
	}
	panic("no schema for " + t.String())
}

func (w schemaWriter) object(t reflect.Type) map[string]any {
	properties, required := map[string]any{}, []string{}
	w.fields(t, properties, &required)
	return map[string]any{"type": "object", "properties": properties, "required": required}
}

// fields lists the fields of a struct, those of embedded structs with them; the outermost of two equal names counts.
func (w schemaWriter) fields(t reflect.Type, properties map[string]any, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" || properties[name] != nil {
			continue
		}
		s := w.of(f.Type)
		if e, err := metrics.Find(name); err == nil {
			s["description"] = e.Short
		}
		properties[name] = s
		if options != "omitempty" {
			*required = append(*required, name)
		}
	}
	for i := range t.NumField() {
		if f := t.Field(i); f.Anonymous {
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			w.fields(inner, properties, required)
		}
	}
}
