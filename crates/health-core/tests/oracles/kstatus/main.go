// Judges each object of objects.jsonl with kstatus, and prints a line for each: the status, or the error.
// `go run . > ../kstatus.jsonl` makes the table anew.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

type row struct {
	Case   string `json:"case"`
	Status string `json:"status,omitempty"`
	Error  string `json:"error,omitempty"`
}

func main() {
	file, err := os.Open("objects.jsonl")
	check(err)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	seen := map[string]bool{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		// The reader of Kubernetes, which keeps whole numbers apart from floats.
		var line map[string]any
		check(kjson.Unmarshal(lines.Bytes(), &line))
		name := line["case"].(string)
		if seen[name] {
			check(fmt.Errorf("%s is there twice", name))
		}
		seen[name] = true
		check(out.Encode(judge(name, line["object"].(map[string]any))))
	}
	check(lines.Err())
}

func judge(name string, object map[string]any) (answer row) {
	answer.Case = name
	// The library asserts types in some places, and then panics.
	defer func() {
		if reason := recover(); reason != nil {
			answer = row{Case: name, Error: fmt.Sprintf("panic: %v", reason)}
		}
	}()
	result, err := status.Compute(&unstructured.Unstructured{Object: object})
	if err != nil {
		answer.Error = err.Error()
		return answer
	}
	answer.Status = result.Status.String()
	return answer
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
