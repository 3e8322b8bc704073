#!/usr/bin/env bash
# Writes one object through the operator, and another one by itself.
set -e
if [[ ${1:-} == --config ]]; then
  echo '{"configVersion": "v1", "afterHelm": 1}'
  exit
fi
namespace=$ADDON_OPERATOR_NAMESPACE
echo '{"operation": "CreateIfNotExists", "object": {"apiVersion": "v1", "kind": "ConfigMap",
  "metadata": {"name": "guest-patch", "namespace": "'"$namespace"'"}}}' > "$KUBERNETES_PATCH_PATH"
kubectl --namespace "$namespace" get configmap guest-script 2>/dev/null ||
  kubectl --namespace "$namespace" create configmap guest-script
