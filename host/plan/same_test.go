package plan

import (
	"errors"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryFieldOfALookCounts changes one field after the other, also those that
// will be added.
func TestEveryFieldOfALookCounts(t *testing.T) {
	full := func() Disk {
		var k Disk
		fill(t, reflect.ValueOf(&k).Elem())
		k.Errs = nil
		return k
	}
	require.True(t, full().Equal(full()))
	require.True(t, Disk{}.Equal(Disk{}))
	for name, change := range changes(reflect.TypeFor[Disk]()) {
		k := full()
		change(reflect.ValueOf(&k).Elem())
		require.False(t, k.Equal(full()), name)
		require.False(t, full().Equal(k), name)
	}
	k := full()
	k.Errs = []error{errors.New("not looked at")}
	require.False(t, k.Equal(k), "what could not be looked at is never the same")
}

// fill gives every field a value that is not its zero value.
func fill(t *testing.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int:
		v.SetInt(1)
	case reflect.Uint8, reflect.Uint32:
		v.SetUint(1)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		value := reflect.New(v.Type().Elem()).Elem()
		fill(t, value)
		v.SetMapIndex(reflect.ValueOf("x"), value)
	case reflect.Interface:
		v.Set(reflect.ValueOf(errors.New("x")))
	default:
		t.Fatalf("fields of kind %s are not filled", v.Kind())
	}
}

// changes returns a function for each field at any depth that makes it another.
func changes(typ reflect.Type) map[string]func(reflect.Value) {
	out := make(map[string]func(reflect.Value))
	for i := range typ.NumField() {
		f := typ.Field(i)
		switch f.Type.Kind() {
		case reflect.Struct:
			for name, change := range changes(f.Type) {
				out[f.Name+"."+name] = func(v reflect.Value) { change(v.Field(i)) }
			}
		case reflect.Slice:
			if e := f.Type.Elem(); e.Kind() == reflect.Struct {
				for name, change := range changes(e) {
					out[f.Name+"."+name] = func(v reflect.Value) { change(v.Field(i).Index(0)) }
				}
			}
			out[f.Name] = func(v reflect.Value) { v.Field(i).Set(reflect.Append(v.Field(i), reflect.Zero(f.Type.Elem()))) }
		default:
			out[f.Name] = func(v reflect.Value) { v.Field(i).SetZero() }
		}
	}
	return out
}
