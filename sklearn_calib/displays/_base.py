"""Display: the base of all displays, and functions that several of them use."""

import itertools
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
from .._validation import align_columns, check_and_get_common_index
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
# Panels that are narrower get small letters.
SMALL_PANEL_INCHES = 3.0
# A legend takes no more of the height of a panel than this.
_MAX_LEGEND_FRACTION = 0.6


#: What to write instead of options of matplotlib.
_MATPLOTLIB_OPTION_HINTS = {
    "figsize": "Pass ax=plt.subplots(figsize=...)[1]",
    "title": "Call ax_.set_title(...) of the display, or of one of its axes_",
}


def _add_name_suggestions(method):
    """Wrap a method so that the error on an unknown option names what to write."""
    parameters = signature(method).parameters
    kinds = [parameter.kind for parameter in parameters.values()]
    if Parameter.VAR_KEYWORD in kinds:
        return method
    # The first parameter is the class, or the display.
    names = [*parameters][1:]

    @wraps(method)
    def call_with_suggestions(cls, *args, **options):
        """Call the method, or raise an error about the first unknown option."""
        for name, value in options.items():
            if name in names:
                continue
            hint = _MATPLOTLIB_OPTION_HINTS.get(name)
            if name in cls._style_options and "curve_kwargs" in names:
                hint = f"Pass curve_kwargs={{{name!r}: {value!r}}}"
            if hint is None:
                raise unknown_name_error("an option", name, names, error=TypeError)
            raise invalid_input(
                expected=f"an option among {', '.join(names)}",
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
    ``_default_styles`` has their names with their default style, or
    ``_get_default_styles()`` if they depend on the result; ``_draw`` finds in `styles_`
    what each is to look like.

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
    # The options that `curve_kwargs` may contain.
    _style_options: ClassVar[tuple[str, ...]] = LINE_STYLE_OPTIONS
    # The default styles of the curves, if these are always the same.
    _default_styles: ClassVar[dict[str, dict[str, Any]]] = {}
    # The arguments of ``plt.subplots``, if these are always the same.
    _subplot_options: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # Subclasses get the suggestions without a decorator of their own.
        for name, member in [*vars(cls).items()]:
            if name.startswith("from_") and isinstance(member, classmethod):
                setattr(cls, name, classmethod(_add_name_suggestions(member.__func__)))
            if name == "plot":
                cls.plot = _add_name_suggestions(member)  # type: ignore[method-assign]

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

    @_add_name_suggestions
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

    def _get_default_styles(self):
        """Return the curves that can be styled, with their default styles by name."""
        return self._default_styles

    def _resolve_style_by_curve_name(self, curve_kwargs):
        """Return the style of each curve: the default, updated by `curve_kwargs`."""
        curves = self._get_default_styles()
        # One mapping styles all curves; a list has one per curve.
        styles = curve_kwargs
        if isinstance(curve_kwargs, Mapping | None):
            styles = [curve_kwargs or {}] * len(curves)
        is_valid = isinstance(styles, list | tuple) and len(styles) == len(curves)
        is_valid = is_valid and all(isinstance(style, Mapping) for style in styles)
        if not is_valid or (curve_kwargs and not curves):
            hint = "Leave it out"
            if curves:
                hint = f"The curves are {', '.join(map(str, curves))}"
            raise invalid_input(
                "curve_kwargs",
                expected=f"a dict or a list of {len(curves)} dicts as curve_kwargs",
                got=repr(curve_kwargs)[:200],
                hint=hint,
            )
        for option in itertools.chain(*styles):
            if option not in self._style_options:
                raise unknown_name_error(
                    "an option of curve_kwargs",
                    option,
                    self._style_options,
                    error=TypeError,
                )
        return {
            name: curves[name] | dict(style)
            for name, style in zip(curves, styles, strict=True)
        }

    def _draw_on_axes(self, axes, curve_kwargs=None, **options):
        """Draw on the axes or on new ones, and return the display itself."""
        self.styles_ = self._resolve_style_by_curve_name(curve_kwargs)
        is_given = axes is not None
        if not is_given:
            axes = self._make_axes(import_optional("matplotlib.pyplot", "plot"))
        # A single Axes, a list and an array of them.
        axes = np.ravel(np.asarray(axes, dtype=object))
        count = len(self.get_plotted_data())
        not_axes = [ax for ax in axes if not hasattr(ax, "get_legend_handles_labels")]
        if len(axes) != count or not_axes:
            got = repr(not_axes[0])[:60] if not_axes else f"{len(axes)}"
            raise invalid_input(
                expected=f"{count} axes, one per panel",
                got=got,
                hint="Leave them out for a new figure",
            )
        legends_before = [ax.get_legend() for ax in axes]
        self._draw(*axes, **options)
        for ax, legend_before in zip(axes, legends_before, strict=True):
            ax.spines[["top", "right"]].set_visible(False)
            # A legend above the axes would cover their title.
            if is_given or ax.get_title():
                _move_legend_inside(ax, legend_before)
            if is_given:
                _fit_texts_into_axes(ax)
        self.axes_ = axes
        self.figure_ = axes[0].figure
        if count == 1:
            self.ax_ = axes[0]
        return self

    def _make_axes(self, plt):
        """Make the axes of a new figure; by default those of `_get_subplot_options`."""
        return plt.subplots(layout="constrained", **self._get_subplot_options())[1]

    def _make_figure_and_get_panel_axes(self, plt, panel_width, panel_height):
        """Make the axes of a new figure in rows of at most four panels."""
        count = len(self.get_plotted_data())
        columns = min(count, 4)
        rows = -(-count // columns)
        figure_size = panel_width * columns, panel_height * rows
        axes = plt.subplots(
            rows, columns, figsize=figure_size, squeeze=False, layout="constrained"
        )[1]
        # The last row of the grid may have fewer panels.
        for empty_axes in axes.flat[count:]:
            empty_axes.remove()
        return axes.flat[:count]

    def _get_subplot_options(self):
        """Return the arguments of ``plt.subplots``: the size in inches, and the panels."""
        return self._subplot_options

    def _draw(self, *axes):
        raise NotImplementedError(f"{type(self).__name__} has no _draw; see Display")


class BaseCurveByModelDisplay(Display):
    """A picture of one result for each model, computed from labels and probabilities.

    `curves` are the results by the names of their models.
    """

    def __init__(self, curves: dict[str, Any]) -> None:
        self.curves = curves

    def _get_default_styles(self):
        return {name: {"label": escape_legend_label(name)} for name in self.curves}

    def _iter_styled_curves(self, ax, curves=None):
        """Iterate over the curves with their style, in the colours of the axes."""
        for name, curve in (curves or self.curves).items():
            yield curve, {"color": take_next_color(ax)} | self.styles_[name]


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


def predict_proba_by_model_and_labels(
    display: type[Display],
    models: Estimator | dict[str, Estimator],
    name: str | None,
    X: Features,
    y: ArrayLike,
    labels: Any,
    multilabel: str | None = None,
) -> tuple[dict[str, Any], Any]:
    """Return the probabilities of fitted classifiers, and the labels of their columns."""
    models = name_models(models, name, type(models).__name__)
    check_and_get_common_index(X, y)
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


def predict_proba_and_column_labels(
    display: type[Display], estimator: Estimator, X: Features, y: ArrayLike, labels: Any
) -> tuple[Any, Any]:
    """Return the probabilities of a fitted classifier, and the labels of their columns."""
    models = {"model": estimator}
    probabilities, labels = predict_proba_by_model_and_labels(
        display, models, None, X, y, labels
    )
    return probabilities["model"], labels


def draw_unit_square_and_diagonal(ax: Axes, **labels: Any) -> None:
    """Draw axes from 0 to 1 with the diagonal of perfect calibration."""
    ax.plot(
        [0, 1],
        [0, 1],
        color=blend_text_with_background(ax, 0.35),
        lw=1,
        ls="--",
        zorder=1.5,
    )
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), **labels)


def add_legend(ax: Axes, **options: Any) -> None:
    """Add a legend in small letters without a border, by default above the panel."""
    frame = {"framealpha": 0.7, "edgecolor": "none", "fancybox": False}
    anchor = {"loc": "lower center", "bbox_to_anchor": (0.5, 1)}
    fonts = {"fontsize": "small", "title_fontsize": "small"}
    ax.legend(**frame | anchor | fonts | options)


def is_small(ax: Axes) -> bool:
    """Return whether axes are too narrow for letters of the usual size."""
    return ax.get_window_extent().width < SMALL_PANEL_INCHES * ax.figure.dpi


def _move_legend_inside(ax, legend_before):
    """Move a legend above the axes into them, and make space for it above the curves."""
    legend = ax.get_legend()
    if legend is None or _is_legend_inside(legend):
        return
    add_legend(
        ax,
        handles=legend.legend_handles,
        title=legend.get_title().get_text(),
        labels=[text.get_text() for text in legend.get_texts()],
        labelspacing=0.2,
        loc="upper right",
        bbox_to_anchor=None,
        borderaxespad=0,
    )
    # Limits that matplotlib chose follow the curves and have no space for a legend.
    if not _is_legend_inside(legend_before) or ax.get_autoscaley_on():
        box = ax.get_legend().get_window_extent()
        height_fraction = min(
            box.height / ax.get_window_extent().height, _MAX_LEGEND_FRACTION
        )
        bottom, top = ax.get_ylim()
        ax.set_ylim(bottom, bottom + (top - bottom) / (1 - height_fraction), auto=None)


def _is_legend_inside(legend):
    # A legend above the panel is anchored at a point, and others at the whole panel.
    return legend is not None and legend.get_bbox_to_anchor().height > 0


def _fit_texts_into_axes(ax):
    """Fit the texts into axes of the caller, which may be small."""
    if is_small(ax):
        texts = [ax.title, *ax.texts]
        if ax.get_legend() is not None:
            texts += [ax.get_legend().get_title(), *ax.get_legend().get_texts()]
        for child in (ax, *ax.child_axes):
            child.tick_params(labelsize="x-small", length=2, pad=1)
            texts += [child.xaxis.label, child.yaxis.label]
            child.xaxis.labelpad = child.yaxis.labelpad = 1
        for text in texts:
            text.set_size("x-small")
    _shrink_axes_to_slot(ax)


def _shrink_axes_to_slot(ax):
    """Shrink axes if their texts would cover other panels, since the figure has no layout."""
    from matplotlib.transforms import Bbox

    slot = ax.get_subplotspec()
    if slot is None or ax.figure.get_layout_engine() is not None:
        return
    grid = slot.get_gridspec().get_subplot_params(ax.figure)
    area = slot.get_position(ax.figure)
    # The labels have the gaps to the panels at the left and below.
    lowest = area.min - area.size * (grid.wspace, grid.hspace)
    texts = ax.get_tightbbox().transformed(ax.figure.transSubfigure.inverted())
    position = ax.get_position(original=True)
    lower = position.min + np.maximum(lowest - texts.min, 0)
    upper = position.max - np.maximum(texts.max - area.max, 0)
    ax.set_position(Bbox([lower, upper]))
    # Setting a position takes the axes out of layouts that the caller may choose later.
    ax.set_in_layout(True)


def name_rows(ax: Axes, names: Iterable[object]) -> None:
    """Write names at the vertical axis, the first one on top."""
    texts = [escape_mathtext(name) for name in names]
    ax.set_yticks(range(len(texts)), texts)
    ax.set_ylim(len(texts) - 0.5, -0.5)


def blend_text_with_background(
    ax: Axes, background_fraction: float
) -> tuple[float, ...]:
    """Return a colour between that of text, 0, and that of the background, 1.

    Parameters
    ----------
    ax : matplotlib Axes
    background_fraction : float
    """
    from matplotlib import rcParams
    from matplotlib.colors import to_rgb

    backgrounds: list[Any] = [
        ax.get_facecolor(),
        ax.figure.get_facecolor(),
        (1.0, 1.0, 1.0, 1.0),
    ]
    # A transparent background shows the one behind it.
    background = next(color for color in backgrounds if color[3] > 0)
    text_color = to_rgb(rcParams["text.color"])
    pairs = zip(text_color, background[:3], strict=True)
    return tuple(
        (1 - background_fraction) * text + background_fraction * back
        for text, back in pairs
    )


def set_log_odds_scale(
    ax: Axes, axis: LogitAxis, which: Literal["x", "both"] = "both"
) -> LogitAxis:
    """Put the horizontal axis, or both, on log-odds, also for curves that are drawn already.

    Parameters
    ----------
    ax : matplotlib Axes
    axis : LogitAxis
        The range to show; the range of the axes is added if they are on log-odds
        already.
    which : {"x", "both"}

    Returns
    -------
    axis : LogitAxis
        The axis that shows both.
    """
    # If a display was drawn on the same axes before, the new limits contain both.
    if ax.get_xscale() == "function":
        ends = ax.xaxis.get_transform().transform(np.array([1e-300, 1 - 1e-16]))
        x_low, x_high = ax.get_xlim()
        axis = axis.merge_axes(LogitAxis(ends[0], ends[1], x_low < 0, x_high > 1))
    box: Any = ax.get_window_extent()
    length = box.width if which == "x" else min(box.width, box.height)
    ticks = axis.get_tick_probabilities_and_labels(
        _TICK_CHARACTERS_PER_INCH * length / ax.figure.dpi
    )
    for name in ("x", "y") if which == "both" else ("x",):
        matplotlib_axis = getattr(ax, f"{name}axis")
        getattr(ax, f"set_{name}scale")(
            "function", functions=(axis, axis.get_proba_at_logit_position)
        )
        getattr(ax, f"set_{name}lim")(axis.proba_limits_with_margins)
        matplotlib_axis.set_ticks(
            [p for p, _ in ticks], labels=[text for _, text in ticks]
        )
        matplotlib_axis.set_ticks([], minor=True)
    ax.tick_params(axis=which, labelsize="small")
    return axis


def draw_bands(
    ax: Axes, x: FloatArray, level: float, color: Any, *intervals: Any
) -> None:
    """Draw the intervals at each threshold, and the band for all thresholds."""
    band_styles = (
        ("interval at each threshold", 0.25),
        ("band for all thresholds", 0.12),
    )
    for (low, high), (text, alpha) in zip(intervals, band_styles, strict=True):
        label = omit_repeated_label(ax, f"{100 * level:.0f} % {text}")
        ax.fill_between(x, low, high, color=color, alpha=alpha, lw=0, label=label)


def take_next_color(ax: Axes) -> Any:
    """Return the colour of the next line on these axes."""
    # matplotlib has no public function for the next colour of the cycle.
    (line,) = ax.plot([], [])
    line.remove()
    return line.get_color()


def omit_repeated_label(ax: Axes, label: str | None) -> str | None:
    """Return the label, or None if the legend of the axes has it already."""
    return None if label in ax.get_legend_handles_labels()[1] else label
