"""The rivals beside netcal's and calibre's, where installed: seconds and distance to the truth."""

import sys
import time
import warnings

import numpy as np
import setting

from sklearn_calib.recalibrators import (
    BBQ,
    ENIR,
    IsotonicCalibration,
    NearIsotonicCalibration,
)


def data(n):
    rng = np.random.default_rng(n)
    p = rng.random(n)
    truth = p**2 * (3 - 2 * p)
    return p, truth, (rng.random(n) < truth).astype(int)


def theirs():
    """Functions of (p, y) that return fitted functions of p."""
    found = {}
    try:
        from netcal import binning

        def netcal(cls):
            def fit(p, y):
                model = cls()
                model.fit(p, y)
                return lambda s: np.asarray(model.transform(s)).ravel()

            return fit

        found["NearIsotonicCalibration"] = (
            "netcal",
            netcal(binning.NearIsotonicRegression),
        )
        found["ENIR"] = ("netcal", netcal(binning.ENIR))
        found["BBQ"] = ("netcal", netcal(binning.BBQ))
    except ImportError as error:
        print(f"skipped netcal: {error}")
    if sys.version_info >= (3, 12):
        try:
            from calibre import IsotonicCalibrator, NearlyIsotonicCalibrator

            def calibre(cls):
                return lambda p, y: cls().fit(p, y).transform

            found["NearIsotonicCalibration, calibre"] = (
                "calibre",
                calibre(NearlyIsotonicCalibrator),
            )
            found["isotonic, calibre"] = ("calibre", calibre(IsotonicCalibrator))
        except ImportError as error:
            print(f"skipped calibre: {error}")
    else:
        print("skipped calibre: it needs Python 3.12")
    return found


OURS = {
    "NearIsotonicCalibration": NearIsotonicCalibration(),
    "ENIR": ENIR(),
    "BBQ": BBQ(),
    "isotonic": IsotonicCalibration(),
}


def timed(fit, p, y, times):
    found, answer = [], None
    for _ in range(times):
        start = time.perf_counter()
        answer = fit(p, y)(p)
        found.append(time.perf_counter() - start)
    return float(np.median(found)), answer


def main():
    rows = []
    for n in (300, 3000):
        p, truth, y = data(n)
        for case, (peer, fit) in theirs().items():
            ours = OURS[case.partition(",")[0]]
            one, mine = timed(
                lambda p, y, m=ours: lambda s: m.fit(p, y).predict_proba(s)[:, 1],
                p,
                y,
                5,
            )
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                try:
                    two, other = timed(fit, p, y, 1 if n > 1000 else 3)
                except Exception as error:  # what a user would see
                    print(f"{peer} {case}, n = {n}: {type(error).__name__}: {error}")
                    two, other = np.nan, np.full(n, np.nan)
            rows.append(
                {
                    "peer": peer,
                    "case": case,
                    "rows": n,
                    "ours [s]": f"{one:.3g}",
                    "theirs [s]": f"{two:.3g}",
                    "ours, mean error": f"{np.abs(mine - truth).mean():.4f}",
                    "theirs, mean error": f"{np.abs(other - truth).mean():.4f}",
                    "ours, largest": f"{np.abs(mine - truth).max():.3f}",
                    "theirs, largest": f"{np.abs(other - truth).max():.3f}",
                }
            )
            print(rows[-1], flush=True)
    if rows:
        setting.runner.write(setting.HERE / "peers.csv", rows)


if __name__ == "__main__":
    main()
