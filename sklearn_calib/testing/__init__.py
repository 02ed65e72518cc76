"""Checks of the contracts, for the tests of this package and of methods of your own.

``check_recalibrator(MyRecalibrator())`` and ``check_metric(my_metric)`` raise AssertionError with
the name of the broken rule. `recalibrator_checks` and `metric_checks` list the single checks, for
use with ``pytest.mark.parametrize``.
"""

from ._common import make_scores as make_scores
from ._metrics import check_metric as check_metric
from ._metrics import metric_checks as metric_checks
from ._recalibrators import check_recalibrator as check_recalibrator
from ._recalibrators import recalibrator_checks as recalibrator_checks

__all__ = [
    "check_metric",
    "check_recalibrator",
    "make_scores",
    "metric_checks",
    "recalibrator_checks",
]
