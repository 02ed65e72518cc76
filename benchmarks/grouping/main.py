"""What `decompose_loss` with features finds where nothing is to be gained, and where something is.

``python benchmarks/run.py grouping [levels | sizes | six | tables]``: without a word
all of them.
"""

import sys
from pathlib import Path

import numpy as np

from sklearn_calib.decomposition._grouping import (
    decompose_by_features,
    make_test_once_folds,
    read_feature_columns,
)
from sklearn_calib.metrics import get_loss, validate_predictions
from sklearn_calib.recalibrators import MulticalibratedScores, get_recalibrator

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
import laws  # noqa: E402
import real  # noqa: E402
import runner  # noqa: E402
import sizes  # noqa: E402

DRAWS = {
    ("true probabilities", 1000): 60,
    ("right model, fitted", 1000): 100,
    ("true scores, bent", 1000): 100,
    ("interaction missed", 1000): 100,
    ("four classes, fitted", 1000): 60,
    ("right model, fitted", 5000): 30,
}
SIX = [
    (1000, "right model, fitted"),
    (1000, "interaction missed"),
    (5000, "right model, fitted"),
    (5000, "interaction missed"),
    (5000, "interaction missed, scores x 2.5"),
    (5000, "true probabilities"),
]
ROUNDING = 1e-12  # nats: smaller expected gains are none
FRESH = 5000  # rows on which the expected gains of the fitted maps are computed
TERMS = ("calibration", "grouping")
LEVEL = 0.9
RECALIBRATOR = "default"  # a sixtieth of the time of "auto"


def maps_of_new_rows(case, columns, folds):
    """Scores of the rows that no fold has: given, recalibrated, and by the features too.

    Each part of these rows is mapped by the fits of one fold.
    """
    n_rows = len(case.codes)
    classes = np.arange(len(case.classes))
    mapped, used = [], []
    new = np.arange(n_rows - FRESH, n_rows)
    for (train, _), part in zip(folds, np.array_split(new, len(folds)), strict=True):
        labels = {"y": case.codes[train], "classes": classes}
        method = get_recalibrator(RECALIBRATOR).fit(case.proba[train], **labels)
        mapped.append(method.predict_proba(case.proba[part]))
        trees = MulticalibratedScores()
        own = {name: column[train] for name, column in columns.items()}
        trees.fit(method.predict_proba(case.proba[train]), groups=own, **labels)
        theirs = {name: column[part] for name, column in columns.items()}
        used.append(trees.predict_proba(mapped[-1], groups=theirs))
    return case.proba[new], np.concatenate(mapped), np.concatenate(used)


def measured(law, n, seed, loss="log"):
    """What is found in n rows, and the expected gains of the very maps on new ones."""
    rng = np.random.default_rng([n, seed])
    columns, y, p, truth = law(n + FRESH, rng)
    case = validate_predictions(y, p, None, range(p.shape[1]))
    columns = read_feature_columns(columns, case)
    some = case.take(np.arange(n))
    folds = make_test_once_folds(some, 5)
    features = {name: column[:n] for name, column in columns.items()}
    parts = decompose_by_features(some, features, loss, RECALIBRATOR, folds)
    rule = get_loss(loss)
    given, mapped, used = (
        rule.expected(proba, truth[n:])
        for proba in maps_of_new_rows(case, columns, folds)
    )
    expected = {
        "calibration": np.mean(given - mapped),
        "grouping": np.mean(mapped - used),
    }
    return parts, {
        term: x if abs(x) > ROUNDING else 0.0 for term, x in expected.items()
    }


def level_of(name, n, draws):
    """One row of the table for each term of a law."""
    law = {**laws.NOTHING, **laws.SOMETHING}[name]
    found = [measured(law, n, seed) for seed in range(draws)]
    actions = [parts.action for parts, _ in found]
    rows = []
    for term in TERMS:
        ends = np.array([parts.interval(term, LEVEL) for parts, _ in found])
        truth = np.array([values[term] for _, values in found])
        error = np.array([parts.standard_errors[term] for parts, _ in found])
        value = np.array([parts._sampling_errors[term].estimate for parts, _ in found])
        off = value - truth
        rows.append(
            {
                "law": name,
                "to_be_gained": "something" if name in laws.SOMETHING else "nothing",
                "n": n,
                "draws": draws,
                "term": term,
                "found": f"{np.mean(ends[:, 0] > 0):.3f}",
                "no_map": f"{np.mean((error == 0) & (value == 0)):.3f}",
                "mean_gain": f"{value.mean():.5f}",
                "mean_expected_gain": f"{truth.mean():.5f}",
                "inside": f"{np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1])):.3f}",
                "truth_below": f"{np.mean(truth < ends[:, 0]):.3f}",
                "truth_above": f"{np.mean(truth > ends[:, 1]):.3f}",
                "deviation_over_error": f"{off.std() / max(np.sqrt(np.mean(error**2)), 1e-12):.3f}",
                "actions": " ".join(
                    f"{a} {actions.count(a)}" for a in sorted(set(actions))
                ),
            }
        )
        print(rows[-1], flush=True)
    return rows


def levels():
    jobs = [(*case, draws) for case, draws in DRAWS.items()]
    rows = runner.rounds(HERE / "levels.partial.jsonl", jobs, level_of, processes=1)
    runner.write(HERE / "levels.csv", rows)


def named_sizes():
    rare = "column missed, 8 % positive"
    jobs = [
        (name, 1000, 20)
        for name in (rare, "5 categories, flat scores", *sizes.ONE_FEATURE)
    ]
    jobs += [(name, 1000, 12) for name in sizes.HARDER] + [(rare, 4000, 12)]
    rows = runner.rounds(
        HERE / "sizes.partial.jsonl", jobs, sizes.found_of, processes=1
    )
    runner.write(HERE / "sizes.csv", rows)


def six_laws():
    """The gains in six simple laws, means of three draws."""
    rows = []
    for n, name in SIX:
        found = [
            measured({**laws.NOTHING, **laws.SOMETHING}[name], n, s) for s in range(3)
        ]
        row = {"law": name, "n": n}
        for term in TERMS:
            value = np.mean([one._sampling_errors[term].estimate for one, _ in found])
            error = np.mean([one.standard_errors[term] for one, _ in found])
            expected = np.mean([truth[term] for _, truth in found])
            row |= {
                term: f"{value:.4f} ({error:.4f})",
                f"expected_{term}": f"{expected:.4f}",
            }
        row["actions"] = " ".join(one.action for one, _ in found)
        rows.append(row)
        print(row, flush=True)
    runner.write(HERE / "six.csv", rows)


def tables():
    rows = []
    for name in real.TABLES:
        rows.append(real.promised_and_realised(name))
        print(rows[-1], flush=True)
    runner.write(HERE / "tables.csv", rows)


def main():
    parts = {"levels": levels, "sizes": named_sizes, "six": six_laws, "tables": tables}
    for name in sys.argv[1:] or parts:
        parts[name]()


if __name__ == "__main__":
    main()
