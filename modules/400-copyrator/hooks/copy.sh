#!/usr/bin/env bash
# Copies ConfigMaps and Secrets into namespaces, as CopyratorRules say. Each run compares all copies with the wanted ones, so that
# neither a lost event nor a restart matters. lib/plan.jq and lib/compare.jq decide, lib/object.jq selects the facts about objects.
source "${FRAMEWORK_DIR:-}/shell_lib.sh"

LIB=$(dirname "$(readlink -f -- "${BASH_SOURCE[0]}")")/lib

__config__() {
  local filter matters
  filter=$(sed 's/^/      /' "$LIB/object.jq")
  matters=$(sed 's/^/        /' "$LIB/matters.jq")
  cat <<YAML
configVersion: v1
afterDeleteHelm: 10
settings: {executionMinInterval: 1s, executionBurst: 5}
kubernetes:
  - name: rules
    apiVersion: flant.com/v1
    kind: CopyratorRule
    jqFilter: |
      .metadata as \$meta
      | {namespace: \$meta.namespace, name: \$meta.name, created: \$meta.creationTimestamp, generation: \$meta.generation,
         going: (\$meta.deletionTimestamp != null), rule: del(.apiVersion, .kind, .metadata, .status)}
    keepFullObjectsInMemory: false
    group: copies
    queue: copyrator
  - name: statuses
    apiVersion: flant.com/v1
    kind: CopyratorRule
    # No events: the hook writes the status itself.
    executeHookOnEvent: []
    executeHookOnSynchronization: false
    jqFilter: '{key: (.metadata.namespace + "/" + .metadata.name), status}'
    keepFullObjectsInMemory: false
    group: copies
    queue: copyrator
  - name: namespaces
    apiVersion: v1
    kind: Namespace
    jqFilter: |
      {name: .metadata.name, labels: (.metadata.labels // {}), refuse: .metadata.annotations["copyrator.flant.com/refuse"],
       active: (.status.phase == "Active" and .metadata.deletionTimestamp == null)}
    keepFullObjectsInMemory: false
    group: copies
    queue: copyrator
  - name: configmaps
    apiVersion: v1
    kind: ConfigMap
    fieldSelector:
      matchExpressions: [{field: metadata.name, operator: NotEquals, value: kube-root-ca.crt}]
    jqFilter: |
$filter
    when:
      snapshots: [rules, marked-configmaps]
      jqFilter: |
        "configmap" as \$type | .snapshots["marked-configmaps"] as \$sources |
$matters
    keepFullObjectsInMemory: false
    group: copies
    queue: copyrator
  - name: secrets
    apiVersion: v1
    kind: Secret
    fieldSelector:
      matchExpressions:
        - {field: type, operator: NotEquals, value: helm.sh/release.v1}
        - {field: type, operator: NotEquals, value: kubernetes.io/service-account-token}
    jqFilter: |
$filter
    when:
      snapshots: [rules, marked-secrets]
      jqFilter: |
        "secret" as \$type | .snapshots["marked-secrets"] as \$sources |
$matters
    keepFullObjectsInMemory: false
    group: copies
    queue: copyrator
  # Only for the conditions above: the names of sources.
  - name: marked-configmaps
    apiVersion: v1
    kind: ConfigMap
    fieldSelector:
      matchExpressions: [{field: metadata.name, operator: NotEquals, value: kube-root-ca.crt}]
    jqFilter: &marked select(.metadata.annotations["copyrator.flant.com/source-of-copies"]) | .metadata.name
    executeHookOnEvent: []
    executeHookOnSynchronization: false
    keepFullObjectsInMemory: false
    queue: copyrator
  - name: marked-secrets
    apiVersion: v1
    kind: Secret
    fieldSelector:
      matchExpressions:
        - {field: type, operator: NotEquals, value: helm.sh/release.v1}
        - {field: type, operator: NotEquals, value: kubernetes.io/service-account-token}
    jqFilter: *marked
    executeHookOnEvent: []
    executeHookOnSynchronization: false
    keepFullObjectsInMemory: false
    queue: copyrator
YAML
}

__on_group::copies() {
  plan compare
}

__main__() {
  plan remove
}

# plan PROGRAM: writes the operations that the program prints. One jq reads the file, because it may have many megabytes.
plan() {
  local definitions program
  definitions=$(<"$LIB/plan.jq")
  program=$(<"$LIB/$1.jq")
  context::global::jq -c --slurpfile values "${VALUES_PATH:-/dev/null}" --argjson most 500 --argjson bytes 8388608 \
    "$definitions .[$BINDING_CONTEXT_CURRENT_INDEX] | $program" >>"$KUBERNETES_PATCH_PATH"
}

hook::run "$@"
