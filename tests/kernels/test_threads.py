"""The number of threads of kernels."""

import sys
from types import SimpleNamespace

import numba

from sklearn_calib._kernels._compile import count_threads


def test_torch_keeps_its_number_of_threads(monkeypatch):
    number = [1]
    torch = SimpleNamespace(
        get_num_threads=lambda: number[0],
        set_num_threads=lambda n: number.__setitem__(0, n),
    )

    def start():  # as numba's pool does it
        number[0] = 7
        return 3

    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(numba, "get_num_threads", start)
    assert count_threads() == 3 and number == [1]


def test_without_torch(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert count_threads() == numba.get_num_threads()
