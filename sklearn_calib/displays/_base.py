"""Display: what all displays share."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import wraps
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from .._argument_checks import import_optional, unknown_name_error
from .._kernels._picture_axes import LogitAxis
from .._show import escape_legend_label, escape_mathtext
from .._typing import (
    AnyArray,
    ArrayLike,
    Axes,
    AxesLike,
    Estimator,
    Features,
    FloatArray,
    Self,
)
from .._validation import align_columns, check_same_index
from ..classifiers import check_gives_proba
from ..exceptions import invalid_input

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The numbers at an axis on log-odds have this many characters per inch.
_TICK_CHARACTERS_PER_INCH = 11.0
#: Options that `curve_kwargs` may contain for a line, and for bars or dots.
LINE_STYLE_OPTIONS = (
    "alpha",
    "color",
    "label",
    "linestyle",
    "linewidth",
    "marker",
    "markersize",
)
BAR_STYLE_OPTIONS = ("alpha", "color", "label")
CurveKwargs = Mapping[str, Any] | Sequence[Mapping[str, Any]] | None
#: Of each panel the pairs (x, y) that are drawn, or (x, y, value).
PlottedData = list[list[tuple[Any, ...]]]
#: Places of a legend above its panel.
LEGEND_ABOVE: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1)}
LEGEND_ABOVE_RIGHT: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1, 1)}


#: What to write instead of options of matplotlib.
_MATPLOTLIB_OPTION_HINTS = {
    "figsize": "Pass ax=plt.subplots(figsize=...)[1]",
    "title": "Call ax_.set_title(...) of the display, or of one of its axes_",
}


def _suggest_option_names(method):
    """Wrap a method so that the error on an unknown option names what to write."""
    parameters = signature(method).parameters
    if any(one.kind is Parameter.VAR_KEYWORD for one in parameters.values()):
        return method
    known = [*parameters][1:]  # without the class

    @wraps(method)
    def call_with_suggestions(cls, *args, **options):
        for name, value in options.items():
            if name in known:
                continue
            hint = _MATPLOTLIB_OPTION_HINTS.get(name)
            if name in cls._styled and "curve_kwargs" in known:
                hint = f"Pass curve_kwargs={{{name!r}: {value!r}}}"
            if hint is None:
                raise unknown_name_error("an option", name, known, error=TypeError)
            raise invalid_input(
                expected=f"an option among {', '.join(known)}",
                got=repr(name),
                hint=hint,
                error=TypeError,
            )
        return method(cls, *args, **options)

    return call_with_suggestions


class Display:
    """A picture of a result: the axes, the figure and what is in it.

    A subclass stores the result in its constructor and computes nothing there. It
    writes `get_plotted_data` and ``_draw(*axes)``, which gets one matplotlib Axes per panel; the
    public `plot` is written here, makes the axes if none are given, and calls
    ``_draw``. A display with options has a ``plot`` of its own that ends with ``return
    self._draw_on_axes(ax, option=option)``. Class methods ``from_...`` compute the result
    and call `plot`; their options are parameters with names. If curves can be styled,
    ``_look`` has their names with their default style, or ``_curves()`` if they depend
    on the result; ``_draw`` finds in `styles_` what each is to look like.

    Attributes
    ----------
    figure_ : matplotlib Figure
        After `plot`.
    axes_ : ndarray of matplotlib Axes
        After `plot`, one per panel.
    ax_ : matplotlib Axes
        After `plot`, if there is one panel.
    styles_ : dict of str to dict
        After `plot`, by the name of each curve what it looks like.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn_calib.displays import Display
    >>> class LineDisplay(Display):
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    ...     def get_plotted_data(self):
    ...         return [[(self.x, self.y)]]
    ...     def _draw(self, ax):
    ...         ax.plot(self.x, self.y)
    >>> display = LineDisplay([0, 1], [2, 3]).plot()
    >>> display.figure_ is display.ax_.figure
    True
    """

    figure_: "Figure"
    axes_: AnyArray
    ax_: Axes
    styles_: dict[str, dict[str, Any]]
    _styled: ClassVar[tuple[str, ...]] = LINE_STYLE_OPTIONS  # the options of a curve
    _look: ClassVar[
        dict[str, dict[str, Any]]
    ] = {}  # of the curves, if they are always the same
    _figure: ClassVar[
        dict[str, Any]
    ] = {}  # of ``plt.subplots``, if it is always the same

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        # Subclasses get the suggestions without a decorator of their own.
        for name, made in [*vars(cls).items()]:
            if name.startswith("from_") and isinstance(made, classmethod):
                setattr(cls, name, classmethod(_suggest_option_names(made.__func__)))
            if name == "plot":
                cls.plot = _suggest_option_names(made)  # type: ignore[method-assign]

    def get_plotted_data(self) -> PlottedData:
        """Return the plotted data as numbers.

        Returns
        -------
        panels : list of list of tuple of array-like of shape (n_points,)
            For each panel the pairs (x, y) that are drawn there as a line, as dots or
            as the ends of bars; (x, y, value) if the value is shown by a colour.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no get_plotted_data; see Display"
        )

    @_suggest_option_names
    def plot(
        self, *, ax: AxesLike | None = None, curve_kwargs: CurveKwargs = None
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes or sequence of Axes, default=None
            Where to draw, one per panel; a new figure by default.
        curve_kwargs : dict or list of dict, default=None
            What the curves look like: one dict for all, or one for each. Of lines
            alpha, color, label, linestyle, linewidth, marker and markersize; of bars
            and dots alpha, color and label. The description of the display lists its
            curves, if they are not the models, and their further options.

        Returns
        -------
        self : Display

        Raises
        ------
        ValueError
            Another number of axes than panels, or of dicts than curves.
        TypeError
            An option of `curve_kwargs` that the display does not have.
        ModuleNotFoundError
            Matplotlib is not installed.
        """
        return self._draw_on_axes(ax, curve_kwargs)

    def _curves(self):
        """Return the curves that can be styled, with their default styles by name."""
        return self._look

    def _resolve_styles(self, given):
        """Return the style of each curve: the default, updated by `given`."""
        curves = self._curves()
        # One mapping styles all curves; a list has one per curve.
        several = (
            [given or {}] * len(curves) if isinstance(given, Mapping | None) else given
        )
        fit = isinstance(several, list | tuple) and len(several) == len(curves)
        fit = fit and all(isinstance(one, Mapping) for one in several)
        if not fit or (given and not curves):
            hint = (
                f"The curves are {', '.join(map(str, curves))}"
                if curves
                else "Leave it out"
            )
            raise invalid_input(
                "curve_kwargs",
                expected=f"a dict or a list of {len(curves)} dicts as curve_kwargs",
                got=repr(given)[:200],
                hint=hint,
            )
        for name in (
            name for one in several for name in one if name not in self._styled
        ):
            raise unknown_name_error(
                "an option of curve_kwargs", name, self._styled, error=TypeError
            )
        return {
            name: curves[name] | dict(one)
            for name, one in zip(curves, several, strict=True)
        }

    def _draw_on_axes(self, axes, curve_kwargs=None, **options):
        """Draw on the axes or on new ones; returns the display itself."""
        self.styles_ = self._resolve_styles(curve_kwargs)
        if axes is None:
            axes = self._new_axes(import_optional("matplotlib.pyplot", "plot"))
        # A single Axes, a list and an array of them.
        axes = np.ravel(np.asarray(axes, dtype=object))
        count = len(self.get_plotted_data())
        strange = [ax for ax in axes if not hasattr(ax, "get_legend_handles_labels")]
        if len(axes) != count or strange:
            got = repr(strange[0])[:60] if strange else f"{len(axes)}"
            raise invalid_input(
                expected=f"{count} axes, one per panel",
                got=got,
                hint="Leave them out for a new figure",
            )
        self._draw(*axes, **options)
        for ax in axes:
            ax.spines[["top", "right"]].set_visible(False)
        self.axes_ = axes
        self.figure_ = axes[0].figure
        if count == 1:
            self.ax_ = axes[0]
        return self

    def _new_axes(self, plt):
        """Make the axes of a new figure; by default those of `_subplots`."""
        return plt.subplots(layout="constrained", **self._subplots())[1]

    def _make_grid(self, plt, width, height):
        """Make the axes of a new figure in rows of at most four panels."""
        count = len(self.get_plotted_data())
        columns = min(count, 4)
        rows = -(-count // columns)
        size = width * columns, height * rows
        axes = plt.subplots(
            rows, columns, figsize=size, squeeze=False, layout="constrained"
        )[1]
        # The last row of the grid may have fewer panels.
        for unused in axes.flat[count:]:
            unused.remove()
        return axes.flat[:count]

    def _subplots(self):
        """Return the arguments of ``plt.subplots``: the size in inches, and the panels."""
        return self._figure

    def _draw(self, *axes):
        raise NotImplementedError(f"{type(self).__name__} has no _draw; see Display")


class ModelsDisplay(Display):
    """A picture of one result for each model, computed from labels and probabilities.

    `curves` are the results by the names of their models.
    """

    def __init__(self, curves: dict[str, Any]) -> None:
        self.curves = curves

    def _curves(self):
        return {name: {"label": escape_legend_label(name)} for name in self.curves}

    def _iter_styled_curves(self, ax, curves=None):
        """Iterate over the curves with their style, in the colours of the axes."""
        for name, curve in (curves or self.curves).items():
            yield curve, {"color": get_next_color(ax)} | self.styles_[name]


def name_models(
    models: Any, name: str | None, default: str = "model"
) -> dict[str, Any]:
    """Return a dict of models as it is, or a single model under its name."""
    if not isinstance(name, Hashable):
        raise invalid_input(
            expected="a name that is text",
            got=repr(name)[:60],
            hint="Pass for instance name='model'",
        )
    return models if isinstance(models, dict) else {name or default: models}


def predict_models(
    display: type[Display],
    models: dict[str, Estimator],
    X: Features,
    y: ArrayLike,
    labels: Any,
    multilabel: str | None = None,
) -> tuple[dict[str, Any], Any]:
    """Return the probabilities of fitted classifiers, and the labels of their columns."""
    check_same_index(X, y)
    for model in models.values():
        check_gives_proba(model, f"{display.__name__}.from_predictions(y, {{}})")
    if labels is None and multilabel is None:
        labels = getattr(next(iter(models.values())), "classes_", None)
    probabilities = {}
    for name, model in models.items():
        proba = model.predict_proba(X)
        if labels is not None:
            # Models may have their classes in different orders.
            proba = align_columns(proba, getattr(model, "classes_", labels), labels)
        probabilities[name] = proba
    return probabilities, labels


def predict_model(
    display: type[Display], estimator: Estimator, X: Features, y: ArrayLike, labels: Any
) -> tuple[Any, Any]:
    """Return the probabilities of a fitted classifier, and the labels of their columns."""
    probabilities, labels = predict_models(display, {"model": estimator}, X, y, labels)
    return probabilities["model"], labels


def draw_unit_square(ax: Axes, **labels: Any) -> None:
    """Draw axes from 0 to 1 with the diagonal of perfect calibration."""
    ax.plot([0, 1], [0, 1], color=blend_color(ax, 0.35), lw=1, ls="--", zorder=1.5)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), **labels)


def add_legend(ax: Axes, **options: Any) -> None:
    """Add a legend in small letters without a frame."""
    ax.legend(**{"frameon": False, "fontsize": "small"} | options)


def name_rows(ax: Axes, names: Iterable[object]) -> None:
    """Write names at the vertical axis, the first one on top."""
    texts = [escape_mathtext(name) for name in names]
    ax.set_yticks(range(len(texts)), texts)
    ax.set_ylim(len(texts) - 0.5, -0.5)


def blend_color(ax: Axes, share: float) -> tuple[float, ...]:
    """Return a colour between that of text, 0, and that of the background, 1.

    Parameters
    ----------
    ax : matplotlib Axes
    share : float
    """
    from matplotlib import rcParams
    from matplotlib.colors import to_rgb

    grounds: list[Any] = [
        ax.get_facecolor(),
        ax.figure.get_facecolor(),
        (1.0, 1.0, 1.0, 1.0),
    ]
    # A transparent background shows the one behind it.
    ground = next(color for color in grounds if color[3] > 0)
    ink = to_rgb(rcParams["text.color"])
    return tuple(
        (1 - share) * a + share * b for a, b in zip(ink, ground[:3], strict=True)
    )


def set_log_odds_scale(
    ax: Axes, axis: LogitAxis, which: Literal["x", "both"] = "both"
) -> LogitAxis:
    """Put the horizontal axis, or both, on log-odds; all that was drawn moves along.

    Parameters
    ----------
    ax : matplotlib Axes
    axis : LogitAxis
        What is to be shown; what the axes show already is added if they are on
        log-odds.
    which : {"x", "both"}

    Returns
    -------
    axis : LogitAxis
        The axis that shows both.
    """
    # A display that was drawn on the same axes before: the new limits contain both.
    if ax.get_xscale() == "function":
        ends = ax.xaxis.get_transform().transform(np.array([1e-300, 1 - 1e-16]))
        left, right = ax.get_xlim()
        axis = axis.merge_axes(LogitAxis(ends[0], ends[1], left < 0, right > 1))
    box: Any = ax.get_window_extent()
    length = box.width if which == "x" else min(box.width, box.height)
    ticks = axis.place_ticks(_TICK_CHARACTERS_PER_INCH * length / ax.figure.dpi)
    for name in ("x", "y") if which == "both" else ("x",):
        one = getattr(ax, f"{name}axis")
        getattr(ax, f"set_{name}scale")(
            "function", functions=(axis, axis.invert_position)
        )
        getattr(ax, f"set_{name}lim")(axis.axis_limits)
        one.set_ticks([p for p, _ in ticks], labels=[text for _, text in ticks])
        one.set_ticks([], minor=True)
    ax.tick_params(axis=which, labelsize="small")
    return axis


def draw_bands(ax: Axes, x: FloatArray, level: float, color: Any, *ends: Any) -> None:
    """Draw the intervals at each threshold, and the band for all thresholds."""
    kinds = ("interval at each threshold", 0.25), ("band for all thresholds", 0.12)
    for (low, high), (text, alpha) in zip(ends, kinds, strict=True):
        label = omit_repeated_label(ax, f"{100 * level:.0f} % {text}")
        ax.fill_between(x, low, high, color=color, alpha=alpha, lw=0, label=label)


def get_next_color(ax: Axes) -> Any:
    """Return the colour of the next line on these axes."""
    # matplotlib has no public call for the next colour of the cycle.
    (line,) = ax.plot([], [])
    line.remove()
    return line.get_color()


def omit_repeated_label(ax: Axes, label: str | None) -> str | None:
    """Return the label, or None if the legend of the axes has it already."""
    return None if label in ax.get_legend_handles_labels()[1] else label
