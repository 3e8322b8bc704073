"""Turns the data of bench/plots/data into the plots beside it: says what each plot shows. How a plot looks is in plot.py."""
import collections
import pathlib
import statistics

import plot
import record
import stage

PLOTS = pathlib.Path(__file__).with_name("plots")
GROWTH = {"cold, s": "Cold start, s", "restart, s": "Restart, unchanged, s", "resident, MiB": "Resident, idle, MiB"}
EDITS = {"first hook": "Edit to first hook", "release deployed": "Edit to release deployed"}


def growth(order):
    """The start, the restart and the memory against the number of modules."""
    counts = record.read("growth").get(order, {})
    by = collections.defaultdict(dict)
    for count in sorted(counts, key=int):
        for who, runs in counts[count].items():
            by[who][int(count)] = record.newest(runs)
    if not by:
        return
    kinds = kinds_of(by)
    ticks = sorted({count for runs in by.values() for count in runs})
    panels = [plot.Panel(title, "modules", [growing(kinds[who], runs, figure, by) for who, runs in by.items()], True, None, ticks)
              for figure, title in GROWTH.items()]
    used = {who: [run for many in runs.values() for run in many] for who, runs in by.items()}
    save(f"growth-{order}", plot.figure(f"Growth with the number of modules, {order} order", panels, legend(kinds),
         f"{told(used)} Points are medians, bars go from the smallest to the largest run.", 3))


def growing(kind, runs, figure, by):
    """A line of medians, with its last value in words: above it if no other line ends higher there."""
    values = {count: [run[figure] for run in many] for count, many in runs.items()}
    points = [(count, statistics.median(some)) for count, some in values.items()]
    spans = [(count, min(some), max(some)) for count, some in values.items() if min(some) < max(some)]
    last, value = points[-1]
    others = [statistics.median(run[figure] for run in many[last]) for many in by.values() if last in many]
    note = (last, value, stage.short(value), "above" if value == max(others) else "below")
    return plot.Line(kind, points, spans=spans, marks=points, notes=[note])


def edit_latency(modules, order):
    """The distributions of the times from an edit to the first hook and to the release."""
    by = newest_of("edits", order, modules)
    if not by:
        return
    kinds = kinds_of(by)
    panels = [distribution(f"{title}: share of edits, %", kinds, {who: [ms for run in runs for ms in run[what]] for who, runs in by.items()})
              for what, title in EDITS.items()]
    numbers = amounts({who: sum(len(run["first hook"]) for run in runs) for who, runs in by.items()})
    save("edit-latency", plot.figure(f"From an edit of the ConfigMap: {modules} modules, {order} order", panels, legend(kinds),
         f"{told(by)} Edits: {numbers}. The points are the medians.", 2))


def first_act(objects):
    """The distribution of the times from an object's creation to the first act of its hook."""
    by = newest_of("first-act", objects)
    if not by:
        return
    kinds = kinds_of(by)
    every = {who: [ms for run in runs for ms in run["ms"]] for who, runs in by.items()}
    panel = distribution("Share of objects, %", kinds, every)
    numbers = amounts({who: len(times) for who, times in every.items()})
    save("first-act", plot.figure("From a new object to the first act of its hook", [panel], legend(kinds),
         f"{told(by)} Objects: {numbers}. The points are the medians."))


def distribution(title, kinds, every):
    """A panel that says for each program what share of its values is at most so large."""
    lines, medians = [], {who: statistics.median(values) for who, values in every.items()}
    for who, values in every.items():
        ordered, middle = sorted(values), medians[who]
        points = [(ordered[0], 0)] + [(value, 100 * (place + 1) / len(ordered)) for place, value in enumerate(ordered)]
        side = "left" if len(every) > 1 and middle == min(medians.values()) else "right"
        lines.append(plot.Line(kinds[who], points, True, marks=[(middle, 50)], notes=[(middle, 50, f"{stage.short(middle)} ms", side)]))
    return plot.Panel(title, "ms", lines, None, False, None, [0, 25, 50, 75, 100], 260)


def memory(modules, order):
    """The memory from the start until some seconds after the operator is quiet, of the run whose start took the middle time."""
    by = newest_of("memory", order, modules)
    if not by:
        return
    kinds = kinds_of(by)
    chosen = {who: sorted(runs, key=lambda run: run["ready, s"])[(len(runs) - 1) // 2] for who, runs in by.items()}
    panels = [plot.Panel(title, "seconds from the start of the process", [passing(kinds[who], run, column) for who, run in chosen.items()],
              False, False, None, None, height) for title, column, height in
              (("Operator alone, MiB", 1, 170), ("Operator with helm and hooks, MiB", 2, 210))]
    save("memory", plot.figure(f"Memory of a cold start: {modules} modules, {order} order", panels, legend(kinds),
         f"{told({who: [run] for who, run in chosen.items()})} Resident memory of the operator; helm and hooks add their proportional share. "
         f"The points are the ends of the first converge. Samples: every 50 ms."))


def passing(kind, run, column):
    """The points of a run, and a mark where it was ready."""
    points = [(point[0], point[column]) for point in run["points"]]
    ready = min(points, key=lambda point: abs(point[0] - run["ready, s"]))
    return plot.Line(kind, points, thin=column == 2, marks=[ready])


def newest_of(name, *keys):
    """The runs at these keys by whose program, each of its newest build."""
    found = record.read(name)
    for key in keys:
        found = found.get(str(key), {})
    return {who: record.newest(runs) for who, runs in found.items()}


def kinds_of(by):
    """A kind of line for each program; more programs than kinds share the last."""
    others = [who for who in by if who != "ours"]
    return {who: "ours" if who == "ours" else plot.SERIES[min(others.index(who) + 1, len(plot.SERIES) - 1)] for who in sorted(by, key="ours".__ne__)}


def legend(kinds):
    return [(kind, who) for who, kind in kinds.items()]


def amounts(numbers):
    return ", ".join(f"{number:,} of {who}" for who, number in numbers.items())


def told(by):
    """When, where and of which programs the runs were taken."""
    runs = [run for many in by.values() for run in many]
    days = sorted({run["taken"].split()[0] for run in runs})
    where = sorted({f"{run['cores']} cores" + (f" ({run['machine']})" if run["machine"] else "") for run in runs})
    programs = []
    for who, many in by.items():
        builds = {run["build"] for run in many}
        programs.append(f"{who}: {', '.join(sorted({run['version'] for run in many}))}" + (f" ({len(builds)} builds)" if len(builds) > 1 else ""))
    return f"Taken {' to '.join(dict.fromkeys((days[0], days[-1])))} on {' and '.join(where)}; {'; '.join(programs)}."


def save(name, text):
    PLOTS.mkdir(exist_ok=True)
    (PLOTS / f"{name}.svg").write_text(text)
