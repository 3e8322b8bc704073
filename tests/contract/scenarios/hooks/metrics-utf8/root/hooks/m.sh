#!/usr/bin/env bash
if [[ ${1:-} == --config ]]; then
  cat <<'EOF'
configVersion: v1
onStartup: 1
EOF
  exit
fi
rec "$0" "$@"
cat > "$METRICS_PATH" <<'EOF'
{"name": "stub-add-metric", "action": "add", "value": 2, "labels": {"node-name": "a"}}
{"name": "stub_set_metric", "action": "set", "value": 1.5, "labels": {"плод": "яблоко"}}
{"name": "плод", "action": "observe", "value": 3, "buckets": [5]}
EOF
