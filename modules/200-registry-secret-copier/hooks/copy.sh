#!/usr/bin/env bash
# Copies labelled registry Secrets into every active namespace and keeps the copies up to date. Each run compares all Secrets
# with the wanted copies, so that neither a lost event nor a restart matters. Must never write to a Secret that is no copy.
source "${FRAMEWORK_DIR:-}/shell_lib.sh"

__config__() {
  cat <<'YAML'
configVersion: v1
afterDeleteHelm: 10
kubernetes:
  - name: sources
    apiVersion: v1
    kind: Secret
    labelSelector:
      matchLabels: {registry-secret-copier/source: "true"}
    jqFilter: |
      {namespace: .metadata.namespace, name: .metadata.name, type, data: (.data // {}),
       copied: (.metadata.labels["registry-secret-copier/copied-from"] != null)}
    keepFullObjectsInMemory: false
    group: copies
    queue: registry-secret-copier
  - name: copies
    apiVersion: v1
    kind: Secret
    labelSelector:
      matchExpressions: [{key: registry-secret-copier/copied-from, operator: Exists}]
    jqFilter: |
      {namespace: .metadata.namespace, name: .metadata.name, type, data: (.data // {}),
       from: .metadata.labels["registry-secret-copier/copied-from"]}
    keepFullObjectsInMemory: false
    group: copies
    queue: registry-secret-copier
  - name: namespaces
    apiVersion: v1
    kind: Namespace
    jqFilter: "{name: .metadata.name, active: (.status.phase == \"Active\" and .metadata.deletionTimestamp == null)}"
    keepFullObjectsInMemory: false
    group: copies
    queue: registry-secret-copier
YAML
}

# The beginning of all jq programs below. Of sources with the same name the first in the order of namespaces counts.
# shellcheck disable=SC2016 # the dollars are for jq
readonly FACTS='
  def seen($binding):
    # An unknown list of sources is not an empty one, for which all copies would be removed.
    .snapshots[$binding] // (if .type == "Group" then error("there is no snapshot of \($binding)") else [] end)
    | map(.filterResult | select(. != null));
  def mark: "registry-secret-copier/copied-from";
  def operation($name): {operation: $name, apiVersion: "v1", kind: "Secret", namespace, name};
  ($values[0].registrySecretCopier.sourceNamespaces // []) as $allowed
  | (seen("sources")
     | map(select(.copied | not))
     | map(select(.type == ("kubernetes.io/dockerconfigjson", "kubernetes.io/dockercfg")))
     | map(select($allowed == [] or (.namespace as $own | any($allowed[]; . == $own))))
     | group_by(.name) | map(sort_by(.namespace))) as $offers
  | ($offers | map(.[0])) as $sources
  | ([seen("namespaces")[] | select(.active) | .name]) as $active
  | ([seen("copies")[] | select(.namespace as $own | any($active[]; . == $own))]) as $copies
  |'

__on_group::copies() {
  warn_of_doubles
  # A slash separates the parts of the table's keys, because no name contains one.
  # shellcheck disable=SC2016
  facts -c '
    (reduce $offers[][] as $offer ({}; .["\($offer.namespace)/\($offer.name)"] = true)) as $taken
    | ([$sources[] as $source | $active[]
        | {key: "\(.)/\($source.name)", value: {namespace: ., name: $source.name, source: $source}}
        | select($taken[.key] | not)]
       | from_entries) as $wanted
    | (reduce $copies[] as $copy ({}; .["\($copy.namespace)/\($copy.name)"] = $copy)) as $there

    # Copies to delete. A type cannot be changed, so a copy of another type is created anew.
    | ($copies[] | $wanted["\(.namespace)/\(.name)"] as $want | select($want == null or $want.source.type != .type)
       | operation("DeleteInBackground")),

      # Missing copies. A Secret of another owner is left as it is.
      ($wanted[] | . as $want | $there["\(.namespace)/\(.name)"] as $copy
       | select($copy == null or $copy.type != .source.type)
       | {operation: "CreateIfNotExists",
          object: {apiVersion: "v1", kind: "Secret",
                   metadata: {namespace, name, labels: {(mark): .source.namespace}},
                   type: .source.type, data: .source.data}}),

      # Outdated copies. The first step is refused if the Secret now belongs to another owner.
      ($wanted[] | . as $want | $there["\(.namespace)/\(.name)"] as $copy
       | select($copy != null and $copy.type == .source.type)
       | select($copy.data != .source.data or $copy.from != .source.namespace)
       | ("/metadata/labels/" + (mark | split("/") | join("~1"))) as $path
       | operation("JSONPatch") + {ignoreMissingObject: true, jsonPatch: [
           {op: "test", path: $path, value: $copy.from},
           {op: "add", path: $path, value: .source.namespace},
           {op: "add", path: "/data", value: .source.data}]})
  ' >>"$KUBERNETES_PATCH_PATH"
}

# The module was switched off, so the copies would become outdated.
__main__() {
  facts -c '$copies[] | operation("DeleteInBackground")' >>"$KUBERNETES_PATCH_PATH"
}

warn_of_doubles() {
  # shellcheck disable=SC2016
  facts -c '
    $offers[] | .[0] as $first | .[1:][]
    | {level: "warn", msg: "not copied: another namespace offers a registry Secret of that name",
       secret: .name, namespace, copied_from: $first.namespace}'
}

# facts ARGUMENT... PROGRAM: runs jq on the current context, with the facts as variables.
facts() {
  context::jq --slurpfile values "${VALUES_PATH:-/dev/null}" "${@:1:$#-1}" "$FACTS ${!#}"
}

hook::run "$@"
