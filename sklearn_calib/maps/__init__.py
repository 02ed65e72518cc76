"""Calibration maps: one frozen dataclass for each kind of fitted function.

It may import `_kernels`, `_validation` and the layers below them.
Start reading with `CalibrationMap` in `_base.py`.
"""

from ._base import MAP_KINDS as MAP_KINDS
from ._base import CalibrationMap as CalibrationMap
from ._base import check_length as check_length
from ._cells import Cells as Cells
from ._combined import Chain as Chain
from ._combined import Mixture as Mixture
from ._combined import combine_pairwise as combine_pairwise
from ._combined import make_chain as make_chain
from ._combined import make_mixture as make_mixture
from ._cumulative_affine import CumulativeAffine as CumulativeAffine
from ._curves import Curve as Curve
from ._curves import CurveBetweenKnots as CurveBetweenKnots
from ._curves import PiecewiseCubic as PiecewiseCubic
from ._curves import PiecewiseLinear as PiecewiseLinear
from ._curves import Steps as Steps
from ._curves import make_constant as make_constant
from ._curves import make_linear_in_proba as make_linear_in_proba
from ._curves import make_rank_steps as make_rank_steps
from ._curves import make_steps as make_steps
from ._elementary import Floor as Floor
from ._elementary import Identity as Identity
from ._elementary import TailCompression as TailCompression
from ._elementary import Uniform as Uniform
from ._fields import Choice as Choice
from ._fields import Flag as Flag
from ._fields import Number as Number
from ._fields import Numbers as Numbers
from ._fields import Parts as Parts
from ._fields import get_schema_fields as get_schema_fields
from ._fields import invalid_field as invalid_field
from ._fields import schema_field as schema_field
from ._fields import short_repr as short_repr
from ._function import LOGIT as LOGIT
from ._function import SCORE as SCORE
from ._function import TIES as TIES
from ._function import FunctionOfScore as FunctionOfScore
from ._function import take_entries as take_entries
from ._one_vs_rest import OneVsRest as OneVsRest
from ._polynomials import ClippedChebyshev as ClippedChebyshev
from ._polynomials import SigmoidPoly as SigmoidPoly
from ._ranges import Ranges as Ranges
from ._reading import MAX_MAP_DEPTH as MAX_MAP_DEPTH
from ._reading import read_map as read_map
from ._rows import Rows as Rows
from ._rows import TensorRows as TensorRows
from ._softmax_affine import SoftmaxAffine as SoftmaxAffine
from ._top_label import TopLabel as TopLabel
from ._top_label import find_others as find_others
from ._top_label import share_rest as share_rest

# Users have fitted recalibrators, so nothing here is for them; these names are for
# extensions.
__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
