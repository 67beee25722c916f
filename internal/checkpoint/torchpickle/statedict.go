package torchpickle

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/nlpodyssey/gopickle/pickle"
	"github.com/nlpodyssey/gopickle/types"

	"anelab/quant"
)

// stateDict runs a scanned pickle and returns its tensors by name.
func stateDict(a archive) (map[string]*view, error) {
	top, err := a.run()
	if err != nil {
		return nil, err
	}
	tensors := map[string]*view{}
	switch d := top.(type) {
	case *types.Dict:
		for _, e := range *d {
			if err := addTensor(tensors, e.Key, e.Value); err != nil {
				return nil, err
			}
		}
	case *types.OrderedDict:
		for e := d.List.Front(); e != nil; e = e.Next() {
			entry := e.Value.(*types.OrderedDictEntry)
			if err := addTensor(tensors, entry.Key, entry.Value); err != nil {
				return nil, err
			}
		}
	default:
		return nil, fmt.Errorf("got %s, want a dict of tensors", kindOf(top))
	}
	return tensors, nil
}

func addTensor(tensors map[string]*view, key, value any) error {
	name, isName := key.(string)
	v, isTensor := value.(*view)
	switch {
	case !isName:
		return fmt.Errorf("a key that is %s, want a name", kindOf(key))
	case !isTensor:
		return fmt.Errorf("%q is %s, want a tensor; save model.state_dict() and nothing else", clip(name), kindOf(value))
	case tensors[name] != nil:
		return fmt.Errorf("%q is there twice", clip(name))
	}
	tensors[name] = v
	return nil
}

// run executes the pickle. gopickle trusts what it reads: it indexes past an odd number of dict items and hashes keys that
// cannot be hashed. Those panics are its way of saying that the file is malformed, so here they become errors.
func (a archive) run() (top any, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("malformed pickle: %s", clip(fmt.Sprint(r)))
		}
	}()
	u := pickle.NewUnpickler(bytes.NewReader(a.pickle))
	u.FindClass = findClass
	u.PersistentLoad = a.storage
	top, err = u.Load()
	if err != nil {
		err = errors.New(clip(err.Error()))
	}
	return top, err
}

// storage resolves a persistent id: ("storage", class, record, device, number of elements).
func (a archive) storage(id any) (any, error) {
	tuple, ok := id.(*types.Tuple)
	if !ok || tuple.Len() != 5 || tuple.Get(0) != "storage" {
		return nil, fmt.Errorf("persistent id: got %s, want a storage", kindOf(id))
	}
	class, isClass := tuple.Get(1).(storageClass)
	key, isKey := tuple.Get(2).(string)
	count, isCount := tuple.Get(4).(int)
	if !isClass || !isKey || !isCount || count < 0 {
		return nil, fmt.Errorf("persistent id: got (storage, %s, %s, …, %s), want a class, the name of a record and a number",
			kindOf(tuple.Get(1)), kindOf(tuple.Get(2)), kindOf(tuple.Get(4)))
	}
	data, ok := a.records["data/"+key]
	if !ok {
		return nil, fmt.Errorf("storage %q: no such record", clip(key))
	}
	s := &storage{dtype: quant.DType(class), data: data}
	if len(s.data)%s.dtype.Size() != 0 || s.len() != count {
		return nil, fmt.Errorf("storage %q: %d bytes, want %d elements of %s", clip(key), len(s.data), count, s.dtype)
	}
	return s, nil
}

// kindOf names a value of the pickle in a message. It never prints what a container holds: a list may hold itself.
func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case string:
		return "a string"
	case bool, int:
		return fmt.Sprint(v)
	case *types.Dict, *types.OrderedDict:
		return "a dict"
	case *types.Tuple:
		return fmt.Sprintf("a tuple of %d", v.Len())
	case *types.List:
		return "a list"
	case *view:
		return "a tensor"
	}
	return fmt.Sprintf("a %T", v)
}
