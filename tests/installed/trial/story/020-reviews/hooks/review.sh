#!/usr/bin/env bash
# Refuses maps that are called `bad`, and labels all others.
if [[ ${1:-} == --config ]]; then
  cat <<END
configVersion: v1
kubernetesValidating:
- name: maps.trial.example.com
  namespace: {labelSelector: {matchLabels: {trial: "yes"}}}
  rules: [{apiVersions: [v1], apiGroups: [""], resources: [configmaps], operations: [CREATE], scope: Namespaced}]
kubernetesMutating:
- name: labels.trial.example.com
  namespace: {labelSelector: {matchLabels: {trial: "yes"}}}
  rules: [{apiVersions: [v1], apiGroups: [""], resources: [configmaps], operations: [CREATE], scope: Namespaced}]
END
  exit
fi
if [[ $(jq -r '.[0].binding' "$BINDING_CONTEXT_PATH") == labels.trial.example.com ]]; then
  patch=$(base64 -w0 <<< '[{"op": "add", "path": "/metadata/labels", "value": {"reviewed": "yes"}}]')
  echo '{"allowed": true, "patch": "'"$patch"'"}' > "$ADMISSION_RESPONSE_PATH"
elif [[ $(jq -r '.[0].review.request.name' "$BINDING_CONTEXT_PATH") == bad ]]; then
  echo '{"allowed": false, "message": "a hook in a pod does not want it"}' > "$ADMISSION_RESPONSE_PATH"
else
  echo '{"allowed": true}' > "$ADMISSION_RESPONSE_PATH"
fi
