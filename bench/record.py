"""Keeps the raw data behind the plots in bench/plots/data, as JSON. Runs are added to those that are there; none is lost.

A file is a tree of keys (such as order, number of modules, whose program), and has a list of runs at each end. A run says when it was
taken, on which machine, and of which build of the program, because runs of several builds must not be mixed.
"""
import hashlib
import json
import os
import pathlib
import re
import subprocess
import time

DATA = pathlib.Path(__file__).with_name("plots") / "data"


def circumstances(binary):
    """When, where and of which program a run was taken."""
    said = subprocess.run([binary, "version"], capture_output=True, text=True).stdout.strip()
    model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    build = hashlib.sha256(pathlib.Path(binary).read_bytes()).hexdigest()[:12]
    return {"taken": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), "cores": os.cpu_count(), "machine": model[1] if model else "",
            "version": said.split("\n")[0], "build": build}


def read(name):
    try:
        return json.loads((DATA / f"{name}.json").read_text())
    except FileNotFoundError:
        return {}


def add(name, keys, run):
    """Adds a run at the end of these keys."""
    tree = inner = read(name)
    for key in keys[:-1]:
        inner = inner.setdefault(key, {})
    inner.setdefault(keys[-1], []).append(run)
    DATA.mkdir(parents=True, exist_ok=True)
    (DATA / f"{name}.json").write_text(text(tree) + "\n")


def text(tree, depth=0):
    """JSON with a line for each run, so that a new run is a new line in a comparison of versions."""
    margin = "\n" + " " * (depth + 1)
    if isinstance(tree, list):
        return "[" + margin + ("," + margin).join(json.dumps(run, separators=(",", ":")) for run in tree) + "]"
    return "{" + margin + ("," + margin).join(f"{json.dumps(key)}: {text(value, depth + 1)}" for key, value in tree.items()) + "}"


def newest(runs):
    """The runs of the build that was measured last."""
    return [run for run in runs if run["build"] == runs[-1]["build"]]
