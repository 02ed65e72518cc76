"""Checks of displays: what is drawn, where, and what is left alone."""

import copy
from contextlib import contextmanager
from dataclasses import is_dataclass
from functools import partial
from unittest import mock

import numpy as np
from joblib import hash as digest

from .._argument_checks import import_optional

# A name that legends hide, and that contains a formula and markup.
_HOSTILE_NAME = "_$x_1$ <b>&"


# -- looking at a picture -------------------------------------------------------------------------


@contextmanager
def _open_pyplot_and_close_figures():
    """Yield matplotlib.pyplot, and close the figures that are opened meanwhile."""
    plt = import_optional("matplotlib.pyplot", "plot")
    before = plt.get_fignums()
    current = plt.gcf().number if before else None
    try:
        # how many are open is the caller's
        with plt.rc_context({"figure.max_open_warning": 0}):
            yield plt
    finally:
        for number in set(plt.get_fignums()) - set(before):
            plt.close(number)
        if current is not None and plt.fignum_exists(current):
            plt.figure(current)


def _make_axes_without_pyplot(n):
    """Return axes of a figure that pyplot does not manage."""
    figure = import_optional("matplotlib.figure", "plot").Figure()
    return list(figure.subplots(1, n, squeeze=False)[0])


def _count_panels(display):
    panels = display.get_plotted_data()
    assert panels, "get_plotted_data() names no panel"
    return len(panels)


def _plot_display(display, axes):
    return display.plot(ax=axes[0] if len(axes) == 1 else axes)


def _plot_and_get_unmanaged_axes(display):
    """Plot a display on axes that pyplot does not manage."""
    axes = _make_axes_without_pyplot(_count_panels(display))
    _plot_display(display, axes)
    return axes


def _get_axes(display):
    return list(np.ravel(np.asarray(display.axes_, dtype=object)))


def _iter_drawn_series(ax):
    """Iterate over the numbers of lines, dots, bars, steps and coloured cells on some axes."""
    for line in ax.get_lines():
        yield tuple(np.asarray(line.get_xydata(), dtype=float).T)
    for collection in ax.collections:
        if hasattr(collection, "get_coordinates"):
            corners = np.asarray(collection.get_coordinates(), dtype=float)
            middle = (corners[1:, 1:] + corners[:-1, :-1]) / 2
            values = np.ma.filled(
                np.ma.asarray(collection.get_array(), dtype=float), np.nan
            )
            yield middle[..., 0].ravel(), middle[..., 1].ravel(), values.ravel()
        else:
            yield tuple(np.ma.filled(collection.get_offsets().astype(float), np.nan).T)
    for bars in ax.containers:
        corners = np.array(
            [bar.get_bbox().get_points() for bar in bars if hasattr(bar, "get_bbox")]
        )
        if len(corners):
            left, low = corners[:, 0].T
            right, high = corners[:, 1].T
            yield (left + right) / 2, high  # upright
            yield right, (low + high) / 2  # lying
    for steps in ax.patches:
        if hasattr(steps, "get_data"):
            values, edges, _ = steps.get_data()
            yield (edges[1:] + edges[:-1]) / 2, np.asarray(values, dtype=float)


def _are_series_close(series, drawn):
    if len(series) != len(drawn):
        return False
    for a, b in zip(series, drawn, strict=True):
        if np.shape(a) != np.shape(b) or not np.allclose(a, b, equal_nan=True):
            return False
    return True


def _assert_axes_show_panel_points(axes, panels):
    assert len(axes) == len(panels), (
        f"{len(axes)} axes for {len(panels)} panels of get_plotted_data()"
    )
    for number, (ax, panel) in enumerate(zip(axes, panels, strict=True)):
        drawn = list(_iter_drawn_series(ax))
        for series in panel:
            series = [np.asarray(values, dtype=float) for values in series]
            if any(_are_series_close(series, numbers) for numbers in drawn):
                continue
            swapped = any(
                _are_series_close([series[1], series[0], *series[2:]], numbers)
                for numbers in drawn
            )
            raise AssertionError(
                f"panel {number} has x and y swapped"
                if swapped
                else f"panel {number} does not show the points {series[0][:3]}, {series[1][:3]} ..."
            )


def _is_empty(ax):
    words = ax.get_title() + ax.get_xlabel() + ax.get_ylabel()
    things = [
        *ax.lines,
        *ax.patches,
        *ax.collections,
        *ax.images,
        *ax.texts,
        *ax.tables,
    ]
    return not (words or things or ax.get_legend())


def _get_display_inputs(display):
    return {
        name: value for name, value in vars(display).items() if not name.endswith("_")
    }


# -- the checks -----------------------------------------------------------------------------------


def _check_inputs_untouched(display):
    before = digest(_get_display_inputs(display))
    _plot_and_get_unmanaged_axes(display)
    changes = "plot changes what the constructor was given"
    assert digest(_get_display_inputs(display)) == before, changes
    try:
        # an array that was sorted earlier is seen, too
        _plot_and_get_unmanaged_axes(
            _copy_with_changed_inputs(display, _copy_read_only_if_array)
        )
    except ValueError as error:
        raise AssertionError(changes) from error


def _check_plotted_data(display):
    panels = display.get_plotted_data()
    assert _count_panels(display) == len(panels), "the number of panels changes"
    for panel in panels:
        for series in panel:
            assert len(series) in (2, 3), (
                f"{len(series)} arrays, neither (x, y) nor (x, y, value)"
            )
            shapes = {np.shape(values) for values in series}
            assert len(shapes) == 1 and len(shapes.pop()) == 1, (
                "x and y are not of one length"
            )
    told = [
        series
        for panel in panels
        for series in panel
        if not _are_series_close(series[:1], series[1:2])
    ]
    assert told, "no panel has points whose x and y differ; nothing would be checked"


def _check_returns_itself(display):
    axes = _make_axes_without_pyplot(_count_panels(display))
    assert _plot_display(display, axes) is display, "plot does not return the display"


def _check_attributes(display):
    axes = _make_axes_without_pyplot(_count_panels(display))
    mine = copy.copy(display)
    for name in ("figure_", "axes_", "ax_"):
        vars(mine).pop(name, None)
    _plot_display(mine, axes)
    drawn_axes = _get_axes(mine)
    assert len(drawn_axes) == len(axes), (
        f"{len(drawn_axes)} axes after plot, {len(axes)} were given"
    )
    assert all(a is b for a, b in zip(drawn_axes, axes, strict=True)), (
        "not the axes that were given"
    )
    assert getattr(mine, "figure_", None) is axes[0].figure, (
        "figure_ is not the axes' figure"
    )


def _check_shows_plotted_data(display):
    axes = _plot_and_get_unmanaged_axes(display)
    _assert_axes_show_panel_points(axes, display.get_plotted_data())


def _check_given_axes_only(display):
    with _open_pyplot_and_close_figures() as plt:
        n = _count_panels(display)
        _, current = plt.subplots()
        *axes, neighbour = _make_axes_without_pyplot(n + 1)
        figure_numbers = plt.get_fignums()
        _plot_display(display, axes)
        assert not any(_is_empty(ax) for ax in axes), "axes that were given are empty"
        assert _is_empty(current), "draws on pyplot's current axes"
        assert len(current.figure.axes) == 1, "adds axes to pyplot's current figure"
        assert _is_empty(neighbour), "draws on axes that were not given"
        assert plt.get_fignums() == figure_numbers, (
            "opens or closes a figure although it was given axes"
        )


def _check_own_figure(display):
    with _open_pyplot_and_close_figures() as plt:
        before = [plt.subplots()[0].number, *plt.get_fignums()]
        display.plot()
        opened = set(plt.get_fignums()) - set(before)
        assert set(before) <= set(plt.get_fignums()), "closes a figure"
        assert len(opened) == 1, f"opens {len(opened)} figures instead of one"
        assert plt.figure(opened.pop()) is display.figure_, (
            "figure_ is not the new figure"
        )
        _assert_axes_show_panel_points(_get_axes(display), display.get_plotted_data())


def _check_draws_again(display):
    first, second = (
        _make_axes_without_pyplot(_count_panels(display)) for _ in range(2)
    )
    _plot_display(display, first)
    artists = [len(ax.get_children()) for ax in first]
    _plot_display(display, second)
    assert [len(ax.get_children()) for ax in first] == artists, (
        "draws on the earlier axes again"
    )
    _assert_axes_show_panel_points(second, display.get_plotted_data())


def _check_axes_count(display):
    right = _count_panels(display)
    for number in {right + 1, max(right - 1, 1)} - {right}:
        axes = _make_axes_without_pyplot(number)
        try:
            _plot_display(display, axes)
        except ValueError as error:
            assert "axes" in str(error), f"message without 'axes': {error}"
        else:
            raise AssertionError(f"{number} axes instead of {right} are accepted")
        assert all(_is_empty(ax) for ax in axes), "draws before it refuses"


def _check_settings_untouched(display):
    with _open_pyplot_and_close_figures() as plt:
        settings = dict(plt.rcParams)
        backend = plt.get_backend()
        figure = import_optional("matplotlib.figure", "plot").Figure
        with (
            mock.patch.object(plt, "show") as pyplot_show,
            mock.patch.object(figure, "show") as figure_show,
        ):
            display.plot()
            display.figure_.canvas.draw()
        assert not (pyplot_show.called or figure_show.called), "opens a window"
        assert dict(plt.rcParams) == settings, "changes rcParams"
        assert plt.get_backend() == backend, "changes the backend"


def _check_names(display):
    """Check every text in the picture that is a name in the inputs, with a hostile name."""
    figure = _plot_and_get_unmanaged_axes(display)[0].figure
    visible = set(_list_visible_texts(figure))
    for name in sorted(_collect_input_texts(display) & visible):
        renamed = _copy_with_changed_inputs(
            display, partial(_replace_by_hostile_name_if_equal, name=name)
        )
        figure = _plot_and_get_unmanaged_axes(renamed)[0].figure
        figure.canvas.draw()
        seen = _list_visible_texts(figure)
        # a word of the display itself that is an input by chance
        own_word = name in seen
        assert _HOSTILE_NAME in seen or own_word, (
            f"{_HOSTILE_NAME!r} in place of {name!r} is not shown"
        )


def _list_visible_texts(figure):
    """Return the visible texts of a picture."""
    text_class = import_optional("matplotlib.text", "plot").Text
    is_math_text = import_optional("matplotlib.cbook", "plot").is_math_text
    texts = []
    for artist in figure.findobj(text_class):
        text = artist.get_text()
        is_formula = artist.get_parse_math() and is_math_text(text)
        if artist.get_visible() and not is_formula:
            texts.append(text.replace(r"\$", "$").strip())
    return texts


def _is_dataclass_instance_but_not_estimator(thing):
    """Return whether `thing` is a dataclass with fields, and not an estimator."""
    fields = (
        is_dataclass(thing)
        and not isinstance(thing, type)
        and hasattr(thing, "__dict__")
    )
    return fields and not hasattr(thing, "get_params")


def _collect_input_texts(display):
    """Return all texts in the inputs of a display."""
    leaves = []
    _copy_with_changed_inputs(display, leaves.append)
    return {leaf for leaf in leaves if isinstance(leaf, str) and leaf}


def _replace_by_hostile_name_if_equal(leaf, name):
    return _HOSTILE_NAME if isinstance(leaf, str) and leaf == name else leaf


def _copy_read_only_if_array(leaf):
    if not isinstance(leaf, np.ndarray):
        return leaf
    leaf = leaf.copy()
    leaf.setflags(write=False)
    return leaf


def _copy_with_changed_inputs(display, change):
    """Copy a display, with `change` applied to every text, number and array in its inputs."""
    twin = copy.copy(display)
    for key, value in _get_display_inputs(display).items():
        setattr(twin, key, _map_leaves(value, change))
    return twin


def _map_leaves(thing, change):
    if isinstance(thing, dict):
        return {change(key): _map_leaves(value, change) for key, value in thing.items()}
    if hasattr(thing, "_fields"):
        return type(thing)(*(_map_leaves(item, change) for item in thing))
    if isinstance(thing, list | tuple):
        return type(thing)(_map_leaves(item, change) for item in thing)
    if _is_dataclass_instance_but_not_estimator(thing):
        twin = copy.copy(thing)
        for key, value in vars(thing).items():
            object.__setattr__(twin, key, _map_leaves(value, change))
        return twin
    return change(thing)
