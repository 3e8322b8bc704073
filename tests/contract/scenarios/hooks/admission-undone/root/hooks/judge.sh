#!/usr/bin/env bash
if [[ ${1:-} == --config ]]; then
  cat <<'EOF'
configVersion: v1
kubernetesValidating:
- name: maps.@NS@.example.com
  namespace: {labelSelector: {matchLabels: {kubernetes.io/metadata.name: "@NS@"}}}
  rules: [{apiVersions: [v1], apiGroups: [""], resources: [configmaps], operations: [CREATE], scope: Namespaced}]
kubernetesMutating:
- name: change.@NS@.example.com
  namespace: {labelSelector: {matchLabels: {kubernetes.io/metadata.name: "@NS@"}}}
  rules: [{apiVersions: [v1], apiGroups: [""], resources: [services], operations: [CREATE], scope: Namespaced}]
EOF
  exit
fi
echo '{"allowed": false, "message": "this one is bad"}' > "$VALIDATING_RESPONSE_PATH"
