#!/usr/bin/env python3
"""Labels each new namespace that names no team with the one that pays for strays."""

import base64
import json
import os
import sys

CONFIG = {
    "configVersion": "v1",
    "kubernetesMutating": [{
        "name": "default-team.hooks.example.com",
        "failurePolicy": "Ignore",
        "rules": [{
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "resources": ["namespaces"],
            "operations": ["CREATE"],
            "scope": "Cluster",
        }],
    }],
}


def answer(request):
    labels = request["object"]["metadata"].get("labels")
    if labels and "team" in labels:
        return {"allowed": True}
    patch = [{"op": "add", "path": "/metadata/labels/team", "value": "platform"}]
    if labels is None:
        # `add` needs its parent.
        patch.insert(0, {"op": "add", "path": "/metadata/labels", "value": {}})
    return {"allowed": True, "patch": base64.b64encode(json.dumps(patch).encode()).decode()}


def main():
    if sys.argv[1:] == ["--config"]:
        json.dump(CONFIG, sys.stdout)
        return
    with open(os.environ["BINDING_CONTEXT_PATH"]) as file:
        contexts = json.load(file)
    # Reviews come one at a time.
    with open(os.environ["ADMISSION_RESPONSE_PATH"], "w") as file:
        json.dump(answer(contexts[0]["review"]["request"]), file)


if __name__ == "__main__":
    main()
