#!/usr/bin/env bash
# Counts the pages that all entries take: before each release, and when an entry comes or goes.
set -euo pipefail

if [[ ${1-} == --config ]]; then
  cat <<'YAML'
configVersion: v1
beforeHelm: 10
kubernetes:
  - name: entries
    apiVersion: guestbook.example.com/v1
    kind: Entry
    executeHookOnEvent: [Added, Deleted]
    jqFilter: .metadata.name
    keepFullObjectsInMemory: false
    group: pages
YAML
  exit 0
fi

entries=$(jq '.[-1].snapshots.entries | length' "$BINDING_CONTEXT_PATH")
per_page=$(jq .guestbook.entriesPerPage "$VALUES_PATH")
pages=$(((entries + per_page - 1) / per_page))
jq --null-input --compact-output --argjson pages "$pages" \
  '[{op: "add", path: "/guestbook/internal", value: {pages: $pages}}]' >"$VALUES_JSON_PATCH_PATH"
