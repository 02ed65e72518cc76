"""Candidates of "auto" with few rows: chosen on some tables, judged on others.

``python benchmarks/run.py stack/few_rows``. Scores are those of the arena (its cache); the parts
are those of ``split.py``. Every candidate is fitted to the calibration rows and, out of fold, to
four fifths of them; the mixtures are then made from these. Columns: excess over the best single
method in % (50 at most), wins over single methods, share of tasks that are worse than the scores as
they are by two paired standard errors, and the change of the log loss against "auto" before.
"""

import sys
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "arena"))
import runner
import split
import tasks
from sklearn.model_selection import train_test_split

from sklearn_calib import canonical_proba
from sklearn_calib._kernels._mixture import mixture_weights
from sklearn_calib._simplex import learned_floor, log_losses, raised
from sklearn_calib.recalibrators import (
    BetaCalibration,
    DefaultCalibration,
    Identity,
    OneVsRest,
    PlattScaling,
    QuadraticScaling,
    SplineCalibration,
    StructuredMatrixScaling,
    StructuredVectorScaling,
    TemperatureScaling,
    VennAbers,
)
from sklearn_calib.recalibrators._stacking import fit_chains, fold_masses, predict_chains

HERE = Path(__file__).parent
SIZES, DRAWS, TEST, FEWEST = (100, 500), 2, 5000, 3
TWO = ["identity", "default", "spline", "structured_vector"]
SEVERAL = ["identity", "temperature", "structured_vector", "default", "default, spline"]
SEVERAL += ["shared venn_abers"]
LATER = ["temperature, default", "temperature, default, spline"]
MIXTURES = {
    True: {
        "auto before": TWO,
        "with venn_abers": [*TWO, "venn_abers"],
        "with platt": [*TWO, "platt"],
        "with platt of probabilities": [*TWO, "platt_proba"],
        "auto, with all three": [*TWO, "venn_abers", "platt_proba", "platt"],
    },
    False: {
        "auto before": SEVERAL,
        "with temperature before the default": [*SEVERAL, *LATER],
        "auto, with a shared spline": [*SEVERAL, "shared spline"],
    },
}


def candidates(k):
    default, warm = DefaultCalibration(), TemperatureScaling(laplace=True)
    spline, matrix = SplineCalibration(), StructuredMatrixScaling()
    found = {"identity": (Identity(),), "temperature": (warm,), "default": (default,)}
    found |= {"structured_vector": (StructuredVectorScaling(),), "structured_matrix": (matrix,)}
    if k == 2:
        found |= {"spline": (spline,), "venn_abers": (VennAbers(),)}
        found |= {"quadratic": (QuadraticScaling(),), "beta": (BetaCalibration(),)}
        return found | {"platt": (PlattScaling(),), "platt_proba": (PlattScaling("proba"),)}
    found |= {"default, spline": (default, spline), "temperature, default": (warm, default)}
    found |= {"temperature, default, spline": (warm, default, spline)}
    found |= {"structured_matrix, spline": (matrix, spline)}
    found |= {"shared spline": (OneVsRest(spline, shared=True),)}
    return found | {"shared venn_abers": (OneVsRest(VennAbers(), shared=True),)}


def one_task(name, model, n, draw):
    """Test log losses of every row for each single method and mixture; or None."""
    if model == "given":
        p, y = tasks._predictions(name)
        order = np.random.default_rng(7).permutation(len(y))
        p, y, pool = p[order], y[order], max(len(y) // 2, len(y) - TEST)
    else:
        path = tasks._cached(f"{name}-{model}-0", lambda: tasks._scores(name, model, 0))
        kept = np.load(path)
        p, y, pool = kept["p"], kept["y"], int(kept["pool"])
    if n > pool or n * np.bincount(y).min() < FEWEST * len(y):
        return None
    parts = {"train_size": n, "stratify": y[:pool], "random_state": draw}
    calib = train_test_split(np.arange(pool), **parts)[0] if n < pool else np.arange(pool)
    proba, codes = canonical_proba(p[calib]), y[calib]
    floor = learned_floor(proba)
    proba, test = raised(proba, floor), raised(canonical_proba(p[pool:][:TEST]), floor)
    chains, weight = candidates(p.shape[1]), np.ones(n)
    outside = {one: np.empty(n) for one in chains}
    for mass, left in fold_masses(proba, codes, weight, 5, n):
        rows = np.flatnonzero(left > 0)
        for one, found in likelihoods(chains, proba, codes, mass, proba[rows], codes[rows]):
            outside[one][rows] = found
    true = y[pool:][:TEST]
    inside = dict(likelihoods(chains, proba, codes, weight, test, true))
    own = proba[np.arange(n), codes], test[np.arange(len(true)), true]
    losses = {one: log_losses(found) for one, found in inside.items()}
    for one, names in MIXTURES[p.shape[1] == 2].items():
        prior = np.full(len(names), 0.5 / (len(names) - 1))
        prior[names.index("identity")] = 0.5
        share = 1 / (0.8 * n + 1)
        table = (1 - share) * np.column_stack([outside[m] for m in names]) + share * own[0][:, None]
        weights = mixture_weights(np.maximum(table, 1e-12), weight, prior)
        mixed = np.column_stack([inside[m] for m in names]) @ weights
        losses[one] = log_losses((n * mixed + own[1]) / (n + 1))
    return losses


def likelihoods(chains, proba, codes, mass, given, true):
    fitted, failed = fit_chains(chains, proba, codes, mass)
    assert not failed
    for name, found in predict_chains(fitted, given, np.arange(proba.shape[1])):
        yield name, found[np.arange(len(true)), true]


def summary(part, size, two, found):
    singles = [m for m in found[0] if m not in MIXTURES[two]]
    means = {m: np.array([one[m].mean() for one in found]) for m in found[0]}
    best = np.min([means[m] for m in singles], axis=0)
    for method, own in means.items():
        gaps = [one[method] - one["identity"] for one in found]
        hurt = np.mean([g.mean() > 2 * g.std() / np.sqrt(len(g)) for g in gaps])
        wins = np.mean([(own < means[m]).mean() for m in singles if m != method])
        change = 100 * np.log(own / means["auto before"]).mean()
        row = {"tables": part, "rows": size, "classes": "two" if two else "several"}
        row |= {"tasks": len(found), "method": method, "hurt_percent": f"{100 * hurt:.1f}"}
        row["excess_percent"] = f"{100 * np.clip(own / best - 1, 0, 0.5).mean():.2f}"
        yield row | {"wins_over_single_methods": f"{wins:.3f}", "change_percent": f"{change:.2f}"}


def main():
    warnings.simplefilter("ignore")
    rows = []
    for part in ("choosing", "judging"):
        for size in SIZES:
            for names, two in ((tasks.TWO, True), (tasks.SEVERAL, False)):
                jobs = [(t, m) for t in names for m in tasks.MODELS]
                given = [t for t in tasks.PREDICTED if "cifar100" not in t]
                jobs += [(t, "given") for t in given]
                jobs = [job for job in jobs if split.part_of(job[0]) == part]
                found = [one_task(*job, size, draw) for job in jobs for draw in range(DRAWS)]
                found = [one for one in found if one and (("venn_abers" in one) == two)]
                rows += summary(part, size, two, found) if found else []
                print(part, size, two, len(found), flush=True)
    columns = ["tables", "rows", "classes", "tasks", "method", "excess_percent"]
    columns += ["wins_over_single_methods", "hurt_percent", "change_percent"]
    runner.write(HERE / "few_rows.csv", rows, columns)


if __name__ == "__main__":
    main()
