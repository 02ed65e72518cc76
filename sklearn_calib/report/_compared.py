"""Models beside each other in a report: the plane of their losses, and the Murphy difference."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import expit

from .._kernels._logit_axis import LogitAxis
from .._kernels._loss_plane import Plane, round_numbers
from .._show import in_page, plain
from ..decisions import decision_difference
from ._pictures import rare

if TYPE_CHECKING:
    from ..decisions import NetBenefitDifference
    from ._content import Content

_WIDTH, _HEIGHT = 376, 300
_LEFT, _TOP, _RIGHT, _BOTTOM = 74, 22, 356, 250
_LETTER = 7.2
_MOST_ROWS = 2_000_000  # of a difference by paired rows: some 0.3 s for a million


def compared(report: "Content") -> bool:
    """Whether there are several models whose losses are known."""
    return len(report.decomposition) > 1


class Murphy(NamedTuple):
    """Elementary scores of the second of two models less those of the first.

    Attributes
    ----------
    difference : NetBenefitDifference
    axis : LogitAxis or None
        Of the thresholds, where events are rare.
    """

    difference: "NetBenefitDifference"
    axis: LogitAxis | None


def comparison(report: "Content", murphy: Murphy | None) -> str:
    """The pictures as HTML that is safe."""
    parts = _plane(report)
    if murphy is not None:
        parts += _murphy(report, murphy)
    return f'<div class="drawn">\n<div class="pair">\n{parts}</div>\n</div>'


def _plane(report):
    """Each model as a numbered point; the names are below."""
    parts = report.decomposition
    x = np.array([one.calibration for one in parts.values()])
    y = np.array([one.uncertainty - one.refinement for one in parts.values()])
    plane = Plane.around(x, y, next(iter(parts.values())).uncertainty)
    drawn, losses = [], []
    for loss, ends in plane.lines():
        points = [_point(*plane.share(a, b)) for a, b in zip(*ends, strict=True)]
        drawn.append(f'<path class="margin" d="M{_at(points[0])}L{_at(points[1])}"/>')
        at_top = points[1][1] <= _TOP + 0.5
        (across, up), kind = points[1], "middle" if at_top else "end"
        across, up = (across, up - 5) if at_top else (across - 3, up - 4)
        drawn.append(f'<text x="{across:.1f}" y="{up:.1f}" class="{kind}">{loss:.4g}</text>')
    for number, (name, one) in enumerate(parts.items(), 1):
        across, up = _point(*plane.share(x[number - 1], y[number - 1]))
        losses.append(f"{plain(name)} {one.uncertainty + x[number - 1] - y[number - 1]:.4f}")
        side = -9 if across > _RIGHT - 30 else 9
        kind = "end" if side < 0 else "start"
        drawn.append(
            f'<g class="tone0 point"><title>{in_page(losses[-1], None)}</title><circle class="dot" '
            f'cx="{across:.1f}" cy="{up:.1f}" r="4"/></g><text x="{across + side:.1f}" '
            f'y="{up + 4:.1f}" class="name {kind}">{number}</text>'
        )
    axes = _axes(plane.x_limits, plane.y_limits, "miscalibration [nats]", "discrimination [nats]")
    says = f"Log loss by temperature, in miscalibration and discrimination: {'; '.join(losses)}."
    names = "".join(f"<li><bdi>{in_page(name, 60)}</bdi></li>" for name in parts)
    title = "What the log loss is made of"
    note = "dotted: equal log loss, which falls towards the upper left"
    return _figure(title, note, says, axes + drawn, f"<ol>{names}</ol>")


def _pair(report):
    """Both models where there are two, of two classes, of independent rows that are there."""
    models = report._models
    if len(models) != 2 or report.n_clusters is not None:  # its bands count rows
        return None
    cases = [model.case for model in models.values()]
    few = all(case is not None and len(case.codes) <= _MOST_ROWS for case in cases)
    return cases if few and all(model.two_classes for model in models.values()) else None


def murphy_of(report: "Content") -> Murphy | None:
    """What the Murphy diagram shows, where two models can be compared by it."""
    cases = _pair(report)
    if cases is None or not compared(report):
        return None
    one, other = (case.problems()[0] for case in cases)
    axis = table = None
    if rare(report):
        axis = LogitAxis.around([np.quantile(p.score, [0.01, 0.99]) for p in (one, other)])
        table = expit(np.linspace(axis.low, axis.high, 99))
    found = decision_difference(
        one.hit.astype(int),
        other.score,
        one.score,
        thresholds=table,
        level=report.level,
        sample_weight=one.weight,
        labels=[0, 1],
        random_state=report._seed,
    )
    return Murphy(found, axis)


def _murphy(report, murphy):
    """The picture of the difference."""
    found, axis = murphy
    scale = 1 - found.threshold
    lines = [scale * line for line in (found.difference, found.low, found.high)]
    low, high = min(lines[1].min(), 0.0), max(lines[2].max(), 0.0)
    pad = 0.06 * (high - low) or 1e-3
    limits = low - pad, high + pad
    share, ticks = np.asarray, None
    if axis is not None:
        share = axis.share
        ticks = [(axis.share(p), text) for p, text in axis.ticks((_RIGHT - _LEFT) / _LETTER)]
    x, zero = share(found.threshold), -limits[0] / (limits[1] - limits[0])
    middle, below, above = (
        [_point(a, b) for a, b in zip(x, (line - limits[0]) / np.ptp(limits), strict=True)]
        for line in lines
    )
    drawn = [
        f'<path class="band" d="M{"L".join(map(_at, [*below, *above[::-1]]))}Z"/>',
        f'<path class="diagonal" d="M{_at(_point(0, zero))}L{_at(_point(1, zero))}"/>',
        f'<g class="tone0"><path class="line" d="M{"L".join(map(_at, middle))}"/></g>',
    ]
    names = [in_page(name, 40) for name in report._models]
    axes = _axes((0.0, 1.0), limits, "threshold", "elementary scores, difference", ticks)
    title = "Which of the two for whom (Murphy diagram)"
    note = f"below 0, the second is better for users who act at that threshold; {report.level:.0%}"
    listed = f"<ol><li><bdi>{names[0]}</bdi></li><li><bdi>{names[1]}</bdi></li></ol>"
    return _figure(title, f"{note} interval at each", _said(found, report), axes + drawn, listed)


def _said(found: "NetBenefitDifference", report: "Content") -> str:
    """The picture in words."""
    first, second = map(plain, report._models)
    better, worse = (found.high < 0).mean(), (found.low > 0).mean()
    return (
        f"Mean elementary scores of {second} less those of {first}: at {better:.0%} of the "
        f"thresholds {second} is better beyond chance, at {worse:.0%} {first} is."
    )


def _figure(title, note, says, drawn, names):
    shapes = "\n".join(drawn)
    return (
        f"<figure><figcaption>{in_page(title)}<span>{in_page(note)}</span></figcaption>\n"
        f'<svg class="diagram large" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{in_page(says, None)}">\n{shapes}\n</svg>\n{names}</figure>\n'
    )


def _point(across, up):
    """Where it lies in the picture, from shares of both axes."""
    return _LEFT + (_RIGHT - _LEFT) * float(across), _BOTTOM - (_BOTTOM - _TOP) * float(up)


def _at(point):
    return f"{point[0]:.1f} {point[1]:.1f}"


def _axes(x_limits, y_limits, across, up, x_ticks=None):
    """Grid, numbers and names of the axes; ticks across may be given as (share, text)."""
    (left, right), (low, high) = x_limits, y_limits
    at_x = [((value - left) / (right - left), text) for value, text in _texts(left, right)]
    if x_ticks is not None:
        at_x = x_ticks
    parts, grid = [], ""
    for share, text in at_x:
        x, _ = _point(share, 0)
        grid += f"M{x:.1f} {_TOP}V{_BOTTOM}"
        parts.append(f'<text x="{x:.1f}" y="{_BOTTOM + 16}" class="middle">{text}</text>')
    for value, text in _texts(low, high):
        _, y = _point(0, (value - low) / (high - low))
        grid += f"M{_LEFT} {y:.1f}H{_RIGHT}"
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" class="end">{text}</text>')
    middle = (_LEFT + _RIGHT) / 2, (_TOP + _BOTTOM) / 2
    return [
        f'<path class="grid" d="{grid}"/>',
        *parts,
        f'<text x="{middle[0]:.1f}" y="{_HEIGHT - 8}" class="middle name">{across}</text>',
        f'<text transform="translate(12 {middle[1]:.1f}) rotate(-90)" class="middle name">{up}'
        "</text>",
    ]


def _texts(low, high):
    """Round numbers between two ends, with their texts."""
    return [(value, f"{value:g}".replace("-", "\u2212")) for value in round_numbers(low, high)]
