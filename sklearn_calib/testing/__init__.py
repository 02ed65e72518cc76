"""Checks that methods of your own, and those of the package, keep their contracts.

It may import `decisions`, `decomposition`, `linear`, `monitoring` and the layers below
them. Start reading with `check_contract` in `_contract.py`.
"""

from ._contract import check_contract, contract_checks

__all__ = ["check_contract", "contract_checks"]


def __dir__() -> list[str]:
    return __all__
