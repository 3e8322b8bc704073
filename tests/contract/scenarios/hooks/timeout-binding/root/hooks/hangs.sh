#!/usr/bin/env bash
if [[ ${1:-} == --config ]]; then
  cat <<'CONFIG'
configVersion: v1
settings: {timeout: 4s}
kubernetes:
- name: maps
  apiVersion: v1
  kind: ConfigMap
  allowFailure: true
  timeout: 2s
  executeHookOnSynchronization: false
  nameSelector: {matchNames: [one]}
  namespace: {nameSelector: {matchNames: ["@NS@"]}}
- name: none
  apiVersion: v1
  kind: ConfigMap
  allowFailure: true
  nameSelector: {matchNames: [none]}
  namespace: {nameSelector: {matchNames: ["@NS@"]}}
CONFIG
  exit
fi
rec "$0" "$@"
# It does not end by itself, and has company.
bash -c 'exec -a "sleep 86400 @NS@" sleep 86400' &
bash -c 'exec -a "sleep 86400 @NS@" sleep 86400'
