"""XGBoost, LightGBM and CatBoost where they are installed and can be loaded."""

from functools import cache
from importlib import import_module

import pytest

#: XGBoost 3.4 reports it whenever one of these is made, cloned or fitted; they work as
#: before.
DEPRECATED = (
    "ignore:`XGBRFClassifier` is deprecated:FutureWarning",
    "ignore:.*`booster=dart` is deprecated:UserWarning",
)


@cache
def why_not(name):
    """None, or why a package cannot be imported: it is not there, or a system library is not."""
    try:
        import_module(name)
    except (ImportError, OSError) as error:  # OSError: the loader found no libgomp.so.1
        return f"could not import {name}: {error}"


def imported(name):
    """The package; a test that needs it is skipped, with the reason, where it cannot be had."""
    if why_not(name):
        pytest.skip(why_not(name))
    return import_module(name)


def skipped():
    """Parameters of tests, one for each package that cannot be had: skipped, with the reason."""
    for name in ("xgboost", "lightgbm", "catboost"):
        if why_not(name):
            yield pytest.param(
                None, id=name, marks=pytest.mark.skip(reason=why_not(name))
            )
