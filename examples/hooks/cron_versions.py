#!/usr/bin/env python3
"""Converts cron tabs: in v1 a schedule was a text, in v2 it is a list of five fields."""

import json
import os
import sys

CONFIG = {
    "configVersion": "v1",
    "kubernetesCustomResourceConversion": [{
        "name": "cron-tabs",
        "crdName": "crontabs.example.com",
        "conversions": [
            {"fromVersion": "example.com/v1", "toVersion": "example.com/v2"},
            {"fromVersion": "example.com/v2", "toVersion": "example.com/v1"},
        ],
    }],
}


def convert(cron_tab, version):
    spec = cron_tab["spec"]
    if version == "example.com/v2" and isinstance(spec["schedule"], str):
        spec["schedule"] = spec["schedule"].split()
    elif version == "example.com/v1" and isinstance(spec["schedule"], list):
        spec["schedule"] = " ".join(spec["schedule"])
    return {**cron_tab, "apiVersion": version}


def main():
    if sys.argv[1:] == ["--config"]:
        json.dump(CONFIG, sys.stdout)
        return
    with open(os.environ["BINDING_CONTEXT_PATH"]) as file:
        context = json.load(file)[0]
    objects = context["review"]["request"]["objects"]
    try:
        result = {"convertedObjects": [convert(item, context["toVersion"]) for item in objects]}
    except KeyError as missing:
        result = {"failedMessage": f"a cron tab has no {missing}"}
    with open(os.environ["CONVERSION_RESPONSE_PATH"], "w") as file:
        json.dump(result, file)


if __name__ == "__main__":
    main()
