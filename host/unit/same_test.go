package unit

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryFieldOfAStatusCounts sets one field after the other, also those that
// will be added.
func TestEveryFieldOfAStatusCounts(t *testing.T) {
	require.True(t, Status{}.Equal(Status{}))
	tried := 0
	var try func(whole *Status, v reflect.Value, name string)
	try = func(whole *Status, v reflect.Value, name string) {
		if v.Kind() == reflect.Struct {
			for i := range v.NumField() {
				try(whole, v.Field(i), name+"."+v.Type().Field(i).Name)
			}
			return
		}
		switch v.Kind() {
		case reflect.String:
			v.SetString("x")
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Int32, reflect.Int64:
			v.SetInt(1)
		case reflect.Uint32:
			v.SetUint(1)
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		default:
			t.Fatalf("%s is a %s", name, v.Kind())
		}
		require.False(t, whole.Equal(Status{}), name)
		require.False(t, Status{}.Equal(*whole), name)
		require.True(t, whole.Equal(*whole), name)
		v.SetZero()
		tried++
	}
	var s Status
	try(&s, reflect.ValueOf(&s).Elem(), "Status")
	require.Greater(t, tried, 15)
}
