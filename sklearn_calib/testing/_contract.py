"""check_contract and contract_checks, and what the checks of the contracts share."""

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import clone

from .._typing import AnyArray, ArrayLike
from .._warnings import ignore_calibration_warnings
from ..exceptions import invalid_input


def check_contract(thing: Any, *, n_classes: Sequence[int] | None = None) -> None:
    """Run every check of what a thing of your own has to keep, so that it works as ours do.

    Parameters
    ----------
    thing : Recalibrator, Measure, ProperLoss, Display or classifier
        An unfitted recalibrator or classifier, which is cloned for each check; a
        classifier, whose adapter is registered with `register_staging`, has few stages,
        three or more. A function decorated with `measure`. A loss. A display with
        something to show, at least one panel whose x and y differ; copies of it are
        drawn, and the figures that this makes are closed.
    n_classes : sequence of int, default=None
        Numbers of classes to try; None means (2, 4), of a classifier (2, 3), of a loss
        those that it is for. A display has none.

    Raises
    ------
    AssertionError
        Names the check that failed.
    TypeError
        The thing is none of these.
    ModuleNotFoundError
        Matplotlib is not installed, and the thing is a display.

    Notes
    -----
    A recalibrator is held to rows on the simplex, weights that are repetition, input
    that stays as it was, and the declarations of its class; a measure to its range, its
    scorer and its options; a loss to being proper, its divergence and its slope. A
    display draws on the axes that it is given and on no others, returns itself, sets
    ``figure_`` and ``axes_`` or ``ax_``, shows its ``get_plotted_data()``, and leaves
    names and settings as they are. The last stage of a classifier is its own
    ``predict_proba``; a stage is the model truncated to it and, if two fits agree,
    the model fitted with so many rounds.

    Examples
    --------
    >>> from sklearn_calib.metrics import BetaFamilyLoss
    >>> from sklearn_calib.recalibrators import PlattScaling
    >>> from sklearn_calib.testing import check_contract
    >>> check_contract(PlattScaling(), n_classes=(2,))
    >>> check_contract(BetaFamilyLoss(1, 4))
    """
    for name, check in contract_checks(thing, n_classes=n_classes):
        try:
            check()
        except Exception as error:
            raise AssertionError(f"{name} failed: {error}") from error


def contract_checks(
    thing: Any, *, n_classes: Sequence[int] | None = None
) -> list[tuple[str, Callable[[], None]]]:
    """Return the checks that `check_contract` runs, for ``pytest.mark.parametrize``.

    Parameters
    ----------
    thing, n_classes
        As of `check_contract`.

    Returns
    -------
    checks : list of (str, callable)
        A name, and a function without arguments that raises if the check fails.

    Examples
    --------
    >>> from sklearn_calib.metrics import brier_loss
    >>> from sklearn_calib.testing import contract_checks
    >>> contract_checks(brier_loss)[0][0]
    'check_value[2]'
    """
    module_name, numbers = _find_module_and_class_counts(thing)
    module = import_module(f"{__package__}._{module_name}")
    # The checks are the private functions of that module with this name.
    checks = {
        name[1:]: check
        for name, check in vars(module).items()
        if name.startswith("_check_")
    }
    if module_name == "displays":
        return [(name, partial(check, copy(thing))) for name, check in checks.items()]
    return [
        (f"{name}[{k}]", partial(_run_check, check, thing, k, module.make_rows))
        for name, check in checks.items()
        for k in n_classes or numbers
    ]


def _run_check(check, thing, k, make_rows) -> None:
    """Run a check with a number of classes on rows of its own."""
    check(thing, k, *make_rows(k))


def _find_module_and_class_counts(thing):
    """Return the name of the module of checks, and the numbers of classes to try."""
    if hasattr(thing, "spec"):
        return "metrics", (2, 4)
    if hasattr(thing, "compute_label_losses"):
        return "losses", (2, 4) if thing.n_classes is None else (thing.n_classes,)
    if hasattr(thing, "capabilities"):
        return "recalibrators", (2, 4)
    if hasattr(thing, "predict_proba") or hasattr(thing, "fit"):
        return "staging", (2, 3)
    if hasattr(thing, "plot"):
        return "displays", ()
    raise invalid_input(
        expected="a recalibrator, measure, loss, display or classifier",
        got=repr(thing)[:60],
        hint="Pass an instance",
        error=TypeError,
    )


# Two runs of an optimiser on equal problems agree this closely.
PROBA_TOLERANCE = 1e-6


def fit_clone_quietly(recalibrator: Any, *rows: Any, **options: Any) -> Any:
    """Fit a clone without calibration warnings."""
    with ignore_calibration_warnings():
        return clone(recalibrator).fit(*rows, **options)


def assert_simplex(proba: AnyArray, shape: tuple[int, ...]) -> None:
    assert isinstance(proba, np.ndarray) and proba.dtype == np.float64, (
        "not a float64 array"
    )
    assert proba.shape == shape, f"shape {proba.shape} instead of {shape}"
    assert np.isfinite(proba).all(), "values that are not finite"
    assert proba.min() >= 0 and proba.max() <= 1, "values outside [0, 1]"
    assert np.abs(proba.sum(axis=1) - 1).max() <= 1e-12, "rows that do not sum to 1"


def assert_same(
    first: ArrayLike, second: ArrayLike, tolerance: float = PROBA_TOLERANCE
) -> None:
    worst = np.abs(np.asarray(first) - np.asarray(second)).max()
    assert worst <= tolerance, f"differ by {worst:.3g}"


def assert_refused(call: Callable[[], object], *words: str) -> None:
    try:
        call()
    except (ValueError, TypeError) as raised:
        text = str(raised)
        for word in ("expected", "got", *words):
            assert word in text, f"message without {word!r}: {text}"
    else:
        raise AssertionError(f"bad input was accepted; expected a message with {words}")
