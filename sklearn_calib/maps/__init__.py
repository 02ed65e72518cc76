"""Calibration maps: one frozen dataclass for each kind of fitted function.

It may import `_kernels`, `_validation` and the layers below them.
Start reading with `CalibrationMap` in `_base.py`.
"""

from ._base import (
    MAP_KINDS as MAP_KINDS,
    CalibrationMap as CalibrationMap,
    check_length as check_length,
)
from ._cells import Cells as Cells
from ._combined import (
    Chain as Chain,
    Mixture as Mixture,
    combine_pairwise as combine_pairwise,
    make_chain as make_chain,
    make_mixture as make_mixture,
)
from ._cumulative_affine import CumulativeAffine as CumulativeAffine
from ._curves import (
    Curve as Curve,
    CurveBetweenKnots as CurveBetweenKnots,
    PiecewiseCubic as PiecewiseCubic,
    PiecewiseLinear as PiecewiseLinear,
    Steps as Steps,
    make_constant as make_constant,
    make_linear_in_proba as make_linear_in_proba,
    make_rank_steps as make_rank_steps,
    make_steps as make_steps,
)
from ._elementary import (
    Floor as Floor,
    Identity as Identity,
    TailCompression as TailCompression,
    Uniform as Uniform,
)
from ._fields import (
    Choice as Choice,
    Flag as Flag,
    Number as Number,
    Numbers as Numbers,
    Parts as Parts,
    get_schema_fields as get_schema_fields,
    invalid_field as invalid_field,
    schema_field as schema_field,
    short_repr as short_repr,
)
from ._function import (
    LOGIT as LOGIT,
    SCORE as SCORE,
    TIES as TIES,
    FunctionOfScore as FunctionOfScore,
    take_entries as take_entries,
)
from ._one_vs_rest import OneVsRest as OneVsRest
from ._polynomials import (
    ClippedChebyshev as ClippedChebyshev,
    SigmoidPoly as SigmoidPoly,
)
from ._ranges import Ranges as Ranges
from ._reading import MAX_MAP_DEPTH as MAX_MAP_DEPTH, read_map as read_map
from ._rows import Rows as Rows, TensorRows as TensorRows
from ._softmax_affine import SoftmaxAffine as SoftmaxAffine
from ._top_label import (
    TopLabel as TopLabel,
    find_others as find_others,
    share_rest as share_rest,
)

# Users have fitted recalibrators, so nothing here is for them; these names are for
# extensions.
__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
