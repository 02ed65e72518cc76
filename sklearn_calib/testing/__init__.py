"""Checks of the contracts, for the tests of this package and of methods of your own.

``check_contract(MyRecalibrator())``, and the same of a measure, a loss, a display or a classifier
that is seen stage by stage, raises AssertionError with the name of the broken rule;
`contract_checks` lists the single checks, for use with ``pytest.mark.parametrize``.
"""

from ._contract import check_contract, contract_checks

__all__ = ["check_contract", "contract_checks"]


def __dir__() -> list[str]:
    return __all__
