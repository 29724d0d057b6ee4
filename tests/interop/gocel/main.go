// Evaluates device selectors with Kubernetes' own CEL and writes the answers in the layout of the conformance vectors.
//
// usage: gocel DEVICE.json EXPRESSIONS.txt >CASES.json
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/dynamic-resource-allocation/cel"
)

type run struct {
	ListTypeAttributes bool    `json:"listTypeAttributes"`
	ConsumableCapacity bool    `json:"consumableCapacity"`
	EnvType            string  `json:"envType"`
	CompileError       string  `json:"compileError,omitempty"`
	CompileErrorType   string  `json:"compileErrorType,omitempty"`
	OutputType         string  `json:"outputType,omitempty"`
	EstimatedCostMax   string  `json:"estimatedCostMax,omitempty"`
	Match              bool    `json:"match,omitempty"`
	RuntimeError       string  `json:"runtimeError,omitempty"`
	ActualCost         *uint64 `json:"actualCost,omitempty"`
}

type testCase struct {
	Name       string `json:"name"`
	Expression string `json:"expression"`
	Runs       []run  `json:"runs"`
}

type attribute struct {
	Int      *int64   `json:"int"`
	Bool     *bool    `json:"bool"`
	String   *string  `json:"string"`
	Version  *string  `json:"version"`
	Ints     []int64  `json:"ints"`
	Bools    []bool   `json:"bools"`
	Strings  []string `json:"strings"`
	Versions []string `json:"versions"`
}

type device struct {
	Driver                   string                            `json:"driver"`
	AllowMultipleAllocations bool                              `json:"allowMultipleAllocations"`
	Attributes               map[string]attribute              `json:"attributes"`
	Capacity                 map[string]struct{ Value string } `json:"capacity"`
}

func (d device) input() cel.Device {
	in := cel.Device{Driver: d.Driver, AllowMultipleAllocations: &d.AllowMultipleAllocations,
		Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{},
		Capacity:   map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{}}
	for name, a := range d.Attributes {
		in.Attributes[resourceapi.QualifiedName(name)] = resourceapi.DeviceAttribute{IntValue: a.Int, BoolValue: a.Bool,
			StringValue: a.String, VersionValue: a.Version, IntValues: a.Ints, BoolValues: a.Bools,
			StringValues: a.Strings, VersionValues: a.Versions}
	}
	for name, c := range d.Capacity {
		in.Capacity[resourceapi.QualifiedName(name)] = resourceapi.DeviceCapacity{Value: resource.MustParse(c.Value)}
	}
	return in
}

func evaluate(expression string, input cel.Device, envType environment.Type) run {
	result := run{ListTypeAttributes: true, ConsumableCapacity: true, EnvType: string(envType)}
	compiler := cel.GetCompiler(cel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true})
	compiled := compiler.CompileCELExpression(expression, cel.Options{EnvType: &envType})
	if compiled.Error != nil {
		result.CompileError = compiled.Error.Detail
		result.CompileErrorType = "InvalidError"
		if compiled.Error.Type == apiservercel.ErrorTypeInternal {
			result.CompileErrorType = "InternalError"
		}
		return result
	}
	result.OutputType = compiled.OutputType.String()
	result.EstimatedCostMax = strconv.FormatUint(compiled.MaxCost, 10)
	match, details, err := compiled.DeviceMatches(context.Background(), input)
	if err != nil {
		result.RuntimeError = err.Error()
	}
	result.Match = match
	if details != nil {
		result.ActualCost = details.ActualCost()
	}
	return result
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "gocel:", err)
		os.Exit(1)
	}
}

func main() {
	if len(os.Args) != 3 {
		fail(fmt.Errorf("usage: gocel DEVICE.json EXPRESSIONS.txt"))
	}
	text, err := os.ReadFile(os.Args[1])
	fail(err)
	var shared device
	fail(json.Unmarshal(text, &shared))
	expressions, err := os.Open(os.Args[2])
	fail(err)
	var cases []testCase
	for lines := bufio.NewScanner(expressions); lines.Scan(); {
		expression := strings.TrimSpace(lines.Text())
		if expression == "" || strings.HasPrefix(expression, "#") {
			continue
		}
		c := testCase{Name: fmt.Sprintf("peer-%03d", len(cases)), Expression: expression}
		for _, envType := range []environment.Type{environment.NewExpressions, environment.StoredExpressions} {
			c.Runs = append(c.Runs, evaluate(expression, shared.input(), envType))
		}
		cases = append(cases, c)
	}
	fail(json.NewEncoder(os.Stdout).Encode(map[string]any{"device": json.RawMessage(text), "cases": cases}))
}
