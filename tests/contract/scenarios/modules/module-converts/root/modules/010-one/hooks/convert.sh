#!/usr/bin/env bash
set -e
if [[ ${1:-} == --config ]]; then
  cat <<'EOF'
configVersion: v1
kubernetes:
- name: sizes
  apiVersion: v1
  kind: ConfigMap
  executeHookOnSynchronization: false
  executeHookOnEvent: []
  namespace: {nameSelector: {matchNames: ["@NS@"]}}
  nameSelector: {matchNames: [sizes]}
  jqFilter: .data.default
kubernetesCustomResourceConversion:
- name: widgets
  crdName: widgets.@NS@.example.com
  includeSnapshotsFrom: [sizes]
  conversions:
  - {fromVersion: v1alpha1, toVersion: v1beta1}
  - {fromVersion: v1beta1, toVersion: v1}
  - {fromVersion: v1, toVersion: v1alpha1}
EOF
  exit
fi
jq '.[0] as $c | {convertedObjects: [$c.review.request.objects[]
  | .apiVersion = "@NS@.example.com/" + ($c.toVersion | split("/") | last)
  | .steps = (.steps // []) + [$c.fromVersion + ">" + $c.toVersion]
  | .spec.size = $c.snapshots.sizes[0].filterResult]}' "$BINDING_CONTEXT_PATH" > "$CONVERSION_RESPONSE_PATH"
