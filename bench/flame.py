"""Draws flame graphs: stacks with weights in, the text of an SVG out. Reads and writes nothing.

The outermost frame is at the top, and the heaviest on the left; the width of a frame is its share of processor time. A frame's whole name
and share show when the pointer rests on it. The SVG has no script, and its colours follow the reader's colour scheme.
"""
import html
import re

import plot

WIDTH, SIDE, ROW = 1200, 20, 17
# Narrower and deeper frames cannot be read, and make the file large.
NARROW, DEEPEST = 2, 36
STYLE = """
svg { --surface: #ffffff; --text: #1f2328; --quiet: #59636e;
      --program: #d5dae0; --own: #f4b47c; --library: #9fc9ee; --kernel: #c9bfe3; --other: #dfe3a8; }
@media (prefers-color-scheme: dark) {
  svg { --surface: #12161c; --text: #f0f3f6; --quiet: #9aa5b1;
        --program: #3a434e; --own: #9c5a1c; --library: #24598c; --kernel: #58488a; --other: #5c6320; }
}
text { font-family: ui-monospace, 'DejaVu Sans Mono', Menlo, monospace; font-size: 11px; fill: var(--text); }
.title, .words { font-family: system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif; }
.title { font-size: 17px; font-weight: 600; }
.words { font-size: 12px; fill: var(--quiet); }
.surface { fill: var(--surface); }
rect { stroke: var(--surface); stroke-width: .8; }
.program { fill: var(--program); } .own { fill: var(--own); } .library { fill: var(--library); }
.kernel { fill: var(--kernel); } .other { fill: var(--other); }
g:hover > rect { stroke: var(--text); }
"""


class Frame:
    """A function in the place where it was called, with the weight of all that it called."""

    def __init__(self):
        self.weight, self.inner = 0, {}

    def add(self, stack, weight):
        self.weight += weight
        if stack:
            self.inner.setdefault(stack[0], Frame()).add(stack[1:], weight)


def figure(title, stacks, kind_of, legend, caption):
    """`stacks` are pairs of a tuple of names, outermost first, and a weight. `kind_of` names a colour for a name."""
    root = Frame()
    for stack, weight in stacks:
        root.add(stack, weight)
    scale = (WIDTH - 2 * SIDE) / root.weight
    top, parts, deepest = 70, [], 0
    waiting = [(root, SIDE, 0)]
    while waiting:
        frame, x, depth = waiting.pop()
        for name, one in sorted(frame.inner.items(), key=lambda pair: -pair[1].weight):
            width = one.weight * scale
            if width >= NARROW and depth < DEEPEST:
                parts.append(box(name, kind_of(name), x, top + depth * ROW, width, one.weight / root.weight))
                waiting.append((one, x, depth + 1))
                deepest = max(deepest, depth + 1)
            x += width
    notes = plot.wrapped(caption, 180)
    bottom = top + deepest * ROW + 24
    height = bottom + 16 * len(notes)
    foot = [f'<text class="words" x="{SIDE}" y="{bottom + 16 * number}">{html.escape(line)}</text>' for number, line in enumerate(notes)]
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{html.escape(title)}</title>", f"<style>{STYLE}</style>",
        f'<rect class="surface" width="{WIDTH}" height="{height}" rx="6"/>',
        f'<text class="title" x="{SIDE}" y="28">{html.escape(title)}</text>', legend_of(legend), *parts, *foot, "</svg>\n"])


def legend_of(legend):
    parts, x = [], SIDE
    for kind, text in legend:
        parts.append(f'<rect class="{kind}" x="{x}" y="42" width="14" height="12"/>'
                     f'<text class="words" x="{x + 20}" y="52">{html.escape(text)}</text>')
        x += 20 + plot.text_width(text) + 24
    return "\n".join(parts)


def box(name, kind, x, y, width, share):
    whole = html.escape(f"{name}: {100 * share:.1f} %")
    shown = fitting(name, int((width - 6) / 6.7))
    text = f'<text x="{x + 3:.1f}" y="{y + 12}">{html.escape(shown)}</text>' if shown else ""
    return f'<g><title>{whole}</title><rect class="{kind}" x="{x:.1f}" y="{y}" width="{width:.1f}" height="{ROW - 1}" rx="1.5"/>{text}</g>'


def fitting(name, letters):
    """The name, or as much of its end as fits, or its beginning, or nothing if that would say nothing."""
    if len(name) <= letters:
        return name
    for cut in re.finditer(r"::|\.(?=\D)", name):
        end = name[cut.end():]
        # Half of all functions are called `poll`.
        if len(end) <= letters and end != "poll" and re.search(r"\w{3}", end):
            return end
    return name[:letters - 1] + "…" if letters >= 5 else ""
