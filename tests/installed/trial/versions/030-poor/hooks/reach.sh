#!/usr/bin/env bash
# Needs a right that neither the chart grants nor the module declares.
if [[ ${1:-} == --config ]]; then
  echo '{"configVersion": "v1", "onStartup": 1}'
  exit
fi
echo '{"operation": "CreateOrUpdate", "object": {"apiVersion": "v1", "kind": "Secret",
  "metadata": {"name": "reach", "namespace": "kube-system"}}}' > "$KUBERNETES_PATCH_PATH"
