"""What the scripts that measure hooks alone share: the cluster, an operator in a place of its own, tables. Judges nothing.

Each script is called `testbed run -- bench/SCRIPT OPERATOR`; with `--other BINARY` another shell-operator is measured on the
same control plane, by turns with ours, so that a neighbour's load hits both.
"""
import argparse
import concurrent.futures
import contextlib
import http.client
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import re
import ssl
import statistics
import subprocess
import sys
import tempfile
import time

import yaml

CONNECTIONS = 32
RESULTS = pathlib.Path(__file__).with_name("results.md")


class Cluster:
    """The API server over one connection, so that only its own work is measured."""

    def __init__(self, kubeconfig=None):
        with open(kubeconfig or os.environ["KUBECONFIG"]) as file:
            config = yaml.safe_load(file)
        cluster = config["clusters"][0]["cluster"]
        self.tls = ssl.create_default_context(cafile=cluster["certificate-authority"])
        self.host = cluster["server"].split("//")[1]
        self.connection = http.client.HTTPSConnection(self.host, context=self.tls)
        self.token, self.used = config["users"][0]["user"]["token"], 0.0

    def ask(self, method, path, body=None):
        """The status of the answer; whether it came with a warning is kept, and what it says."""
        headers = {"Authorization": "Bearer " + self.token, "Content-Type": "application/json"}
        if method == "PATCH":
            headers["Content-Type"] = "application/merge-patch+json"
        if time.monotonic() > self.used + 30:
            # The server closes a connection that is silent for long.
            self.connection.close()
        self.used = time.monotonic()
        self.connection.request(method, path, body and json.dumps(body), headers)
        answer = self.connection.getresponse()
        self.said = answer.read()
        self.warned = answer.headers["Warning"] is not None
        return answer.status

    def read(self, path):
        self.ask("GET", path)
        return json.loads(self.said)

    def demand(self, method, path, body=None):
        status = self.ask(method, path, body)
        if status not in (200, 201):
            sys.exit(f"{method} {path} was answered with {status}")

    @contextlib.contextmanager
    def namespace(self, prefix):
        """A namespace of its own, which has what controllers put into every one."""
        name = f"{prefix}-{os.getpid()}-{time.monotonic_ns()}"
        self.demand("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        path = f"/api/v1/namespaces/{name}"
        wait_for("a new namespace to be furnished", lambda: self.ask("GET", path + "/configmaps/kube-root-ca.crt") == 200)
        wait_for("its service account", lambda: self.ask("GET", path + "/serviceaccounts/default") == 200)
        try:
            yield name
        finally:
            self.ask("DELETE", path)
            # The effects of its end must not happen during the next measurement.
            wait_for("a namespace to be gone", lambda: self.ask("GET", path) == 404, 300)


class Operator:
    """One that runs on hooks of its own, from `with` to its end."""

    def __init__(self, command, hooks, variables=None):
        self.place = tempfile.TemporaryDirectory()
        root = pathlib.Path(self.place.name)
        (root / "hooks").mkdir()
        for name, text in hooks.items():
            (root / "hooks" / name).write_text(text.replace("@OUT@", str(root / "out")))
            (root / "hooks" / name).chmod(0o755)
        (root / "out").touch()
        self.out, self.log = root / "out", root / "log"
        self.command = command + ["--hooks-dir", f"{root}/hooks", "--tmp-dir", f"{root}/tmp"]
        self.command += ["--listen-address", "127.0.0.1", "--listen-port", "0", "--debug-unix-socket", f"{root}/socket"]
        self.environment = os.environ | {"TZ": "UTC"} | (variables or {})

    def __enter__(self):
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, env=self.environment)
        self.id = self.process.pid
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.place.cleanup()

    def wait_for(self, what, condition, patience=60, pause=0.0005):
        def checked():
            if self.process.poll() is not None:
                sys.exit(f"the operator ended: {self.log.read_text()[-2000:]}")
            return condition()
        wait_for(what, checked, patience, pause)

    def acts(self):
        """How many lines its hooks have written."""
        return self.out.read_bytes().count(b"\n")

    def memory(self):
        """Resident MiB: now, and at its peak."""
        status = pathlib.Path(f"/proc/{self.id}/status").read_text()
        now, peak = (int(re.search(rf"{name}:\s+(\d+)", status)[1]) / 1024 for name in ("VmRSS", "VmHWM"))
        return now, peak

    def processor(self):
        """Seconds so far, of the process with all threads that it ever had, but not of its children."""
        return time.clock_gettime((~self.id << 3) | 2)

    def until_quiet(self):
        """Waits until it has used less than a hundredth of a processor for two seconds, or for a minute in vain."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            before = self.processor()
            time.sleep(2)
            if self.processor() - before < 0.02:
                return


def neighbour(name):
    """A script beside this one, whose name has no ending."""
    loader = importlib.machinery.SourceFileLoader(name, str(pathlib.Path(__file__).with_name(name)))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


def fill(path, objects):
    """Creates objects over several connections."""
    def create(some):
        cluster = Cluster()
        for one in some:
            cluster.demand("POST", path, one)
    with concurrent.futures.ThreadPoolExecutor(CONNECTIONS) as pool:
        list(pool.map(create, (objects[first::CONNECTIONS] for first in range(CONNECTIONS))))


def wait_for(what, condition, patience=60, pause=0.0005):
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"waited in vain for {what}")
        time.sleep(pause)


def arguments(about, **numbers):
    """The command line: what is measured, and numbers with their defaults."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("operator", help="our binary, release build")
    parser.add_argument("--other", metavar="BINARY", help="another operator to be measured by turns with ours")
    parser.add_argument("--before", metavar="BINARY", help="an earlier build of ours to be measured by turns with this one")
    parser.add_argument("--label", metavar="NAME", default="theirs", help="how tables and plots call the other operator")
    parser.add_argument("--save", action="store_true", help="renew the section of bench/results.md, and the plots if the script has some")
    for name, default in numbers.items():
        parser.add_argument("--" + name, type=type(default), default=default, help=" ")
    given = parser.parse_args()
    if given.label in ("ours", "before"):
        parser.error("the label of the other operator must differ from those of ours")
    given.operators = {"ours": [given.operator, "hooks", "start"]}
    if given.before:
        given.operators["before"] = [given.before, "hooks", "start"]
    if given.other:
        given.operators[given.label] = [given.other, "start"]
    return given


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


class Table:
    """Figures of several runs: median, smallest and largest of ours and of theirs, and how the medians compare."""

    def __init__(self, title, aims=None):
        self.title, self.aims, self.figures, self.loads = title, aims or {}, {}, []

    def add(self, who, **figures):
        self.loads.append(os.getloadavg()[0])
        for name, value in figures.items():
            self.figures.setdefault(name.replace("__", ", ").replace("_", " "), {}).setdefault(who, []).append(value)
        print(self.title, who, " ".join(f"{name}={short(value)}" for name, value in figures.items()), file=sys.stderr)

    def text(self):
        label = next((who for by in self.figures.values() for who in by if who != "ours"), "theirs")
        lines = [f"| figure | ours | min – max | aim | {label} | min – max | {label} / ours |", "|---|---|---|---|---|---|---|"]
        for name, by in self.figures.items():
            ours, theirs = (by.get(who, []) for who in ("ours", label))
            aim = self.aims.get(name, "")
            if aim != "" and ours:
                aim = f"≤ {short(aim)} ({'met' if statistics.median(ours) <= aim else 'missed'})"
            ratio = ""
            if ours and theirs and min(statistics.median(ours), statistics.median(theirs)) > 0:
                ratio = f"{statistics.median(theirs) / statistics.median(ours):.1f}"
            lines.append(f"| {name} | {middle(ours)} | {span(ours)} | {aim} | {middle(theirs)} | {span(theirs)} | {ratio} |")
        return "\n".join(lines) + "\n"

    def report(self, save, remark):
        when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
        load = f"load of the machine {min(self.loads):.0f} to {max(self.loads):.0f} on {os.cpu_count()} processors"
        section = f"## {self.title}\n\nTaken {when}; {load}. {remark}\n\n{self.text()}"
        print(section)
        if save:
            renew(self.title, section)


def renew(title, section):
    """Writes a section of the results in the place of the one before."""
    sections = re.split(r"(?m)^(?=## )", RESULTS.read_text())
    kept = [one.rstrip() + "\n" for one in sections if not one.startswith(f"## {title}\n")]
    RESULTS.write_text("\n".join(kept + [section]))


def short(value):
    """Three digits are all that a machine with neighbours repeats."""
    if value == int(value):
        return f"{value:.0f}"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:.{digits}f}"


def middle(values):
    return short(statistics.median(values)) if values else "–"


def span(values):
    return f"{short(min(values))} – {short(max(values))}" if values else ""
