"""Draws plots: data in, the text of an SVG out. Reads and writes nothing.

One SVG serves light and dark pages: colours are CSS variables, which change with the reader's colour scheme. Series differ by colour (blue
and orange can be told apart by colour-blind readers), and by the shape of their points.
"""
import bisect
import collections
import html
import math

WIDTH, LEFT, RIGHT, GAP = 880, 62, 28, 16
SERIES = ("ours", "other-1", "other-2", "other-3")
STYLE = """
svg { --surface: #ffffff; --text: #1f2328; --quiet: #59636e; --grid: #e7eaee; --axis: #a3abb4;
      --ours: #0b62b8; --other-1: #c4500b; --other-2: #6b7a1e; --other-3: #8a4fb5; }
@media (prefers-color-scheme: dark) {
  svg { --surface: #12161c; --text: #e6eaef; --quiet: #9aa5b1; --grid: #262d36; --axis: #566170;
        --ours: #62b0ff; --other-1: #ff9d57; --other-2: #b9c95a; --other-3: #cfa0f0; }
}
text { font-family: system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif; font-size: 12px; fill: var(--quiet); }
.title { font-size: 17px; font-weight: 600; fill: var(--text); }
.panel { font-size: 13px; font-weight: 600; fill: var(--text); }
.caption { font-size: 11px; }
.surface { fill: var(--surface); }
.grid { stroke: var(--grid); stroke-width: 1; }
.axis { stroke: var(--axis); stroke-width: 1; }
.line { fill: none; stroke: currentColor; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
.thin { stroke-width: 1.4; }
.mark { fill: currentColor; stroke: var(--surface); stroke-width: 1.5; }
.span { stroke: currentColor; stroke-width: 1.5; opacity: .55; }
.note { fill: currentColor; font-weight: 600; paint-order: stroke; stroke: var(--surface); stroke-width: 4px; stroke-linejoin: round; }
.ours { color: var(--ours); } .other-1 { color: var(--other-1); } .other-2 { color: var(--other-2); } .other-3 { color: var(--other-3); }
"""

# `kind` is one of SERIES. `spans` are (x, smallest, largest); `marks` are (x, y); `notes` are (x, y, text, side), where the side is one of
# `left`, `right`, `above`, `below`. A `stepped` line changes at its points, as a distribution does.
Line = collections.namedtuple("Line", "kind points stepped thin spans marks notes", defaults=(False, False, (), (), ()))
# A scale of None is chosen from the data. Ticks of None are round numbers.
Panel = collections.namedtuple("Panel", "title x_label lines x_log y_log x_ticks y_ticks height", defaults=(None, None, None, None, 230))


class Axis:
    """The way from a value to a share of the panel's width or height."""

    def __init__(self, values, log=None, ticks=None):
        low, high = min(values), max(values)
        # A linear axis hides the small values if the largest is many times as large.
        self.log = low > 0 and (high / low > 20 if log is None else log)
        if ticks:
            low, high = min(low, ticks[0]), max(high, ticks[-1])
            low, high = (low / 1.15, high * 1.15) if self.log and len(ticks) < 12 else (low, high)
        self.ticks = ticks or (logarithmic(low, high) if self.log else linear(min(low, 0), high))
        self.low, self.high = (low, high) if ticks else (self.ticks[0], self.ticks[-1])

    def place(self, value):
        if self.log:
            return math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def linear(low, high, wanted=5):
    """Round ticks that contain both ends."""
    rough = (high - low or 1) / wanted
    power = 10 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(number * step, 10) for number in range(first, max(last, first + 1) + 1)]


def logarithmic(low, high):
    """Ticks at 1, 2 and 5 of each power of ten, or at the powers alone if there are many."""
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)
    for factors in ((1, 2, 5), (1,)):
        every = [round(factor * 10.0 ** power, 10) for power in powers for factor in factors]
        first = bisect.bisect_right(every, low * 1.000001) - 1
        last = max(bisect.bisect_left(every, high * 0.999999), first + 1)
        if last - first < 8:
            break
    return every[first:last + 1]


def figure(title, panels, legend, caption, columns=1):
    """The whole SVG. `legend` has pairs of a kind of line and its text; `caption` is wrapped."""
    width = (WIDTH - GAP * (columns - 1)) / columns
    notes = wrapped(caption, 138)
    top, parts = 66, []
    for begin in range(0, len(panels), columns):
        row = panels[begin:begin + columns]
        for place, panel in enumerate(row):
            parts.append(drawn(panel, place * (width + GAP), top, width))
        top += max(panel.height for panel in row) + 92
    height = top + 16 * len(notes)
    head = [f'<text class="title" x="20" y="28">{html.escape(title)}</text>', legend_of(legend)]
    foot = [f'<text class="caption" x="20" y="{top + 16 * number}">{html.escape(line)}</text>' for number, line in enumerate(notes)]
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{html.escape(title)}</title>", f"<style>{STYLE}</style>",
        f'<rect class="surface" width="{WIDTH}" height="{height}" rx="6"/>', *head, *parts, *foot, "</svg>\n"])


def legend_of(legend):
    parts, x = [], 20
    for kind, text in legend:
        parts.append(f'<g class="{kind}"><path class="line" d="M{x} 47h26"/>{mark(kind, x + 13, 47)}'
                     f'<text x="{x + 33}" y="51">{html.escape(text)}</text></g>')
        x += 33 + text_width(text) + 24
    return "\n".join(parts)


def text_width(text, size=12):
    """About how wide a text is: nobody measures fonts here."""
    return 0.56 * size * len(text)


def wrapped(text, most):
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + len(word) >= most:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word
    return lines


def drawn(panel, x, y, width):
    """One panel: its title, which names the unit of the vertical axis; grid, axes and lines."""
    every = [point for line in panel.lines for point in line.points]
    spans = [value for line in panel.lines for span in line.spans for value in span[1:]]
    across = Axis([point[0] for point in every], panel.x_log, panel.x_ticks)
    up = Axis([point[1] for point in every] + spans, panel.y_log, panel.y_ticks)
    left, right, top, bottom = x + LEFT, x + width - RIGHT, y + 30, y + 30 + panel.height
    def at(point):
        return left + across.place(point[0]) * (right - left), bottom - up.place(point[1]) * (bottom - top)
    parts = [f'<text class="panel" x="{x + 20:.1f}" y="{y + 14:.1f}">{html.escape(panel.title)}</text>']
    if up.log:
        parts.append(f'<text x="{right:.1f}" y="{y + 14:.1f}" text-anchor="end">log scale</text>')
    label = panel.x_label + (" (log scale)" if across.log else "")
    for tick in up.ticks:
        line = at((across.low, tick))[1]
        parts.append(f'<path class="grid" d="M{left:.1f} {line:.1f}H{right:.1f}"/>'
                     f'<text x="{left - 8:.1f}" y="{line + 4:.1f}" text-anchor="end">{number(tick)}</text>')
    for tick in across.ticks:
        line = at((tick, up.low))[0]
        parts.append(f'<path class="grid" d="M{line:.1f} {top:.1f}V{bottom:.1f}"/>'
                     f'<text x="{line:.1f}" y="{bottom + 18:.1f}" text-anchor="middle">{number(tick)}</text>')
    parts.append(f'<path class="axis" d="M{left:.1f} {bottom:.1f}H{right:.1f}"/>'
                 f'<text x="{(left + right) / 2:.1f}" y="{bottom + 36:.1f}" text-anchor="middle">{html.escape(label)}</text>')
    # Ours comes last, so that it lies above the others.
    parts += [of_line(line, at, (left, bottom)) for line in sorted(panel.lines, key=lambda line: line.kind == "ours")]
    return "\n".join(parts)


def of_line(line, at, corner):
    parts = [f'<g class="{line.kind}">']
    for place, low, high in line.spans:
        (x, bottom), (_, top) = at((place, low)), at((place, high))
        parts.append(f'<path class="span" d="M{x:.1f} {bottom:.1f}V{top:.1f}"/>')
    places = thinned([at(point) for point in line.points])
    if len(places) > 1:
        parts.append(f'<path class="line{" thin" if line.thin else ""}" d="{path(places, line.stepped)}"/>')
    parts += [mark(line.kind, *at(point)) for point in line.marks]
    parts += [note(*at(one[:2]), *one[2:], corner) for one in line.notes]
    return "\n".join(parts) + "</g>"


def note(x, y, text, side, corner):
    """A text beside a point; on the other side if it would lie upon the axis."""
    if side == "left" and x - text_width(text) - 14 < corner[0]:
        side = "right"
    if side == "below" and y + 22 > corner[1]:
        side = "above"
    across, down, anchor = {"left": (-9, 4, "end"), "right": (9, 4, "start"), "above": (0, -10, "middle"), "below": (0, 19, "middle")}[side]
    return f'<text class="note" x="{x + across:.1f}" y="{y + down:.1f}" text-anchor="{anchor}">{html.escape(text)}</text>'


def path(places, stepped):
    """A path whose repeated coordinates are left out."""
    (x, y), *rest = places
    text = f"M{x:.1f} {y:.1f}"
    for x, y in rest:
        text += f"H{x:.1f}V{y:.1f}" if stepped else f"L{x:.1f} {y:.1f}"
    return text


def thinned(places):
    """At most four points for each half of a pixel: more cannot be seen, and peaks stay."""
    groups = collections.defaultdict(list)
    for place in places:
        groups[int(place[0] * 2)].append(place)
    kept = []
    for group in groups.values():
        chosen = {0, len(group) - 1, *(pick(range(len(group)), key=lambda one: group[one][1]) for pick in (min, max))}
        kept += [group[one] for one in sorted(chosen)]
    return kept


def mark(kind, x, y):
    if kind == "ours":
        return f'<circle class="mark" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>'
    shapes = {"other-1": "-4 -4h8v8h-8z", "other-2": "0 -5l5 9h-10z", "other-3": "0 -5.5l5.5 5.5l-5.5 5.5l-5.5 -5.5z"}
    return f'<path class="mark" d="M{x:.1f} {y:.1f}m{shapes[kind]}"/>'


def number(value):
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:.3f}".rstrip("0")
