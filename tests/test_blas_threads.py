"""Rows of some classes are worked on by one thread of BLAS, those of many by all there are."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from sklearn_calib._blas_threads import limit_blas_threads, single_blas_thread
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.metrics import measure
from sklearn_calib.recalibrators import Identity


def threads():
    """Of numpy's BLAS: other libraries, loaded by other tests, bring their own."""
    return {
        blas["num_threads"]
        for blas in threadpool_info()
        if blas["user_api"] == "blas" and "numpy" in blas["filepath"]
    }


class Looking(Identity):
    def _fit(self, proba, codes, weight):
        self.threads_ = threads()
        super()._fit(proba, codes, weight)


def test_by_the_number_of_classes():
    with threadpool_limits(2, user_api="blas"):
        cases = {
            (5, 2): {2},
            (2000, 10): {1},
            (5_000_000, 2): {1},
            (9, 199): {2},
            (50, 199): {1},
        }
        for shape, wanted in (cases | {(2000, 200): {2}}).items():
            with limit_blas_threads(*shape):
                assert threads() == wanted
        with single_blas_thread, single_blas_thread:
            pass
        assert threads() == {2}


def test_a_fit_of_few_rows_takes_one():
    proba, y = make_overconfident(10, 2000)
    with threadpool_limits(2, user_api="blas"):
        assert Looking().fit(proba, y).threads_ == {1}
        assert threads() == {2}


def test_the_number_comes_back_after_an_error_and_after_fits_at_once():
    class Failing(Identity):
        def _fit(self, proba, codes, weight):
            assert threads() == {1}
            raise RuntimeError("stop")

    proba, y = make_overconfident(10, 2000)
    with threadpool_limits(2, user_api="blas"):
        with pytest.raises(RuntimeError, match="stop"):
            Failing().fit(proba, y)
        assert threads() == {2}
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(lambda _: Looking().fit(proba, y), range(30)))
        assert threads() == {2}


def test_measures_and_predictions_too(monkeypatch):
    seen = []

    @measure()
    def looking(predictions):
        seen.append(threads())
        return 0.0

    class Watching(Identity):
        def _predict_proba(self, proba):
            seen.append(threads())
            return super()._predict_proba(proba)

    proba, y = make_overconfident(10, 2000)
    with threadpool_limits(2, user_api="blas"):
        looking(y, proba)
        fitted = Watching().fit(proba, y)
        fitted.predict_proba(proba)
        fitted.predict_proba(proba[:1])
    assert seen == [{1}, {1}, {2}]
