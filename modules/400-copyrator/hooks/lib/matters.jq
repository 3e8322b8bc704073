# Whether a change of a ConfigMap or Secret can matter: the object is marked or a copy, a rule selects it, or it has the name of a source
# and so may hold the place of a copy. $type and $sources, the names of marked objects, come before it. In doubt it matters.
.filterResult as $object
| $object.rule != null or $object.values != null
  or any($sources[]; . == $object.name)
  or any(.snapshots.rules[];
    .namespace as $own
    # A rule with mistakes selects nothing.
    | (.rule | .ruleType == $type
        and (([.namespace // empty] + (.namespaces // [])) | if . == [] then [$own] else . end | any(.[]; . == $object.namespace))
        and all(.selector | to_entries[]; $object.labels[.key] == .value))? // false)
