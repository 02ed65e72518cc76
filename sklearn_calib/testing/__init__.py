"""Checks of the contracts, for the tests of this package and of methods of your own.

``check_recalibrator(MyRecalibrator())``, ``check_metric(my_metric)``, ``check_loss(MyLoss())``,
``check_staging(MyLearner())`` and ``check_display(MyDisplay(result))`` raise AssertionError with
the name of the broken rule. `recalibrator_checks`, `metric_checks`, `loss_checks`, `staging_checks`
and `display_checks` list the single checks, for use with ``pytest.mark.parametrize``.
"""

from ._displays import check_display, display_checks
from ._losses import check_loss, loss_checks
from ._metrics import check_metric, metric_checks
from ._recalibrators import check_recalibrator, recalibrator_checks
from ._staging import check_staging, staging_checks

__all__ = [
    "check_display",
    "check_loss",
    "check_metric",
    "check_recalibrator",
    "check_staging",
    "display_checks",
    "loss_checks",
    "metric_checks",
    "recalibrator_checks",
    "staging_checks",
]


def __dir__() -> list[str]:
    return __all__
