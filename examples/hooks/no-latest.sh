#!/usr/bin/env bash
# Refuses pods whose images have no fixed tag.
source "${FRAMEWORK_DIR:-}/shell_lib.sh"

__config__() {
  cat <<'YAML'
configVersion: v1
kubernetesValidating:
  - name: no-latest.hooks.example.com
    failurePolicy: Ignore
    timeoutSeconds: 5
    namespace:
      labelSelector:
        matchLabels: {images: fixed}
    rules:
      - apiGroups: [""]
        apiVersions: [v1]
        resources: [pods]
        operations: [CREATE, UPDATE]
        scope: Namespaced
YAML
}

__on_validating::no-latest.hooks.example.com() {
  # shellcheck disable=SC2016 # the dollar is for jq
  context::jq '
    [.review.request.object.spec | (.containers, .initContainers)[]? | .image
     | select(contains("@") | not)
     | select((split("/")[-1] | contains(":") | not) or endswith(":latest"))] as $loose
    | if $loose == [] then {allowed: true}
      else {allowed: false, message: "no fixed tag: \($loose | join(", "))"} end
  ' >"$VALIDATING_RESPONSE_PATH"
}

hook::run "$@"
