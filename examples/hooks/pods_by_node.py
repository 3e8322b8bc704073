#!/usr/bin/env python3
"""Counts the pods of each node: when pods come, go or move, and every ten minutes."""

import json
import os
import sys
from collections import Counter

CONFIG = {
    "configVersion": "v1",
    "settings": {"executionMinInterval": "5s", "executionBurst": 1},
    "kubernetes": [{
        "name": "pods",
        "apiVersion": "v1",
        "kind": "Pod",
        "jqFilter": ".spec.nodeName",
        "keepFullObjectsInMemory": False,
        "group": "counting",
        "queue": "counting",
    }],
    "schedule": [{
        "name": "again",
        "crontab": "*/10 * * * *",
        "group": "counting",
        "queue": "counting",
    }],
}


def main():
    if sys.argv[1:] == ["--config"]:
        json.dump(CONFIG, sys.stdout)
        return
    with open(os.environ["BINDING_CONTEXT_PATH"]) as file:
        contexts = json.load(file)
    # All contexts of one run have the same snapshots.
    pods = contexts[-1]["snapshots"]["pods"]
    nodes = Counter(pod["filterResult"] or "none" for pod in pods)
    operations = [{"action": "expire", "group": "counting"}]
    for node, count in sorted(nodes.items()):
        operations.append({
            "name": "pods_by_node",
            "action": "set",
            "value": count,
            "labels": {"node": node},
            "group": "counting",
        })
    with open(os.environ["METRICS_PATH"], "a") as file:
        for operation in operations:
            print(json.dumps(operation), file=file)
    print(json.dumps({"level": "info", "msg": "pods are counted", "pods": len(pods)}))


if __name__ == "__main__":
    main()
