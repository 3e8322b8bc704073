# Compares all copies with the copies that the rules want, and prints the operations for the differences. Input: the current context.
# $values is a list with the values of the module; $most and $bytes limit the writes of one run.
# Must never write to an object that is no copy, except for the mark of a source.

def mark($name): "copyrator.flant.com/" + $name;
def seen($binding):
  # An unknown list of rules is not an empty one, for which all copies would be removed.
  .snapshots[$binding] // (if .type == "Group" then error("there is no snapshot of \($binding)") else [] end)
  | map(.filterResult | select(. != null));
def path_of: split("~") | join("~0") | split("/") | join("~1");

# Does one of the patterns match the key? A star at the end of a pattern stands for any rest.
def fits($patterns):
  . as $key | any($patterns[]; . as $pattern
    | if endswith("*") then ($key | startswith($pattern[:-1])) else $key == $pattern end);
def taken($chosen; $excluded):
  with_entries(select((.key | fits($chosen)) and (.key | fits($excluded) | not)));

# The mistakes of a rule. The API server refuses them; a rule may be older than its CRD, or have been written without it.
def is_texts: type == "array" and all(.[]; type == "string");
def is_map: type == "object" and all(.[]; type == "string");
# Names of labels and annotations: the API server would refuse each copy with another one.
def consists($letters): all(explode[]; . as $code | any($letters[]; . == $code));
def letters: [range(48; 58), range(65; 91), range(97; 123)];
def is_word: length == 0 or
  (length <= 63 and consists(letters + [45, 46, 95]) and (.[:1] | consists(letters)) and (.[-1:] | consists(letters)));
def is_domain: length > 0 and length <= 253 and consists([range(48; 58), range(97; 123), 45, 46])
  and all(split(".")[]; . != "" and (startswith("-") or endswith("-") | not));
def is_name: split("/") | if length == 2 then (.[0] | is_domain) else length == 1 end and (.[-1] | . != "" and is_word);
def fault($value; test; $field; $help): if $value == null or ($value | test) then empty else "\($field): \($help)" end;
def expression_faults:
  if type != "object" or (.key | type != "string") then "is no map with a key"
  elif .operator == "In" or .operator == "NotIn" then
    if (.values | is_texts) and .values != [] then empty else "\(.operator) needs a list of values" end
  elif .operator == "Exists" or .operator == "DoesNotExist" then empty
  else "the operator is \(.operator), write In, NotIn, Exists or DoesNotExist" end;
def metadata_faults($field):
  if . == null then empty
  elif type != "object" then "\($field): write a map with include, exclude and set"
  else
    fault(.include; is_texts; "\($field).include"; "write a list of keys"),
    fault(.exclude; is_texts; "\($field).exclude"; "write a list of keys"),
    fault(.set; is_map; "\($field).set"; "write a map of texts"),
    (.set | objects | to_entries[]
     | (select(.key | is_name | not) | "\($field).set: \(.key) cannot be a key, write a name of letters, digits, dots and dashes"),
       (select($field == "copyLabels" and (.value | type == "string" and (is_word | not)))
        | "\($field).set: the value of \(.key) cannot be a label, write at most 63 letters, digits, dots and dashes"))
  end;
def selector_faults:
  if . == null then empty
  elif type != "object" then "namespaceSelector: write a map with matchLabels and matchExpressions"
  else
    fault(.matchLabels; is_map; "namespaceSelector.matchLabels"; "write a map of labels"),
    fault(.matchExpressions; type == "array"; "namespaceSelector.matchExpressions"; "write a list"),
    ((.matchExpressions | arrays | to_entries[]) as {$key, $value}
     | $value | expression_faults | "namespaceSelector.matchExpressions[\($key)]: \(.)")
  end;
def faults:
  [(.ruleType | if . == "configmap" or . == "secret" then empty else "ruleType: write configmap or secret" end),
   (.selector | if is_map then empty else "selector: write a map of labels" end),
   fault(.namespace; type == "string"; "namespace"; "write the name of a namespace"),
   fault(.namespaces; is_texts; "namespaces"; "write a list of names of namespaces"),
   fault(.keys; is_texts; "keys"; "write a list of keys"),
   fault(.excludeKeys; is_texts; "excludeKeys"; "write a list of keys"),
   (.copyLabels | metadata_faults("copyLabels")),
   (.copyAnnotations | metadata_faults("copyAnnotations")),
   (.namespaceSelector | selector_faults)];

def homes($own): ([.namespace // empty] + (.namespaces // [])) | if . == [] then [$own] else . end
  | reduce .[] as $name ([]; if any(.[]; . == $name) then . else . + [$name] end);
def has_labels($wanted): . as $labels | all($wanted | to_entries[]; $labels[.key] == .value);
def is_chosen($selector):
  . as $labels
  | has_labels($selector.matchLabels // {})
    and all($selector.matchExpressions // [] | .[]; . as $term | $labels[$term.key] as $value
      | if $term.operator == "In" then $value != null and any($term.values[]; . == $value)
        elif $term.operator == "NotIn" then all($term.values[]; . != $value)
        elif $term.operator == "Exists" then $value != null
        else $value == null end);
# A part with a slash refuses one rule, every other text refuses all rules.
def refuses($rule):
  .refuse // "" | split(",") | map(split(" ") | join("")) | map(select(. != ""))
  | any(.[]; contains("/") == false or . == $rule);

# The copy that a rule wants of a source.
def metadata_of($rules; $default):
  with_entries(select(.key | startswith(mark("")) | not))
  | taken($rules.include // $default; $rules.exclude // [])
    + ($rules.set // {});
def copy_for($rule):
  . as $source
  | ($rule.rule.keys // ["*"]) as $chosen | ($rule.rule.excludeKeys // []) as $excluded
  | (.labels | metadata_of($rule.rule.copyLabels; ["*"])) as $labels
  | (.annotations | metadata_of($rule.rule.copyAnnotations; [])) as $annotations
  | (.data | taken($chosen; $excluded)) as $data | (.binary | taken($chosen; $excluded)) as $binary
  # Long values are compared by sums, so the copy also names the version of its source.
  | (if any($data[], $binary[]; type == "array") then {(mark("version")): .version} else {} end) as $version
  | {$data, $binary, size,
     # The API server demands certain keys of most types.
     type: (if .type == null or $data == .data then .type else "Opaque" end),
     labels: ($labels + {(mark("copy")): "true"}),
     annotations: ($annotations + $version + {
       (mark("rule")): $rule.key,
       (mark("source")): "\(.namespace)/\(.name)",
       (mark("set")): ({labels: ($labels | keys), annotations: ($annotations + $version | keys)} | tojson)}),
     values: {data: ($source.values.data | taken($chosen; $excluded)),
              binary: ($source.values.binary | taken($chosen; $excluded))}};

def content($want): {data: $want.values.data} + (if $want.binary == {} then {} else {binaryData: $want.values.binary} end);
def object($kind; $namespace; $name; $want):
  {apiVersion: "v1", kind: $kind, metadata: {namespace: $namespace, name: $name, labels: $want.labels, annotations: $want.annotations}}
  + (if $want.type then {type: $want.type} else {} end) + content($want);
# Keys that an earlier write has set, and that are not wanted any more.
def outdated($part; $want):
  (.annotations[mark("set")] // "{}" | try fromjson catch {} | if type == "object" then .[$part] else null end
   | if is_texts? then . else [] end) as $before
  | .[$part] as $now | $want[$part] as $wanted
  | [$before[] | select($now[.] != null and $wanted[.] == null)];
def differs_in_content($want): .data != $want.data or .binary != $want.binary or .annotations[mark("version")] != $want.annotations[mark("version")];
# Keys that are outdated make a difference of the annotation that lists the keys.
def differs($want):
  differs_in_content($want)
  or (.labels | has_labels($want.labels) | not)
  or (.annotations | has_labels($want.annotations) | not);
def steps($part; $want):
  .[$part] as $now | "/metadata/\($part)" as $path
  | if $now == {} then {op: "add", path: $path, value: $want[$part]}
    else
      ($want[$part] | to_entries[] | select($now[.key] != .value) | {op: "add", path: "\($path)/\(.key | path_of)", value}),
      (outdated($part; $want)[] | {op: "remove", path: "\($path)/\(path_of)"})
    end;
def change($want):
  # Refused if the object has ceased to be this copy.
  [{op: "test", path: "/metadata/annotations/\(mark("rule") | path_of)", value: .rule},
   steps("labels"; $want), steps("annotations"; $want),
   (select(differs_in_content($want))
    | {op: "add", path: "/data", value: $want.values.data},
      (if $want.binary != {} then {op: "add", path: "/binaryData", value: $want.values.binary}
       elif .binary != {} then {op: "remove", path: "/binaryData"} else empty end))];

def operation($name; $kind): {operation: $name, apiVersion: "v1", kind: $kind, namespace, name};
def marking($value): operation("MergePatch"; .kind)
  + {ignoreMissingObject: true, mergePatch: {metadata: {annotations: {(mark("source-of-copies")): $value}}}};

# At most $most items and about $bytes of values. The next run, which the changed copies cause, goes on. If there are more, each run
# begins at another item, because the first ones may fail again and again.
def limited:
  length as $all | (if $all > $most then now * 1000 | floor % $all else 0 end) as $begin
  | .[$begin:] + .[:$begin]
  | foreach .[] as $item ({count: 0, size: 0};
      {count: (.count + 1), size: (.size + $item.size), item: $item};
      select(.count <= $most and (.count == 1 or .size <= $bytes)) | .item.do[]);

def condition($old; $status; $reason; $message; $generation):
  {type: "Ready", status: $status, reason: $reason, message: $message, observedGeneration: $generation}
  | . + {lastTransitionTime: (if $old.status == .status and $old.lastTransitionTime then $old.lastTransitionTime else (now | floor | todate) end)};
def write_status($rule; $now; $new):
  # An operation only for a difference: a status that is written in each run would never rest.
  select($now != $new)
  | {operation: "JSONPatch", apiVersion: "flant.com/v1", kind: "CopyratorRule", namespace: $rule.namespace, name: $rule.name,
     subresource: "status", ignoreMissingObject: true, jsonPatch: [{op: "add", path: "/status", value: $new}]};
def old_condition: .conditions // [] | map(select(.type == "Ready")) | .[0];
