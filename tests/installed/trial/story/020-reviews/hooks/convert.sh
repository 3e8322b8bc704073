#!/usr/bin/env bash
if [[ ${1:-} == --config ]]; then
  cat <<END
configVersion: v1
kubernetesCustomResourceConversion:
- name: tickets
  crdName: tickets.trial.example.com
  conversions: [{fromVersion: v1alpha1, toVersion: v1}, {fromVersion: v1, toVersion: v1alpha1}]
END
  exit
fi
jq '.[0].review.request | .desiredAPIVersion as $to
  | {convertedObjects: [.objects[] | .cameFrom = .apiVersion | .apiVersion = $to]}' \
  "$BINDING_CONTEXT_PATH" > "$CONVERSION_RESPONSE_PATH"
