#!/usr/bin/env bash
# The smallest hook: says something once the operator has started.
if [[ ${1-} == --config ]]; then
  cat <<'YAML'
configVersion: v1
onStartup: 10
YAML
  exit 0
fi

echo "Hello, these are my contexts: $(cat "$BINDING_CONTEXT_PATH")"
