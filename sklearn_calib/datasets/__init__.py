"""Generates data whose true probabilities are known.

It may import `_kernels`, `_validation` and the layers below them.
Start reading with `make_two_gaussians` in `_two_gaussians.py`.
"""

from ._high_dimensional import LinearTruth as LinearTruth, make_high_dimensional
from ._miscalibrated import (
    ScoredData as ScoredData,
    make_overconfident,
    make_sign_perturbed,
    make_uniform_shift,
)
from ._two_gaussians import make_two_gaussians

__all__ = [
    "make_high_dimensional",
    "make_overconfident",
    "make_sign_perturbed",
    "make_two_gaussians",
    "make_uniform_shift",
]


def __dir__() -> list[str]:
    return __all__
