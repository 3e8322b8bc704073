// Evaluates the expressions of expressions.txt as the original evaluates rules of schemas, and prints a line for each: what
// comes of it. `go run . > ../cel.jsonl` makes the table anew.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"sort"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"google.golang.org/protobuf/types/known/structpb"
)

// What the expressions look at.
const self = `{
	"n": 5, "zero": 0, "neg": -3, "half": 0.5, "big": 9007199254740993, "huge": 1e300,
	"s": "text", "empty": "", "uni": "päß€𝄞", "num": "42", "line": "a\nb", "path": "a/b/c",
	"yes": true, "no": false, "nothing": null,
	"list": [1, 2, 3], "none": [], "words": ["b", "a", "b"], "mixed": [1, "a", true, null],
	"nested": [[1, 2], [3], []],
	"ports": [{"name": "http", "port": 80}, {"name": "https", "port": 443, "tls": true}],
	"map": {"a": {"x": 1}, "b": {}}, "labels": {"app": "web", "tier": "front"}, "bare": {}
}`

// What they look at if they look back.
const oldSelf = `{"n": 4, "s": "text", "list": [1, 2], "labels": {"app": "web"}}`

type row struct {
	Expression string `json:"expression"`
	Outcome    string `json:"outcome"`
	Error      string `json:"error,omitempty"`
}

func main() {
	now, before := document(self), document(oldSelf)
	shape := cel.MapType(cel.StringType, cel.DynType)
	env, err := cel.NewEnv(cel.Variable("self", shape), cel.Variable("oldSelf", shape))
	check(err)
	input := map[string]any{"self": now, "oldSelf": before}
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	check(out.Encode(map[string]any{"self": json.RawMessage(compact(self)), "oldSelf": json.RawMessage(compact(oldSelf))}))
	file, err := os.Open("expressions.txt")
	check(err)
	seen := map[string]bool{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		text := lines.Text()
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		if seen[text] {
			check(fmt.Errorf("%s is there twice", text))
		}
		seen[text] = true
		check(out.Encode(evaluate(env, input, text)))
	}
}

// An expression that gives something else than a boolean is turned into one that says what it gives.
func evaluate(env *cel.Env, input map[string]any, text string) row {
	value, err := run(env, input, text)
	if err != nil {
		if strings.Contains(err.Error(), "no such key:") {
			return row{text, "skipped", ""}
		}
		return row{text, "error", strings.SplitN(err.Error(), "\n", 2)[0]}
	}
	if flag, ok := value.(types.Bool); ok {
		return row{text, fmt.Sprint(bool(flag)), ""}
	}
	whole := fmt.Sprintf("type(%s) == %s && (%s) == %s", text, value.Type().TypeName(), text, literal(value))
	if double, ok := value.(types.Double); ok && math.IsNaN(float64(double)) {
		whole = fmt.Sprintf("(%s) != (%s)", text, text)
	}
	again, err := run(env, input, whole)
	check(err)
	if again != types.True {
		check(fmt.Errorf("%s does not hold", whole))
	}
	return row{whole, "true", ""}
}

func run(env *cel.Env, input map[string]any, text string) (ref.Val, error) {
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	program, err := env.Program(ast)
	if err != nil {
		return nil, err
	}
	value, _, err := program.Eval(input)
	return value, err
}

func literal(value ref.Val) string {
	switch value := value.(type) {
	case types.Int:
		return strconv.FormatInt(int64(value), 10)
	case types.Uint:
		return strconv.FormatUint(uint64(value), 10) + "u"
	case types.Double:
		return double(float64(value))
	case types.String:
		return strconv.Quote(string(value))
	case types.Bytes:
		return "b" + strconv.Quote(string(value))
	case types.Bool:
		return fmt.Sprint(bool(value))
	case types.Null:
		return "null"
	case types.Duration:
		return fmt.Sprintf("duration(%q)", value.Duration.String())
	case types.Timestamp:
		return fmt.Sprintf("timestamp(%q)", value.Time.UTC().Format("2006-01-02T15:04:05.999999999Z"))
	case *types.Type:
		return value.TypeName()
	case traits.Mapper:
		var parts []string
		for keys := value.Iterator(); keys.HasNext() == types.True; {
			key := keys.Next()
			parts = append(parts, literal(key)+": "+literal(value.Get(key)))
		}
		sort.Strings(parts)
		return "{" + strings.Join(parts, ", ") + "}"
	case traits.Lister:
		var parts []string
		for items := value.Iterator(); items.HasNext() == types.True; {
			parts = append(parts, literal(items.Next()))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	check(fmt.Errorf("a value of type %s cannot be written", value.Type().TypeName()))
	return ""
}

func double(number float64) string {
	switch {
	case math.IsInf(number, 1):
		return "double('+Inf')"
	case math.IsInf(number, -1):
		return "double('-Inf')"
	}
	text := strconv.FormatFloat(number, 'g', -1, 64)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return text
}

func document(text string) *structpb.Struct {
	var fields map[string]any
	check(json.Unmarshal([]byte(text), &fields))
	made, err := structpb.NewStruct(fields)
	check(err)
	return made
}

func compact(text string) []byte {
	var fields any
	check(json.Unmarshal([]byte(text), &fields))
	made, err := json.Marshal(fields)
	check(err)
	return made
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
