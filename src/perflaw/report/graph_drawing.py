"""Graphs as SVG: call paths, patterns of variance and flame graphs, laid out as the page draws them.

What the forms and lines mean is that of page/mine_graph.js, page/variance_graph.js and page/flame.js.
"""

from __future__ import annotations

import colorsys
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Final

from perflaw.report.drawing import COLOURS, INK, Plot, box, label, picture
from perflaw.report.mine.call_path_graph import Graph, Line, Node
from perflaw.report.quantity import count, counted, percent, quantity, significant
from perflaw.report.tables import clipped
from perflaw.report.variance.text import last_name
from perflaw.types.documents import Document
from perflaw.types.specifications import Edge
from perflaw.types.variance import Pattern, PatternNode

MAX_PATTERN_NODES: Final = 24
"""Nodes of a pattern that are drawn, those of the greatest variance impact."""
MAX_STACK: Final = 100
"""Rows of a flame graph."""
_LETTER: Final = 0.62
"""Width of a letter, in heights of the font."""
_TOP: Final = 30
_QUIET, _PALE, _WARN = "#57606a", "#c3c9d0", "#fff3d6"
_ARROW: Final = (
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto" '
    f'markerUnits="userSpaceOnUse"><path d="M0,0 L8,4 L0,8 z" fill="{_QUIET}"/></marker></defs>'
)
Point = tuple[float, float]


def _ending(name: str, width: float, size: float) -> str:
    """A name that fits, cut at its start, which says less than its end."""
    most = max(int(width / (_LETTER * size)), 3)
    return name if len(name) <= most else f"…{name[1 - most :]}"


def _outline(form: str, stroke: str, fill: str = "#fff", width: float = 1.4, dashes: str = "") -> str:
    """A form with a line around it; ``form`` is its element and its place."""
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<{form} fill="{fill}" stroke="{stroke}" stroke-width="{width:.1f}"{dashed}/>'


def _way(path: str, stroke: str, width: float, dashes: str = "", arrow: bool = False) -> str:
    """A line from one node to another."""
    end = ' marker-end="url(#arrow)"' if arrow else ""
    return _outline(f'path d="{path}" stroke-linecap="round"{end}', stroke, "none", width, dashes)


# ---- Flame graph.

_FLAME_WIDTH, _ROW, _LEAST_SHARE = 1200, 19, 0.0008


def flame_plot(profile: Document) -> Plot | None:
    """The calling contexts of the document of ``perflaw show``: as wide as their cost, callees below their callers.

    None where its metric has no cost.
    """
    metric, whole = profile["metric"], profile["whole"][profile["metric"]]
    if whole <= 0:
        return None
    callees: dict[int | None, list[Document]] = {}
    for node in profile["tree"]:
        callees.setdefault(node["parent"], []).append(node)
    parts, deepest = [], 0
    waiting: list[tuple[int | None, float, int]] = [(None, 0.0, 0)]
    while waiting:
        parent, start, depth = waiting.pop()
        for node in sorted(callees.get(parent, ()), key=lambda one: -one["total"][metric]):
            share = node["total"][metric] / whole
            if share < _LEAST_SHARE or depth == MAX_STACK:
                continue
            left, wide, top = start * _FLAME_WIDTH, share * _FLAME_WIDTH, _TOP + depth * _ROW
            parts.append(box(left, top, max(wide - 0.6, 0.4), _ROW - 1, _module_colour(node["component"])))
            if letters := int((wide - 6) / (_LETTER * 11)):
                name = node["component"] if len(node["component"]) <= letters else last_name(node["component"])
                if letters >= min(len(name), 4):
                    parts.append(label(left + 3, top + 13, clipped(name, letters), size=11))
            waiting.append((node["id"], start, depth + 1))
            deepest, start = max(deepest, depth), start + share
    unit = profile["metrics"][metric]
    title = f"{profile['runs'][0]['target']}: {metric} by calling context, {quantity(whole, unit)} in all"
    return picture(title, _TOP + (deepest + 1) * _ROW + 8, parts, _FLAME_WIDTH)


def _module_colour(name: str) -> str:
    """The colour of a function's package: light, so that dark letters stand on it."""
    hue = 7
    for letter in name.split(".")[0]:
        hue = (hue * 31 + ord(letter)) % 3600
    return "#" + "".join(f"{round(255 * part):02x}" for part in colorsys.hls_to_rgb(hue / 3600, 0.76, 0.55))


# ---- Call paths of a function.

_CALL_WIDTH, _ACROSS, _DOWN, _MARGIN, _LINE_HEIGHT, _MOST_NAMES = 190, 26, 58, 24, 15, 4


@dataclass(frozen=True, slots=True)
class _CallPlaces:
    """Where the layers of a graph and the places within them are in the picture."""

    left: float
    """The leftmost place."""
    tops: Sequence[float]
    """Upper edge of each layer."""
    heights: Sequence[float]
    """Height of each layer."""

    def x(self, place: float) -> float:
        """Middle of a node."""
        return _MARGIN + (place - self.left) * (_CALL_WIDTH + _ACROSS) + _CALL_WIDTH / 2

    def edge(self, node: Node, lower: bool) -> Point:
        """Middle of the lower or the upper edge of a node."""
        middle = self.tops[node.layer] + self.heights[node.layer] / 2
        return self.x(node.place), middle + (_call_height(node) / 2 if lower else -_call_height(node) / 2)

    def points(self, line: Line, nodes: Sequence[Node]) -> list[Point]:
        """The points of a line: it goes past the nodes between."""
        between = [
            (self.x(place), self.tops[layer] + down)
            for place, layer in line.bends
            for down in (0.0, self.heights[layer])
        ]
        return [self.edge(nodes[line.source], True), *between, self.edge(nodes[line.target], False)]


def call_path_plot(title: str, graph: Graph, names: dict[Edge, str], groups: Sequence[str]) -> Plot:
    """The call paths of a function, from the start of the program down to it.

    Calls on paths of one group have its colour, those on paths of several are grey, those without a group are dotted.
    ``names`` are those of edges in expressions, ``groups`` the words of each group for the legend.
    """
    spots = [node.place for node in graph.nodes] + [place for line in graph.lines for place, _ in line.bends]
    left, right = min(spots, default=0.0), max(spots, default=0.0)
    layers = range(max((node.layer for node in graph.nodes), default=0) + 1)
    heights = [max((_call_height(one) for one in graph.nodes if one.layer == layer), default=0.0) for layer in layers]
    begin = _TOP + 14.0 + 15 * len(groups)
    tops = list(accumulate((height + _DOWN for height in heights[:-1]), initial=begin))
    places = _CallPlaces(left, tops, heights)
    parts = [_ARROW]
    parts += [
        label(12, _TOP + 10 + 15 * place, name, colour=COLOURS[place % len(COLOURS)])
        for place, name in enumerate(groups)
    ]
    most = max((line.calls for line in graph.lines), default=1)
    ordered = sorted(graph.lines, key=lambda line: -len(line.groups))
    for line in ordered:
        colour = _call_colour(line)
        width, dashes = 1.2 + 4 * math.sqrt(line.calls / most), "1 5" if line.groups == (-1,) else ""
        parts.append(_way(_smooth(places.points(line, graph.nodes)), colour, width, dashes, arrow=True))
    for node in graph.nodes:
        parts += _call_box(node, places, is_target=node.layer == layers[-1])
    for line in ordered:
        if name := names.get(line.edge):
            (ax, ay), (bx, by) = places.points(line, graph.nodes)[-2:]
            x, y = (ax + bx) / 2, (ay + by) / 2
            form = f'rect x="{x - 15:.1f}" y="{y - 10:.1f}" width="30" height="20" rx="10"'
            parts += [_outline(form, _call_colour(line)), label(x, y + 4, name, "middle")]
    bottom = tops[-1] + heights[-1] + _MARGIN
    if graph.left:
        parts.append(label(12, bottom, f"{counted(graph.left, 'call path')} with the fewest calls not drawn"))
    width = 2 * _MARGIN + (right - left) * (_CALL_WIDTH + _ACROSS) + _CALL_WIDTH
    return picture(title, bottom + 14 * bool(graph.left), parts, max(width, 640))


def _call_colour(line: Line) -> str:
    if len(line.groups) != 1:
        return _PALE
    return COLOURS[line.groups[0] % len(COLOURS)] if line.groups[0] >= 0 else _QUIET


def _shown_names(node: Node) -> list[str]:
    names = list(node.names)
    if len(names) > _MOST_NAMES:
        names[2:-1] = [f"… {len(names) - 3} more"]
    return names


def _call_height(node: Node) -> float:
    return len(_shown_names(node)) * _LINE_HEIGHT + 14.0


def _call_box(node: Node, places: _CallPlaces, is_target: bool) -> Iterator[str]:
    x, top = places.edge(node, lower=False)
    form = f'rect x="{x - _CALL_WIDTH / 2:.1f}" y="{top:.1f}" width="{_CALL_WIDTH}" height="{_call_height(node):.0f}" rx="4"'
    yield _outline(form, INK if is_target else _QUIET, width=1.8 if is_target else 1)
    for place, name in enumerate(_shown_names(node)):
        yield label(x, top + 18 + place * _LINE_HEIGHT, _ending(name, _CALL_WIDTH - 12, 12), "middle")


def _smooth(points: Sequence[Point]) -> str:
    path = "M{:.1f},{:.1f}".format(*points[0])
    for (ax, ay), (bx, by) in pairwise(points):
        half = (ay + by) / 2
        path += f" C{ax:.1f},{half:.1f} {bx:.1f},{half:.1f} {bx:.1f},{by:.1f}"
    return path


# ---- Patterns of variance.

_NODE_WIDTH, _NODE_HEIGHT, _NODE_ACROSS, _BETWEEN, _SIDE, _STACKED = 208, 64, 46, 16, 100, 3


@dataclass(slots=True)
class _Spot:
    """A node of a pattern and its place."""

    node: PatternNode
    parent: _Spot | None
    depth: int
    callees: list[_Spot] = field(default_factory=list)
    x: float = 0.0
    """Its left edge."""
    y: float = 0.0
    """Its upper edge."""
    is_stacked: bool = False
    """Whether it stands below other leaves of its parent."""


def pattern_plot(title: str, pattern: Pattern, unit: str) -> Plot:
    """A pattern as in the paper's figures: boxes are Tasks, ovals Contrasts, dashed boxes Contributors.

    Dotted back-edges carry shares of the variance; nodes whose time varies by waiting or interference are shaded.
    """
    order = sorted(range(len(pattern.nodes)), key=lambda place: (-pattern.nodes[place].vim, place))
    kept = set(order[:MAX_PATTERN_NODES])  # a parent has at least the impact of its child
    spots: dict[int, _Spot] = {}
    for place, node in enumerate(pattern.nodes):
        if place in kept:
            parent = spots.get(node.parent) if node.parent is not None else None
            spots[node.id] = _Spot(node, parent, parent.depth + 1 if parent else 0)
            if parent:
                parent.callees.append(spots[node.id])
    width = _set_places(spots[pattern.nodes[0].id], _SIDE) - _NODE_ACROSS + _SIDE
    parts = [_ARROW, *(_way(_tree_path(one), _QUIET, 1.2) for one in spots.values() if one.parent)]
    labels = []
    drawn = [edge for edge in pattern.contributions if edge.to in spots and edge.source in spots]
    for edge in drawn:
        beside = [other for other in drawn if other.to == edge.to]
        path, (x, y) = _back_edge(spots[edge.source], spots[edge.to], (beside.index(edge) + 1) / (len(beside) + 1))
        parts.append(_way(path, _QUIET, 1.4, "1.5 4", arrow=True))
        labels.append(label(x, y + 4, percent(edge.cf_net), "middle", halo=True))
    for one in spots.values():
        parts += _pattern_box(one, unit)
    bottom = max(one.y for one in spots.values()) + _NODE_HEIGHT + 26
    note = "Boxes are Tasks, ovals Contrasts, dashed boxes Contributors; arrows carry shares of the variance."
    if left := len(pattern.nodes) - len(spots):
        note += f" {counted(left, 'node')} of less variance not drawn."
    labels.append(label(8, bottom, note, colour=_QUIET, size=11))
    return picture(title, bottom + 10, [*parts, *labels], max(width, 640))


def _set_places(spot: _Spot, left: float) -> float:
    """Place a node and all below it from ``left`` on: leaves take the next strip, parents the middle of their callees.

    Many leaves of one parent stand below each other. Gives where the next node starts.
    """
    step = _NODE_HEIGHT + _DOWN
    spot.y = _TOP + 12 + spot.depth * step
    leaves = [one for one in spot.callees if not one.callees]
    stacked = leaves if len(leaves) >= _STACKED else []
    following = left
    for one in spot.callees:
        if not stacked or one.callees:
            following = _set_places(one, following)
    for place, leaf in enumerate(stacked):
        leaf.x, leaf.y, leaf.is_stacked = following + 34, spot.y + step + place * (_NODE_HEIGHT + _BETWEEN), True
    if stacked:
        following += _NODE_WIDTH + _NODE_ACROSS + 34
    xs = [one.x for one in spot.callees]
    spot.x = (min(xs) + max(xs)) / 2 if xs else left
    return max(following, left + _NODE_WIDTH + _NODE_ACROSS)


def _tree_path(spot: _Spot) -> str:
    """The way from a parent to a node; to stacked leaves along their left side."""
    assert spot.parent
    x, y = spot.parent.x + _NODE_WIDTH / 2, spot.parent.y + _NODE_HEIGHT
    half = y + _DOWN / 2
    if spot.is_stacked:
        return f"M{x:.1f},{y:.1f} V{half:.1f} H{spot.x - 26:.1f} V{spot.y + _NODE_HEIGHT / 2:.1f} H{spot.x:.1f}"
    return _smooth([(x, y), (spot.x + _NODE_WIDTH / 2, spot.y)])


def _back_edge(source: _Spot, target: _Spot, part: float) -> tuple[str, Point]:
    """The way from where the variance comes from up to where it is seen, beside the boxes, and the place of its share.

    ``part`` is how far down the edge of the target it ends.
    """
    on_left = source.x < target.x
    side = 0 if on_left else _NODE_WIDTH
    ax, ay, bx, by = source.x + side, source.y + _NODE_HEIGHT / 2, target.x + side, target.y + _NODE_HEIGHT * part
    out = (-1 if on_left else 1) * (14 + 24 * min(3, source.depth - target.depth))
    if abs(ax - bx) < _NODE_WIDTH:
        far = (min if on_left else max)(ax, bx) + out
        cx, cy, dx, dy = far, ay, far, by
    else:
        cx, cy, dx, dy = ax + out, (ay + by) / 2, bx + out * 1.4, by
    path = f"M{ax:.1f},{ay:.1f} C{cx:.1f},{cy:.1f} {dx:.1f},{dy:.1f} {bx:.1f},{by:.1f}"
    return path, ((ax + 3 * cx + 3 * dx + bx) / 8, (ay + 3 * cy + 3 * dy + by) / 8)


def _pattern_box(spot: _Spot, unit: str) -> Iterator[str]:
    node, x, y = spot.node, spot.x, spot.y
    outside = node.cause in ("interference", "waiting")
    fill = _WARN if outside else "#fff"
    if node.kind == "Contrast":
        middle = f'cx="{x + _NODE_WIDTH / 2:.1f}" cy="{y + _NODE_HEIGHT / 2:.1f}"'
        yield _outline(
            f'ellipse {middle} rx="{_NODE_WIDTH / 2 + 14:.1f}" ry="{_NODE_HEIGHT / 2 + 5:.1f}"', _QUIET, fill
        )
    else:
        dashes = "6 4" if node.kind == "Contributor" else ""
        form = f'rect x="{x:.1f}" y="{y:.1f}" width="{_NODE_WIDTH}" height="{_NODE_HEIGHT}" rx="3"'
        yield _outline(form, INK, fill, dashes=dashes)
    last = f"N {count(node.n)} · V {quantity(node.vim, unit)}"
    if outside:
        last = f"{percent(node.off_cpu or 0)} off the CPU"
    middle_x = x + _NODE_WIDTH / 2
    yield label(
        middle_x, y + 19, f"({node.id}) {_ending(node.component.name, _NODE_WIDTH - 50, 13)}", "middle", size=13
    )
    figures = f"μ {quantity(node.mean, unit)} · γ {significant(node.cov)}"
    yield label(middle_x, y + 36, figures, "middle", _QUIET)
    yield label(middle_x, y + 53, last, "middle", _QUIET)
