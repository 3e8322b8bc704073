# The program for the end of the module, after plan.jq: copies would become outdated. Sources lose their mark, and each rule tells that it is not followed.
(reduce (seen("namespaces")[] | select(.active)) as $space ({}; .[$space.name] = true)) as $active
| (reduce seen("statuses")[] as $status ({}; .[$status.key] = $status.status)) as $statuses
| ((seen("configmaps")[] | .kind = "ConfigMap"), (seen("secrets")[] | .kind = "Secret")
   | if .rule != null then select($active[.namespace]) | operation("DeleteInBackground"; .kind)
     elif .values != null then marking(null)
     else empty end),
  (seen("rules")[] | select(.going or ($active[.namespace] | not) | not) | . as $rule
   | ($statuses["\(.namespace)/\(.name)"] // {}) as $now
   | write_status($rule; $now; {observedGeneration: .generation, copies: 0, conditions: [
       condition($now | old_condition; "False"; "Off"; "the module copyrator is switched off"; .generation)]}))
