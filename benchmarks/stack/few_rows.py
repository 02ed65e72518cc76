"""Candidates of "auto" with few rows: chosen on some tables, judged on others.

``python benchmarks/run.py stack/few_rows``. Scores are those of the arena (its cache);
the parts are those of ``split.py``. It resumes where it was cut. Every candidate is
fitted to the calibration rows and, out of fold, to four fifths of them; the mixtures
are then made from these. Columns: excess over the best single method in % (50 at most),
wins over single methods with the 2.5 % point of a bootstrap over data sets, share of
tasks that are worse than the scores as they are by two paired standard errors, and the
change of the log loss against "auto" before.
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
from sklearn_calib._kernels._mixture_proportions import fit_mixture_weights
from sklearn_calib._kernels._probability_floor import clip_to_floor, estimate_floor
from sklearn_calib._simplex_array import compute_log_losses
from sklearn_calib.recalibrators import (
    BetaCalibration,
    OneVsRest,
    PlattScaling,
    QuadraticScaling,
    SplineCalibration,
    StructuredMatrixScaling,
    StructuredVectorScaling,
    TemperatureScaling,
    _auto as auto,
)
from sklearn_calib.recalibrators._stacking import (
    compute_fit_and_held_out_weights,
    fit_chains,
    iter_chain_predictions,
)

HERE = Path(__file__).parent
SIZES, DRAWS, TEST, FEWEST = (100, 500, 2000), 1, 5000, 3
BEFORE = {  # with the prior of before: half a row on identity, the other half evenly
    True: ["identity", "default", "spline", "structured_vector", "venn_abers"],
    False: [
        "identity",
        "temperature",
        "structured_vector",
        "default",
        "default, spline",
    ],
}


def mixtures(k, n):
    """{name: (candidates, what the default has of the invented rows, how many of these)}."""
    before, now = list(BEFORE[k == 2]), list(auto.list_candidates(k, n))
    if k == 2:
        before += ["platt", "platt of probabilities"] if n < 1000 else ["quadratic"]
    else:
        before += ["shared venn_abers"] + (["shared spline"] if n < 1000 else [])
    evenly, smooth = (
        0.5 / (len(now) - 1),
        [name for name in now if "spline" not in name],
    )
    return {
        "auto before": (before, 0.5 / (len(before) - 1), 1),
        "auto, the prior of before": (now, evenly, 1),
        "auto, more of the default": (now, 0.4, 1),
        "auto, two invented rows": (now, 0.25, 2),
        "auto, four invented rows": (now, 0.25, 4),
        "auto without splines": (smooth, 0.25, 1),
        "auto": (now, 0.25, 1),
    }


def candidates(k, n):
    found = auto.list_candidates(k, n)
    default, spline = found["default"][0], SplineCalibration()
    found |= {
        "structured_vector": (StructuredVectorScaling(),),
        "platt": (PlattScaling(),),
    }
    found |= {"temperature": (TemperatureScaling(laplace=True),)}
    found |= (
        {"structured_matrix": (StructuredMatrixScaling(),)} if k > 2 or n < 1000 else {}
    )
    if k == 2:
        found |= {"beta": (BetaCalibration(),), "quadratic": (QuadraticScaling(),)}
        return found | {"platt of probabilities": (PlattScaling("proba"),)}
    shared = OneVsRest(spline, shared=True)
    return found | {
        "shared spline": (shared,),
        "default, shared spline": (default, shared),
    }


def one_task(part, name, model, n, draw):
    """Mean test log loss of each single method and mixture, and whether it hurts; or nothing."""
    warnings.simplefilter("ignore")
    if model == "given":
        p, y = tasks._predictions(name)
        order = np.random.default_rng(7).permutation(len(y))
        p, y, pool = p[order], y[order], max(len(y) // 2, len(y) - TEST)
    else:
        path = tasks._cached(f"{name}-{model}-0", lambda: tasks._scores(name, model, 0))
        kept = np.load(path)
        p, y, pool = kept["p"], kept["y"], int(kept["pool"])
    if n > pool or n * np.bincount(y).min() < FEWEST * len(y):
        return []
    parts = {"train_size": n, "stratify": y[:pool], "random_state": draw}
    calib = (
        train_test_split(np.arange(pool), **parts)[0] if n < pool else np.arange(pool)
    )
    proba, codes = canonical_proba(p[calib]), y[calib]
    floor = estimate_floor(proba)
    proba = clip_to_floor(proba, floor)
    test = clip_to_floor(canonical_proba(p[pool:][:TEST]), floor)
    chains, weight = candidates(p.shape[1], n), np.ones(n)
    outside = {one: np.empty(n) for one in chains}
    for mass, left in compute_fit_and_held_out_weights(proba, codes, weight, 5, n):
        rows = np.flatnonzero(left > 0)
        for one, found in likelihoods(
            chains, proba, codes, mass, proba[rows], codes[rows]
        ):
            outside[one][rows] = found
    true = y[pool:][:TEST]
    inside = dict(likelihoods(chains, proba, codes, weight, test, true))
    own = proba[np.arange(n), codes], test[np.arange(len(true)), true]
    losses = {one: compute_log_losses(found) for one, found in inside.items()}
    for one, (names, of_default, invented) in mixtures(p.shape[1], n).items():
        prior = np.full(len(names), (0.5 - of_default) / (len(names) - 2))
        prior[names.index("default")] = of_default
        prior[names.index("identity")] = 0.5
        share = 1 / (0.8 * n + 1)
        table = (1 - share) * np.column_stack(
            [outside[m] for m in names]
        ) + share * own[0][:, None]
        weights = fit_mixture_weights(
            np.maximum(table, 1e-12), weight, invented * prior
        )
        mixed = np.column_stack([inside[m] for m in names]) @ weights
        losses[one] = compute_log_losses((n * mixed + own[1]) / (n + 1))
    gaps = {m: loss - losses["identity"] for m, loss in losses.items()}
    hurt = {m: bool(g.mean() > 2 * g.std() / np.sqrt(len(g))) for m, g in gaps.items()}
    means = {m: float(loss.mean()) for m, loss in losses.items()}
    own = {"part": part, "of": tasks.base(name), "rows": n, "two": p.shape[1] == 2}
    return [own | {"means": means, "hurt": hurt}]


def likelihoods(chains, proba, codes, mass, given, true):
    fitted, failed = fit_chains(chains, proba, codes, mass)
    assert not failed
    for name, found in iter_chain_predictions(fitted, given, np.arange(proba.shape[1])):
        yield name, found[np.arange(len(true)), true]


def summary(part, size, two, found):
    singles = [m for m in found[0]["means"] if not m.startswith("auto")]
    means = {m: np.array([one["means"][m] for one in found]) for m in found[0]["means"]}
    best = np.min([means[m] for m in singles], axis=0)
    sets = np.unique([one["of"] for one in found], return_inverse=True)[1]
    n_sets = sets.max() + 1
    counts = np.random.default_rng(0).multinomial(
        n_sets, np.full(n_sets, 1 / n_sets), 2000
    )[:, sets]
    for method, own in means.items():
        wins = np.mean([own < means[m] for m in singles if m != method], axis=0)
        low = np.quantile(counts @ wins / counts.sum(axis=1), 0.025)
        change = 100 * np.log(own / means["auto before"]).mean()
        row = {"tables": part, "rows": size, "classes": "two" if two else "several"}
        row |= {"tasks": len(found), "method": method}
        row["excess_percent"] = f"{100 * np.clip(own / best - 1, 0, 0.5).mean():.2f}"
        row |= {
            "wins_over_single_methods": f"{wins.mean():.3f}",
            "wins_low": f"{low:.3f}",
        }
        row["hurt_percent"] = (
            f"{100 * np.mean([one['hurt'][method] for one in found]):.1f}"
        )
        yield row | {"change_percent": f"{change:.2f}"}


def main():
    jobs = []
    for part in ("judging", "choosing"):
        for size in SIZES:
            named = [(t, m) for t in (*tasks.TWO, *tasks.SEVERAL) for m in tasks.MODELS]
            named = [
                (t, m) for t, m in named if not (t in tasks.SLOW and "boosting" in m)
            ]
            named += [(t, "given") for t in tasks.PREDICTED if "cifar100" not in t]
            named = [job for job in named if split.part_of(job[0]) == part]
            jobs += [(part, *job, size, draw) for job in named for draw in range(DRAWS)]
    done = runner.rounds(HERE / "few_rows.partial.jsonl", jobs, one_task)
    rows = []
    for key in sorted({(one["part"], one["rows"], not one["two"]) for one in done}):
        part, size, several = key
        found = [
            one for one in done if (one["part"], one["rows"], not one["two"]) == key
        ]
        rows += summary(part, size, not several, found)
    columns = ["tables", "rows", "classes", "tasks", "method", "excess_percent"]
    columns += [
        "wins_over_single_methods",
        "wins_low",
        "hurt_percent",
        "change_percent",
    ]
    runner.write(HERE / "few_rows.csv", rows, columns)


if __name__ == "__main__":
    main()
