# The program for each change. plan.jq, which has the definitions, comes before it.
($values[0].copyrator.ruleNamespaces // []) as $allowed
| seen("namespaces") as $spaces
| (reduce ($spaces[] | select(.active)) as $space ({}; .[$space.name] = true)) as $active
| (reduce ($spaces[] | select(.active | not)) as $space ({}; .[$space.name] = true)) as $leaving
| (reduce seen("statuses")[] as $status ({}; .[$status.key] = $status.status)) as $statuses

# The oldest rule comes first. A rule that is being deleted counts no more.
| ([seen("rules")[]
    | select((.going or $leaving[.namespace]) | not)
    # The listed namespaces are trusted with all sources. Without a list each rule counts, with the sources beside it.
    | (.namespace as $own | any($allowed[]; . == "*" or . == $own)) as $trusted
    | select($allowed == [] or $trusted)
    | . + {$trusted, key: "\(.namespace)/\(.name)", faults: (.rule | faults)}]
   | sort_by(.created, .key)) as $rules
| (reduce ($rules[] | select(.faults != [])) as $rule ({}; .[$rule.key] = true)) as $unclear
| [$rules[] | select(.faults == []) | .namespace as $own | (.rule | homes($own)) as $named
   | . + {kind: {configmap: "ConfigMap", secret: "Secret"}[.rule.ruleType]}
   + (if .trusted then {homes: $named, closed: []} else {homes: [$named[] | select(. == $own)], closed: [$named[] | select(. != $own)]} end)]
  as $sound
# Namespaces that a rule names and may not copy from.
| (reduce $sound[] as $rule ({}; .[$rule.key] = $rule.closed)) as $closed

| {ConfigMap: seen("configmaps"), Secret: seen("secrets")} as $objects
| (reduce $objects.ConfigMap[] as $object ({}; .["\($object.namespace)/\($object.name)"] = $object)) as $maps
| (reduce $objects.Secret[] as $object ({}; .["\($object.namespace)/\($object.name)"] = $object)) as $secrets
| {ConfigMap: $maps, Secret: $secrets} as $there

# What each rule copies, and where to.
| (reduce $sound[].homes[] as $home ({}; .[$home] = true)) as $homes
| ([("ConfigMap", "Secret") as $kind | $objects[$kind][]
    | select($homes[.namespace] and .rule == null and (.going | not) and ($leaving[.namespace] | not))
    | . + {home: "\($kind)/\(.namespace)"}]
   | group_by(.home) | reduce .[] as $group ({}; .[$group[0].home] = $group)) as $offered
| [$sound[] as $rule | $rule.homes[] as $home | $offered["\($rule.kind)/\($home)"][]?
   | select(.labels | has_labels($rule.rule.selector))
   | {rule: $rule.key, kind: $rule.kind, source: {kind: $rule.kind, namespace, name, known: (.annotations != null)},
      want: (if .annotations == null then null else copy_for($rule) end)}] as $offers
| (reduce $offers[] as $offer ({}; .["\($offer.kind)/\($offer.source.namespace)/\($offer.source.name)"] = true)) as $sources
| (reduce $sound[] as $rule ({}; .[$rule.key] =
     ([$spaces[] | select(.active and (.labels | is_chosen($rule.rule.namespaceSelector // {})))
       | {name, refuses: refuses($rule.key)}]))) as $targets
| [range($offers | length) as $n | $offers[$n] as $offer | $targets[$offer.rule][]
   | select(.name != $offer.source.namespace)
   | {$n, rule: $offer.rule, kind: $offer.kind, namespace: .name, name: $offer.source.name, refuses,
      key: "\($offer.kind)/\(.name)/\($offer.source.name)"}
   # A source of the same name needs no copy.
   | select($sources[.key] | not)] as $pairs
# The first of several that want one place has it.
| (reduce ($pairs | reverse[] | select(.refuses | not)) as $pair ({}; .[$pair.key] = $pair.n)) as $holders

| [$pairs[] as $pair | $offers[$pair.n].want as $want | $there[$pair.kind]["\($pair.namespace)/\($pair.name)"] as $is
   | $pair + (
       if $pair.refuses then {refused: "the namespace refuses copies of this rule"}
       elif $holders[$pair.key] != $pair.n then
         $offers[$holders[$pair.key]] as $first
         | {refused: (if $first.rule == $pair.rule then "the source in namespace \($first.source.namespace) has the same name and comes first"
                      else "rule \($first.rule) copies an object of this name, and comes first" end)}
       elif $is == null then {state: (if $want then "missing" else "waiting" end)}
       elif $is.rule == null then {refused: "an object of this name is there, and is no copy"}
       elif $unclear[$is.rule] then {refused: "the copy belongs to rule \($is.rule), which has mistakes"}
       elif $is.going or $want == null then {state: "waiting"}
       elif $is.type != $want.type or ($is.immutable and ($is | differs_in_content($want))) then {state: "unfit"}
       elif $is | differs($want) then {state: "outdated"}
       else {state: "right"} end)] as $places

| ([$objects | ("ConfigMap", "Secret") as $kind | .[$kind][]
    | select(.rule != null and (.going | not) and $active[.namespace] and ($unclear[.rule] | not))
    | select($holders["\($kind)/\(.namespace)/\(.name)"] == null)
    # A new default of ruleNamespaces must not take objects away that pods use.
    | select((.annotations[mark("source")] // "" | split("/")[0]) as $home | any($closed[.rule][]?; . == $home) | not)
    | {size: 0, do: [operation("DeleteInBackground"; $kind)]}]
   + [$places[] | $offers[.n].want as $want
      | if .state == "missing" then
          {size: ($want.size + 1000), do: [{operation: "CreateIfNotExists", object: object(.kind; .namespace; .name; $want)}]}
        elif .state == "unfit" then
          {size: ($want.size + 1000), do: [operation("DeleteInBackground"; .kind),
            {operation: "CreateIfNotExists", object: object(.kind; .namespace; .name; $want)}]}
        elif .state == "outdated" then
          . as $place | $there[.kind]["\(.namespace)/\(.name)"] as $is
          | {size: ($want.size + 1000),
             do: [($place | operation("JSONPatch"; .kind)) + {ignoreMissingObject: true, jsonPatch: ($is | change($want))}]}
        else empty end]) as $work

| ($offers | unique_by(.source) | .[].source | select(.known | not) | marking("true")),
  (("ConfigMap", "Secret") as $kind | $objects[$kind][] | select(.values != null)
   | select($sources["\($kind)/\(.namespace)/\(.name)"] | not) | .kind = $kind | marking(null)),
  ($work | limited),
  ($places | group_by(.rule) | reduce .[] as $group ({}; .[$group[0].rule] = $group)) as $by_rule
  | ($rules[] | . as $rule | ($statuses[.key] // {}) as $now
     | ($by_rule[.key] // []) as $own
     | ([$own[] | select(.refused)]) as $places
     | ($own | length - ($places | length)) as $wanted
     | ([$closed[.key][]? | {namespace: ., name: "*", refused: "rules in namespace \($rule.namespace) may not copy from here"}]) as $closed
     | ($closed + $places) as $refused
     | ([$own[] | select(.state == "right")] | length) as $copies
     | ([$offers[] | select(.rule == $rule.key)] | length) as $count
     | (if .faults != [] then
          $now + {observedGeneration: .generation, conditions: [condition($now | old_condition; "False"; "Mistake";
            (.faults | join("; ")) + "; existing copies stay as they are"; .generation)]}
        else
          {observedGeneration: .generation, sources: $count, wanted: $wanted, copies: $copies, refused: ($refused | length),
           refusals: [$refused[:10][] | {namespace, name, reason: .refused}],
           conditions: [
             if $closed != [] then condition($now | old_condition; "False"; "SourceRefused";
               "list \($rule.namespace) in copyrator.ruleNamespaces to copy from \($closed | map(.namespace) | join(", ")); existing copies stay as they are";
               $rule.generation)
             elif $copies < $wanted then condition($now | old_condition; "False"; "Copying"; "\($copies) of \($wanted) copies are up to date"; $rule.generation)
             elif $count == 0 then condition($now | old_condition; "True"; "NoSource"; "no object has the labels of the selector"; $rule.generation)
             elif $refused != [] then condition($now | old_condition; "True"; "Refused"; "all copies are up to date, and \($refused | length) places refuse one"; $rule.generation)
             else condition($now | old_condition; "True"; "Copied"; "all copies are up to date"; $rule.generation) end]}
        end) as $new
     | write_status($rule; $now; $new))
