"""Calibration maps: one frozen dataclass for each kind of fitted function.

It may import `_kernels`, `_validation` and the layers below them.
Start reading with `CalibrationMap` in `_base.py`.
"""

from ._base import MAP_KINDS, CalibrationMap as CalibrationMap, check_length
from ._cells import Cells
from ._combined import (
    Chain,
    Mixture as Mixture,
    combine_pairwise,
    make_chain,
    make_mixture,
)
from ._cumulative_affine import CumulativeAffine
from ._curves import (
    CallableMap,
    CurveBetweenKnots,
    PiecewiseCubic,
    PiecewiseLinear,
    Steps,
    make_constant,
    make_linear_in_proba,
    make_steps,
    make_steps_on_rounded_log_odds,
)
from ._elementary import Floor, Identity as Identity, TailCompression, Uniform
from ._fields import (
    Choice,
    Flag,
    MapListField,
    Number as Number,
    Numbers,
    get_schema_fields,
    invalid_field as invalid_field,
    schema_field as schema_field,
    short_repr,
)
from ._function import (
    LOGIT_FIELD as LOGIT_FIELD,
    SCORE_FIELD,
    TIES_FIELD,
    FunctionOfScore as FunctionOfScore,
    take_entries,
)
from ._one_vs_rest import OneVsRest
from ._polynomials import ClippedChebyshev, SigmoidPoly
from ._ranges import Ranges
from ._reading import MAX_MAP_DEPTH, read_map
from ._rows import Rows, TensorRows
from ._softmax_affine import SoftmaxAffine as SoftmaxAffine
from ._top_label import TopLabel, distribute_rest, select_other_log_proba_and_mask

# Users have fitted recalibrators, so nothing here is for them; these names are for
# extensions.
__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
