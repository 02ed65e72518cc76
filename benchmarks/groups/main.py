"""Does `group_calibration` reject calibrated predictions as often as it says, do intervals hold?"""

import importlib.util
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from sklearn_calib.groups import audit_pair_sums, group_calibration, partition_values
from sklearn_calib.summary import count_values, summarize, summarize_groups

sys.path.insert(0, str(Path(__file__).parents[1]))
import runner

HERE = Path(__file__).parent
LEVELS = (0.01, 0.05, 0.1)
RESAMPLES = 99
VALUES = (2, 3, 4, 5, 6, 2)  # of the columns of groups, beside two columns of numbers
NULLS = ("deciles", "continuous", "rare", "weighted", "confidence", "classwise")
SUMMARIES = "weighted deciles, from summaries"
PARTS = 4  # of the sets, so that it resumes
SETS = {"level": 1000, "coverage": 400, "mcgrad": 60}
COVERED = (("calibrated", 2400), ("off", 2400), ("off", 600), ("rare and off", 2400))
JOBS = [
    *(
        ("level", law, 1500, part)
        for law in (*NULLS, SUMMARIES)
        for part in range(PARTS)
    ),
    *(("coverage", law, n, part) for law, n in COVERED for part in range(PARTS)),
    *(("mcgrad", law, 2400, part) for law in NULLS[:3] for part in range(PARTS)),
]


def table_of(n, rng):
    """Columns of groups: text with unequal shares, and numbers."""
    columns = {
        f"c{j}": np.array([f"v{v}" for v in range(k)])[
            rng.choice(k, n, p=rng.dirichlet([4] * k))
        ]
        for j, k in enumerate(VALUES)
    }
    return columns | {f"x{j}": rng.normal(size=n) for j in range(2)}


def scores_of(law, n, rng):
    """Probabilities of the event, or of three classes."""
    if law in ("confidence", "classwise"):
        return rng.dirichlet([1, 1, 1], n)
    if "rare" in law:
        return rng.beta(1.0, 30.0, n)
    p = rng.beta(1.2, 1.6, n)
    return np.clip(np.ceil(10 * p), 1, 10) / 10 - 0.05 if "deciles" in law else p


def labels_of(p, rng):
    if p.ndim == 1:
        return (rng.random(len(p)) < p).astype(int)
    return (rng.random(len(p))[:, None] > p.cumsum(axis=1)).sum(axis=1)


def level_of(law, n, seed):
    """(exact p-value, p-value of the largest as if it were alone, its sigma) where all is right."""
    rng = np.random.default_rng(seed)
    p, table = scores_of(law, n, rng), table_of(n, rng)
    options = {"depth": 2, "n_resamples": RESAMPLES, "random_state": int(seed[-1])}
    if law == "weighted":
        options["sample_weight"] = rng.exponential(size=n) + 0.1
    if law == "classwise":
        options["multiclass"] = law
    if law == SUMMARIES:
        return of_summaries(p, table, options, rng)
    found = group_calibration(labels_of(p, rng), p, table, **options)
    alone = min(row.p_value for row in found.rows)
    return found.p_value, alone, found.sigma, len(found.rows)


def of_summaries(p, table, options, rng):
    """`level_of` from a summary for each combination of three columns."""
    by = ["c0", "c1", "c2"]
    rows = {"p": p, "y": labels_of(p, rng), "w": rng.exponential(size=len(p)) + 0.1}
    groups = summarize(rows | table, label="y", prob="p", weight="w", by=by)
    found = group_calibration(groups, groups=by, **options)
    alone = min(row.p_value for row in found.rows)
    return found.p_value, alone, found.sigma, len(found.rows)


def truth_of(law, p, table):
    """True probabilities: by group too high, too low or too certain, in a way of each column."""
    if law == "calibrated":
        return p
    shift = 0.5 * (table["c1"] == "v0") - 0.4 * (table["c3"] == "v1")
    slope = np.where(table["c2"] == "v2", 0.6, np.where(table["x0"] > 0.5, 1.3, 1.0))
    middle = logit(0.03) if "rare" in law else 0.0
    return expit(middle + slope * (logit(p) - middle) + shift)


def right_values(q, z):
    """What a group would show with infinitely many labels: shift and slope of the log-odds."""
    shift = line = None
    for columns in (np.ones((len(z), 1)), np.column_stack([np.ones_like(z), z])):
        coef = np.zeros(columns.shape[1])
        offset = z if columns.shape[1] == 1 else 0.0
        if columns.shape[1] == 2:
            coef[:] = shift, 1.0
        for _ in range(12):
            fitted = expit(columns @ coef + offset)
            information = columns.T @ (columns * (fitted * (1 - fitted))[:, None])
            coef = coef + np.linalg.solve(information, columns.T @ (q - fitted))
        shift, line = (coef[0], line) if columns.shape[1] == 1 else (shift, coef)
    return shift, line[1]


def covered(law, n, seed):
    """Whether the intervals of all groups hold at once: O/E, in the large (also as estimate +-)."""
    rng = np.random.default_rng(seed)
    p, table = scores_of(law, n, rng), table_of(n, rng)
    truth = truth_of(law, p, table)
    y = labels_of(truth, rng)
    found = group_calibration(
        y, p, table, n_resamples=RESAMPLES, random_state=int(seed[-1])
    )
    held = np.ones(4, dtype=bool)
    z = logit(p)
    # so large that its interval is nearly estimate +- c standard errors
    whole = found.rows[0]
    half = (
        (whole.in_the_large_high - whole.in_the_large_low)
        / 2
        / whole.in_the_large_error
    )
    for row, members in zip(found.rows, found.members, strict=True):
        q = truth[members]
        shift, slope = right_values(q, z[members])
        ratio = q.sum() / p[members].sum()
        held[0] &= row.ratio_low <= ratio <= row.ratio_high
        held[1] &= row.in_the_large_low <= shift <= row.in_the_large_high
        held[2] &= abs(row.in_the_large - shift) <= half * row.in_the_large_error
        held[3] &= row.slope_low <= slope <= row.slope_high
    return [bool(one) for one in held]


def mcgrad_pvalue(law, n, seed):
    """MCGrad's p-value of the same rows and columns, with its defaults."""
    from mcgrad.metrics import MulticalibrationError

    rng = np.random.default_rng(seed)
    p, table = scores_of(law, n, rng), table_of(n, rng)
    frame = pd.DataFrame(table | {"p": p, "y": labels_of(p, rng)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = MulticalibrationError(
            frame,
            "y",
            "p",
            categorical_segment_columns=[name for name in table if name[0] == "c"],
            numerical_segment_columns=[name for name in table if name[0] == "x"],
        )
        return (
            float(found.mce_pvalue),
            float(found.mce_sigma),
            int(found.total_number_segments),
        )


def work(kind, law, n, part):
    """The sets of one part, as lists of numbers."""
    of_one = {"level": level_of, "coverage": covered, "mcgrad": mcgrad_pvalue}[kind]
    number = SETS[kind] // PARTS
    laws = [*NULLS, SUMMARIES]
    key = (
        laws.index(law)
        if law in laws
        else 10 + [name for name, _ in COVERED].index(law)
    )
    return [
        list(of_one(law, n, [key, n, seed]))
        for seed in range(part * number, (part + 1) * number)
    ]


def shares(kind, law, n, found):
    """Rows of the table."""
    found = np.array(found, dtype=float)
    row = {"law": law, "n": n, "sets": len(found)}
    if kind == "coverage":
        names = (
            "O/E",
            "in the large",
            "in the large, estimate +- c se (not used)",
            "slope",
        )
        for name, held in zip(names, found.T, strict=True):
            what = f"intervals of all groups hold: {name}"
            yield row | {"what": what, "covered": f"{held.mean():.3f}"}
        return
    row["groups"] = int(np.median(found[:, -1]))
    if kind == "mcgrad":
        said = {"mce_pvalue of MCGrad": found[:, 0]}
    else:
        said = {
            "group_calibration": found[:, 0],
            "smallest p of all groups": found[:, 1],
        }
    for name, p in said.items():
        rejected = {
            f"at_{level}": f"{np.mean(p <= level + 1e-12):.3f}" for level in LEVELS
        }
        yield row | {"what": f"rejects calibrated predictions: {name}"} | rejected


def timed():
    """Processor time of some 400 groups x 16,000 rows x 999 draws."""
    rng = np.random.default_rng(0)
    n, table = 16_000, {}
    for j, k in enumerate((2, 5, 5, 3, 6, 3)):
        table[f"c{j}"] = rng.choice(k, n, p=rng.dirichlet([20] * k))
    table |= {f"x{j}": rng.normal(size=n) for j in range(2)}
    p = rng.beta(1, 3, n)
    y = labels_of(p, rng)
    groups = len(group_calibration(y, p, table, depth=2).rows)
    spent = runner.cpu_seconds(lambda: group_calibration(y, p, table, depth=2))
    row = {"what": "999 draws", "law": "continuous", "n": n, "groups": groups}
    return row | {"cpu_s": f"{spent:.2f}"}


def streamed():
    """Processor time of a million rows with 100,000 values of a column: reading, and the audit."""
    rng = np.random.default_rng(0)
    n = 1_000_000
    p, user = (
        rng.beta(1, 3, n),
        np.char.add("u", rng.integers(0, 100_000, n).astype(str)),
    )
    rows = {
        "p": p,
        "y": labels_of(p, rng),
        "user": user,
        "hour": rng.integers(0, 24, n),
    }
    by = ["user", "hour"]
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/rows.parquet"
        pd.DataFrame(rows).to_parquet(path)
        plan = {
            "label": "y",
            "prob": ("p",),
            "weight": None,
            "classes": None,
            "pos_label": None,
        }
        partitions = []

        def read():
            partitions.clear()
            values = count_values(path, by)
            for name, column in values.items():
                partitions.append(partition_values(name, *column.table(), depth=2))
                column.assign_values_to_groups(
                    partitions[-1].codes, len(partitions[-1].names)
                )
            return summarize_groups(path, [*values.values()], **plan)

        found = read()
        reading = runner.cpu_seconds(read)
    partitions = [
        one._replace(codes=codes)
        for one, codes in zip(partitions, found.groups, strict=True)
    ]
    given = found.pairs, partitions, found.row_counts, found.summary
    groups = len(audit_pair_sums(*given, depth=2).rows)
    spent = runner.cpu_seconds(lambda: audit_pair_sums(*given, depth=2))
    row = {
        "law": "100,000 values of a column and 24 of another",
        "n": n,
        "groups": groups,
    }
    yield row | {"what": "reading parquet", "cpu_s": f"{reading:.2f}"}
    yield row | {"what": "999 draws, after reading", "cpu_s": f"{spent:.2f}"}


def main():
    jobs = JOBS
    if importlib.util.find_spec("mcgrad") is None:
        print("skipped mcgrad: not installed")
        jobs = [job for job in JOBS if job[0] != "mcgrad"]
    found = {}
    for job in jobs:
        sets = runner.rounds(HERE / "rounds.partial.jsonl", [job], work, processes=1)
        found.setdefault(job[:3], []).extend(sets)
    rows = [row for job, sets in found.items() for row in shares(*job, sets)]
    rows += [timed(), *streamed()]
    levels = [f"at_{level}" for level in LEVELS]
    columns = ["what", "law", "n", "groups", "sets", *levels, "covered", "cpu_s"]
    runner.write(HERE / "results.csv", rows, columns)
    for row in rows:
        print(row)


if __name__ == "__main__":
    main()
