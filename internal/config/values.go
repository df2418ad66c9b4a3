package config

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// evaluate gives an attribute's value. Nothing in its diagnostics repeats what the file says: it may be a secret.
func (c *Config) evaluate(attribute *hcl.Attribute) (cty.Value, hcl.Diagnostics) {
	if names := attribute.Expr.Variables(); len(names) > 0 {
		return cty.NilVal, problem(names[0].SourceRange().Ptr(), "text without quotes",
			`Text stands in quotes: %s = "...". A secret comes from env("NAME") or file("PATH").`, attribute.Name)
	}
	value, diags := attribute.Expr.Value(c.evaluation())
	for _, d := range diags {
		if d.Summary == "Call to unknown function" && !strings.Contains(d.Detail, "Did you mean") {
			d.Detail += ` There is "env" and "file".`
		}
	}
	return value, diags
}

// text gives the value of a setting in the file as the text that its set takes; found is false for null.
func (c *Config) text(f form, attribute *hcl.Attribute) (text string, found bool, diags hcl.Diagnostics) {
	value, diags := c.evaluate(attribute)
	if diags.HasErrors() || value.IsNull() {
		return "", false, diags
	}
	switch {
	case f == formList && isList(value):
		names, listDiags := elements(attribute, value, string(f))
		return strings.Join(names, ","), !listDiags.HasErrors(), append(diags, listDiags...)
	case f != formList && value.Type() == cty.String:
		return value.AsString(), true, diags
	case f == formBool && value.Type() == cty.Bool:
		return strconv.FormatBool(value.True()), true, diags
	case f == formSize && value.Type() == cty.Number:
		return value.AsBigFloat().Text('f', -1), true, diags
	}
	return "", false, append(diags, wrongType(attribute, string(f), value)...)
}

// texts gives a list of texts as it stands, each as it is; found is false for null.
func (c *Config) texts(attribute *hcl.Attribute, want string) (list []string, found bool, diags hcl.Diagnostics) {
	value, diags := c.evaluate(attribute)
	if diags.HasErrors() || value.IsNull() {
		return nil, false, diags
	}
	if !isList(value) {
		return nil, false, append(diags, wrongType(attribute, want, value)...)
	}
	list, listDiags := elements(attribute, value, want)
	return list, !listDiags.HasErrors(), append(diags, listDiags...)
}

func elements(attribute *hcl.Attribute, value cty.Value, want string) (list []string, diags hcl.Diagnostics) {
	for _, element := range value.AsValueSlice() {
		if element.IsNull() || element.Type() != cty.String {
			return nil, wrongType(attribute, want, element)
		}
		list = append(list, element.AsString())
	}
	return list, nil
}

func isList(value cty.Value) bool {
	return value.Type().IsTupleType() || value.Type().IsListType()
}

func wrongType(attribute *hcl.Attribute, want string, have cty.Value) hcl.Diagnostics {
	return problem(attribute.Expr.Range().Ptr(), "wrong type of "+attribute.Name, "It must be %s; here stands %s.", want, typeName(have))
}

// typeName says what a value is in the operator's words.
func typeName(value cty.Value) string {
	switch t := value.Type(); {
	case value.IsNull():
		return "null"
	case t == cty.String:
		return "text"
	case t == cty.Number:
		return "a number"
	case t == cty.Bool:
		return "true or false"
	case isList(value):
		return "a list"
	}
	return "an object"
}

// integer gives a number that is whole and fits 64 bits.
func integer(value cty.Value) (int64, bool) {
	n, accuracy := value.AsBigFloat().Int64()
	return n, accuracy == big.Exact
}
