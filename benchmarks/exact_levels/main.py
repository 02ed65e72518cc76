"""How often exact tests by the measures without a law of their own reject, calibrated and not."""

import sys
from pathlib import Path

import numpy as np
from scipy.special import expit, softmax

import sklearn_calib.decomposition  # noqa: F401 - its measures register
from sklearn_calib.inference import calibration_test

sys.path.insert(0, str(Path(__file__).parents[1]))
import runner

HERE = Path(__file__).parent
_CANONICAL = {
    "statistic": "kernel_calibration_error",
    "multiclass": "canonical",
    "bandwidth": "median",
}
TESTS = {
    "ICI, loess": {"statistic": "integrated_calibration_index"},
    "ICI, cox": {"statistic": "integrated_calibration_index", "smoother": "cox"},
    "Emax, loess": {"statistic": "emax_calibration_index"},
    "ECCE": {"statistic": "cumulative_calibration_error"},
    "ECE, sweep": {"statistic": "expected_calibration_error", "n_bins": "sweep"},
    "SKCE": _CANONICAL,
    "SKCE, linear": {**_CANONICAL, "estimator": "linear"},
}
LEVELS = (0.01, 0.05, 0.1)
LAWS = ("30 %", "1 %", "ties", "4 classes")
OFF = ("slope 0.75", "wave", "4 classes, slope 0.75", "4 classes, rotated")
_FAST = [test for test in TESTS if test != "ICI, cox"]
_MAIN = ("ICI, loess", "ECCE", "ECE, sweep", "SKCE")
JOBS = [(test, law, 200, 400) for law in LAWS for test in _FAST]
JOBS += [("ICI, cox", "30 %", 200, 100)]
JOBS += [(test, law, 1000, 100) for law in ("30 %", "4 classes") for test in _MAIN]
JOBS += [(test, law, 300, 100) for law in OFF for test in _MAIN]


def draw(law, n, rng):
    """Predictions and true probabilities, of the second class of two or of all classes."""
    if law.startswith("4 classes"):
        z = 1.2 * rng.normal(size=(n, 4))
        proba = softmax(z, axis=1)
        if "slope" in law:
            return proba, softmax(0.75 * z, axis=1)
        # the largest probability is right, the others are in turns
        if "rotated" in law:
            rest = np.argsort(-proba, axis=1)[:, 1:]
            truth, rows = proba.copy(), np.arange(n)[:, None]
            truth[rows, rest] = proba[rows, np.roll(rest, 1, axis=1)]
            return proba, truth
        return proba, proba
    z = 1.2 * rng.normal(size=n)
    if law == "ties":
        z = z.round()
    if law == "wave":
        p = rng.uniform(0.15, 0.85, n)
        return p, p + 0.1 * np.sin(12 * p)
    p = expit(z + {"1 %": -5, "30 %": -1}.get(law, 0))
    return p, expit(0.75 * z) if "slope" in law else p


def labels(q, rng):
    """A label for each row."""
    if q.ndim == 1:
        return (rng.random(len(q)) < q).astype(int)
    return (
        (rng.random(len(q))[:, None] > q.cumsum(axis=1))
        .sum(axis=1)
        .clip(max=q.shape[1] - 1)
    )


def pvalues(test, law, n, draws):
    """p-values of `draws` sets of rows."""
    found = []
    for number in range(draws):
        rng = np.random.default_rng([n, number])
        p, q = draw(law, n, rng)
        given = {"labels": np.arange(4 if p.ndim == 2 else 2), "n_resamples": 99}
        y = labels(q, rng)
        found.append(
            calibration_test(y, p, random_state=number, **given, **TESTS[test]).pvalue
        )
    return np.array(found)


def rejected(test, law, n, draws):
    """One row of the table for each level."""
    found = pvalues(test, law, n, draws)
    for level in LEVELS if law in LAWS else (0.05,):
        row = {"test": test, "law": law, "n": n, "draws": draws, "level": level}
        row["rejected"] = f"{(found <= level + 1e-9).mean():.3f}"
        sd = np.sqrt(level * (1 - level) / draws)
        yield row | {"three_sd": f"{3 * sd:.3f}" if law in LAWS else ""}


def run(*job):
    """The rows of one job."""
    return list(rejected(*job))


def main():
    runner.study(HERE, JOBS, run)


if __name__ == "__main__":
    main()
