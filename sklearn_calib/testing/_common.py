"""What the checks share: held-out losses and the assertions."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from .._typing import AnyArray, ArrayLike
from ..datasets import make_overconfident
from ..exceptions import no_cautions
from ..metrics import log_loss

TOLERANCE = 1e-6  # two optimiser runs on equal problems


def fit(recalibrator: Any, *rows: Any, **options: Any) -> Any:
    """A clone, fitted; what it cautions against is no matter here."""
    with no_cautions():
        return clone(recalibrator).fit(*rows, **options)


def held_out_loss(recalibrator: Any, n_classes: int) -> tuple[float, float]:
    """Log loss of new rows before and after recalibration, on overconfident scores."""
    rows = make_overconfident(n_classes, 1500, random_state=20)
    new, labels = make_overconfident(n_classes, 1500, random_state=21)
    after = fit(recalibrator, *rows).predict_proba(new)
    known = {"labels": range(n_classes)}
    return log_loss(labels, new, **known), log_loss(labels, after, **known)


def checks_in(names: dict[str, Any], whole: Callable[..., None]) -> list[Callable[..., None]]:
    """The checks among the names of a module, without the function that runs them all."""
    return [one for key, one in names.items() if key.startswith("check_") and one is not whole]


def by_classes(
    checks: list[Callable[..., None]], thing: Any, n_classes: Iterable[int]
) -> list[tuple[str, Callable[[], None]]]:
    """Each check of a thing for each number of classes: its name, and a call without arguments."""
    numbers = [*n_classes]
    return [(f"{one.__name__}[{k}]", partial(one, thing, k)) for one in checks for k in numbers]


def run(checks: Iterable[tuple[str, Callable[[], None]]]) -> None:
    for name, check in checks:
        try:
            check()
        except Exception as error:
            raise AssertionError(f"{name} failed: {error}") from error


def assert_simplex(proba: AnyArray, shape: tuple[int, ...]) -> None:
    assert isinstance(proba, np.ndarray) and proba.dtype == np.float64, "not a float64 array"
    assert proba.shape == shape, f"shape {proba.shape} instead of {shape}"
    assert np.isfinite(proba).all(), "values that are not finite"
    assert proba.min() >= 0 and proba.max() <= 1, "values outside [0, 1]"
    assert np.abs(proba.sum(axis=1) - 1).max() <= 1e-12, "rows that do not sum to 1"


def assert_same(first: ArrayLike, second: ArrayLike, tolerance: float = TOLERANCE) -> None:
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
