"""Small arrays are worked on by one thread of BLAS, large ones by those there are."""

from threadpoolctl import threadpool_info, threadpool_limits

from sklearn_calib._threads import one_thread, threads_for
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.recalibrators import Identity


def threads():
    return {blas["num_threads"] for blas in threadpool_info() if blas["user_api"] == "blas"}


class Looking(Identity):
    def _fit(self, proba, codes, weight):
        self.threads_ = threads()
        super()._fit(proba, codes, weight)


def test_by_size():
    with threadpool_limits(2, user_api="blas"):
        for size, wanted in ((10, {2}), (20_000, {1}), (2_000_000, {2})):
            with threads_for(size):
                assert threads() == wanted
        with one_thread(), one_thread():
            pass
        assert threads() == {2}


def test_a_fit_of_few_rows_takes_one():
    proba, y = make_overconfident(10, 2000)
    with threadpool_limits(2, user_api="blas"):
        assert Looking().fit(proba, y).threads_ == {1}
        assert threads() == {2}
