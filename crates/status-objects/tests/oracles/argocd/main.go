// Judges each Module of kstatus' objects by Argo CD itself, with the script that the documentation gives, and prints a line for each.
// `go mod tidy && go run . > ../argocd.jsonl` makes the table anew.
package main

import (
	"bufio"
	"encoding/json"
	"os"

	"github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/argoproj/argo-cd/v3/util/lua"
	"github.com/argoproj/gitops-engine/pkg/health"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

type row struct {
	Case    string `json:"case"`
	Status  string `json:"status"`
	Message string `json:"message"`
}

func main() {
	script, err := os.ReadFile("health.lua")
	check(err)
	overrides := lua.ResourceHealthOverrides(map[string]v1alpha1.ResourceOverride{
		"addon-operator.io/Module": {HealthLua: string(script)},
	})
	file, err := os.Open("../../../../health-core/tests/oracles/kstatus/objects.jsonl")
	check(err)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct {
			Case   string
			Object map[string]any
		}
		check(json.Unmarshal(lines.Bytes(), &line))
		if line.Object["kind"] != "Module" {
			continue
		}
		check(out.Encode(judge(line.Case, line.Object, overrides)))
	}
	check(lines.Err())
	maintained := map[string]any{"type": "Maintenance", "status": "True"}
	stalled := map[string]any{"type": "Stalled", "status": "True", "message": "it fails"}
	for _, more := range []struct {
		name       string
		conditions []any
	}{{"in maintenance", []any{maintained}}, {"in maintenance and failed", []any{maintained, stalled}}, {"not told yet", nil}} {
		object := map[string]any{"apiVersion": "addon-operator.io/v1", "kind": "Module", "status": map[string]any{"conditions": more.conditions}}
		check(out.Encode(judge("module "+more.name, object, overrides)))
	}
}

func judge(name string, object map[string]any, overrides health.HealthOverride) row {
	found, err := health.GetResourceHealth(&unstructured.Unstructured{Object: object}, overrides)
	check(err)
	return row{name, string(found.Status), found.Message}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
