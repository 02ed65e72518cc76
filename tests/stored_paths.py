"""Calls of `stored_numbers` that take other paths: blocks, drawn rows, exports, wide tables."""

import functools
import inspect
import re
import tempfile
import warnings
import zlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import test_functions
import test_methods
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GroupKFold, KFold
from sklearn.neural_network import MLPClassifier
from stored_calls import OTHER, TABLE, THREE, TWO, WEIGHT, P, X, Y, adapted, numbers_in

from sklearn_calib import (
    CalibratedModel,
    decisions,
    decomposition,
    groups,
    inference,
    linear,
    summary,
)
from sklearn_calib._cli._drawn import compare_losses, compute_clustered_difference
from sklearn_calib.displays import DecompositionDisplay
from sklearn_calib.export import from_dict, to_code, to_dict, to_sql
from sklearn_calib.metrics import LogLoss, validate_predictions
from sklearn_calib.monitoring import CalibrationMonitor
from sklearn_calib.recalibrators import (
    PriorShift,
    RestrictedPolynomialRegression,
    TemperatureScaling,
    VectorScaling,
    all_recalibrators,
)
from sklearn_calib.report import calibration_report, multilabel_report
from sklearn_calib.staged import find_staging
from sklearn_calib.summary import CalibrationSummary, summarize

N = test_functions.N
LR = LogisticRegression(tol=1e-10, max_iter=1000)


# --- recalibrators ------------------------------------------------------------------------------


def calls_of_blocks():
    for make in (TemperatureScaling, VectorScaling):
        for kind, k in (("logits", 2), ("logits", 3), ("proba", 3)):
            yield (
                make.__name__,
                f"blocks of {kind}, {k} classes",
                lambda m=make, kind=kind, k=k: fitted_in_blocks(m, kind, k),
            )
    for title, more in {
        "start": {"start": 3.0},
        "functions": {"loaded": True},
        "classes": {"classes": [0, 1, 2, 3], "columns": 4},
    }.items():
        yield (
            "TemperatureScaling",
            f"blocks, {title}",
            lambda more=more: fitted_in_blocks(TemperatureScaling, "logits", 3, **more),
        )


def fitted_in_blocks(make, kind, k, loaded=False, columns=None, **more):
    """Blocks of unequal size, the last of one row."""
    data = TWO if k == 2 else THREE
    scores = data["first"] if kind == "proba" else np.log(data["first"] + 0.01)
    if columns is not None:
        scores = np.column_stack([scores, np.full(N, -3.0)])
    cuts = [slice(0, 7), slice(7, 60), slice(60, N - 1), slice(N - 1, N)]
    blocks = [(scores[rows], data["y"][rows], WEIGHT[rows] + 0.01) for rows in cuts]
    if loaded:
        blocks = [functools.partial(tuple, block) for block in blocks]
    model = make().fit_blocks(blocks, kind=kind, **more)
    return model, model.predict_proba(np.full((2, scores.shape[1]), 1 / len(scores.T)))


CONSTRAINTS = {
    "a value": [("value", 0.4, ">=", 0.55)],
    "a slope": [("slope", 0.4, ">=", 1.5)],
    "both ends": [("value", 0.0, "==", 0.0), ("value", 1.0, "==", 1.0)],
    "two slopes": [("slope", 0.2, "<=", 0.4), ("value", 0.7, "<=", 0.5)],
}


def calls_of_options():
    for cls in test_methods.CLASSES:
        for half in (0, 1):
            yield (
                cls.__name__,
                f"scores on one side, {half}",
                lambda cls=cls, half=half: one_side(cls, half),
            )
    for title, constraints in CONSTRAINTS.items():
        yield (
            "RestrictedPolynomialRegression",
            f"constraints, {title}",
            lambda c=constraints: constrained(c),
        )
    shifts = {
        "mean": {"mean": 0.3},
        "mean of labels": {"mean": {0: 0.2, 1: 0.8}},
        "prior": {"prior": [0.3, 0.7]},
        "training prior": {"prior": [0.3, 0.7], "training_prior": {1: 0.4, 0: 0.6}},
        "resampling": {"prior": "undo_resampling", "training_prior": [0.5, 0.5]},
        "resampling and strength": {
            "prior": "undo_resampling",
            "training_prior": 0.8,
            "strength": 0.5,
        },
    }
    for title, how in shifts.items():
        yield "PriorShift", f"adapt, {title}", lambda how=how: shifted(how, 2)
    for title, how in {
        "mean": {"mean": [0.2, 0.5, 0.3]},
        "prior": {"prior": [0.2, 0.5, 0.3], "training_prior": [0.4, 0.4, 0.2]},
    }.items():
        yield "PriorShift", f"adapt to 3, {title}", lambda how=how: shifted(how, 3)
    for weight in ("balanced", {1: 9.0}, {0: 0.2, 1: 1.5}):
        yield (
            "PriorShift",
            f"from_class_weight {weight}",
            lambda w=weight: weighted_shift(w),
        )


def one_side(cls, half):
    """Scores below or above one half alone."""
    proba, y = test_methods.rows(2)
    score = 0.5 * (proba[:, 1] + half) * 0.98 + 0.01
    model = test_methods.build(cls)
    given = {}
    if "groups" in inspect.signature(model.predict_proba).parameters:
        given = {"groups": test_methods.GROUPS}
    model.fit(score, y, **given)
    return model, model.predict_proba(score, **given)


def constrained(constraints):
    model = RestrictedPolynomialRegression(3, constraints=constraints)
    model.fit(P, Y, sample_weight=WEIGHT + 0.01)
    return model, model.predict_proba(np.linspace(0.0, 1.0, 9))


def shifted(how, k):
    data = TWO if k == 2 else THREE
    model = PriorShift(**how).fit(data["first"], data["y"], sample_weight=WEIGHT)
    try:
        return model, model.predict_proba(data["second"])
    except ValueError:
        return adapted(how.pop("prior"), k, how)


def weighted_shift(weight):
    y = np.repeat([0, 1], [60, 20])
    found = PriorShift.from_class_weight(weight, y)
    return found, found.predict_proba(P)


# --- exports ------------------------------------------------------------------------------------


def text_of(text):
    """The numbers of a text of code, and a checksum of the rest.

    The checksums in the text change with the last digit of a number.
    """
    text = re.sub(r'"(map_)?sha256": "[0-9a-f]{64}"', "", text)
    rest = re.sub(r"\d+\.?\d*(e-?\d+)?", "#", text)
    return np.append(numbers_in(text), 0.5), f"{zlib.crc32(rest.encode()):08x}"


def calls_of_texts():
    proba, y = test_methods.rows(2)
    for cls in sorted(all_recalibrators().values(), key=lambda cls: cls.__name__):
        if not cls.capabilities.export_error:
            yield (
                "to_sql and to_code",
                cls.__name__,
                lambda c=cls: texts_of(test_methods.build(c).fit(proba, y)),
            )
    three, labels = test_methods.rows(3)
    for cls in (TemperatureScaling, VectorScaling, all_recalibrators()["isotonic"]):
        yield (
            "to_sql and to_code",
            f"{cls.__name__}, 3 classes",
            lambda c=cls: texts_of(
                test_methods.build(c).fit(three, labels), list("abc")
            ),
        )
    settings = {
        **{
            name: {"dialect": name}
            for name in ("postgres", "sqlite", "duckdb", "mysql", "bigquery", "tsql")
        },
        "table": {"into": "table"},
        "bands": {"bands": {"A": 0, "B": 0.2, "C": 0.5}},
        "numbered bands": {"bands": [0.2, 0.5], "dialect": "spark"},
        "logits": {"input": "logits"},
        "a query": {"columns": ["p"], "source": ("m", "s"), "keep": ["id"]},
        "named": {"into": None, "dialect": "snowflake"},
    }
    for title, how in settings.items():
        searched = ("isotonic", "histogram_binning")
        for name in searched if title == "table" else ("beta", *searched):
            yield (
                "to_sql and to_code",
                f"{name}, {title}",
                lambda n=name, h=how: sql_of(n, **h),
            )


def texts_of(model, columns="p"):
    document = to_dict(model, tabulate=1e-2)
    written = [to_sql(document, columns, dialect="postgres")]
    written += [to_code(document, one) for one in ("c", "javascript", "python")]
    return [text_of(text) for text in written]


def sql_of(name, columns="p", **how):
    proba, y = test_methods.rows(2)
    model = test_methods.build(all_recalibrators()[name]).fit(proba, y)
    return text_of(to_sql(model, columns, **how))


# --- wide tables, stages, models with groups ----------------------------------------------------


def calls_of_wide_tables():
    """More features than rows, so that the sums are of rows instead of features."""
    wide = np.cos(np.outer(np.arange(N), 1 + np.arange(2 * N)) * 0.37)
    for name, model in {
        "logistic": LogisticRegression(C=0.05, tol=1e-10, max_iter=5000),
        "ridge": RidgeClassifier(alpha=7.0),
    }.items():
        for weight in (None, WEIGHT / 30 + 0.05):
            words = "without" if weight is None else "with"
            yield (
                "approximate_leave_one_out",
                f"wide, {name}, {words} weights",
                lambda m=model, w=weight: linear.approximate_leave_one_out(
                    m.fit(wide, Y, sample_weight=w), wide, Y, sample_weight=w
                ),
            )
        yield (
            "estimate_angle",
            f"wide, {name}",
            lambda m=model: linear.estimate_angle(m.fit(wide, Y), wide, Y),
        )
    heavy = np.random.default_rng(0).normal(size=(N, 20))
    heavy *= 1 + np.arange(N)[:, None] % 9 // 8  # one row in nine is twice as large
    yield (
        "estimate_angle",
        "rows of unequal size",
        lambda: linear.estimate_angle(LR.fit(heavy, Y), heavy, Y),
    )
    yield (
        "logistic_intervals",
        "one dimension",
        lambda: linear.logistic_intervals(LR.fit(X, Y), X, X[0]),
    )
    for title, model in {
        "sgd": SGDClassifier("log_loss", alpha=0.05, max_iter=4, tol=None),
        "mlp": MLPClassifier(3, max_iter=3, solver="sgd", alpha=0.1),
    }.items():
        yield "staging", f"partial fits of {title}", lambda m=model: staged(m)
    for cv in (3, GroupKFold(4)):
        yield (
            "CalibratedModel",
            f"groups of rows, {cv}",
            lambda cv=cv: grouped_model(cv),
        )
    for how in ({"max_risk": 0.3}, {"coverage": 0.6}):
        yield (
            "SelectiveClassifier",
            f"groups, {how}",
            lambda how=how: selected(how),
        )


def staged(model):
    model.set_params(random_state=0)
    found = find_staging(model)
    fitted = found.fit(model, X, Y, sample_weight=WEIGHT + 0.1)
    fitted = model if fitted is None else fitted
    return [scores for _, scores in found.staged_scores(fitted, X[:9])]


def grouped_model(cv):
    # other calls fit the same object, and a fitted model would be warned of
    model = CalibratedModel(clone(LR), "platt", cv=cv)
    if cv != 3:
        cv = [*cv.split(X, Y, np.arange(N) // 5)]
        model.set_params(cv=cv)
    return model.fit(X, Y, sample_weight=WEIGHT + 0.1).predict_proba(X)


def selected(how):
    frozen = FrozenEstimator(LR.fit(X, Y))
    model = decisions.SelectiveClassifier(frozen, **how)
    group = np.arange(N) % 3 // 2
    model.fit(X, Y, sample_weight=WEIGHT + 0.1, groups=group)
    return model, model.predict(X, groups=group)


# --- validation, means, grades ------------------------------------------------------------------


def calls_of_validation():
    for title, how in {
        "weights": {"sample_weight": WEIGHT + 0.01},
        "groups": {"groups": np.arange(N) % 20},
        "measures": {"measures": ["AUC", "Brier", "calibration_error"], "level": 0.8},
        "positive class": {"pos_label": 0, "method": ".632+"},
    }.items():
        yield (
            "internal_validation",
            title,
            lambda how=how: validated(Y, **how),
        )
    yield "internal_validation", "3 classes", lambda: validated(THREE["y"])
    yield (
        "grade_calibration",
        "grades of rows",
        lambda: groups.grade_calibration(
            np.repeat(Y, 9), np.repeat(P, 9), groups.Grades([0.3, 0.5], list("ABC"))
        ),
    )
    many = {f"c{i}": np.arange(N) % (i + 2) for i in range(5)}
    yield (
        "group_calibration",
        "of many columns",
        lambda: groups.group_calibration(
            Y, P, many, n_resamples=29, min_rows=5, depth=2, sample_weight=WEIGHT + 0.01
        ),
    )
    yield (
        "group_calibration",
        "a table, 3 classes",
        lambda: groups.group_calibration(
            THREE["y"], THREE["first"], {"a": TABLE["a"]}, n_resamples=29, min_rows=5
        ),
    )


def validated(y, **how):
    found = inference.internal_validation(
        LogisticRegression(C=3, max_iter=300), X, y, n_resamples=5, **how
    )
    return found, found.shrinkage if hasattr(found, "shrinkage") else 0


# --- summaries and monitors ---------------------------------------------------------------------


def calls_of_streams():
    for how in (
        {},
        {"alarm": "test"},
        {"groups": [0, 1]},
        {"alarm": "test", "groups": [0, 1]},
    ):
        yield "CalibrationMonitor", f"merged, {how}", lambda h=how: merged_monitor(h)
    settings = {
        "drawn": {},
        "two columns": {"prob": ["q", "p"]},
        "shares": {"label": "s1", "soft_labels": True},
        "counts": {"counts": "n"},
        "weights": {"weight": "w"},
        "missing labels": {"drop_missing": True, "label": "h"},
    }
    for title, how in settings.items():
        for kind in ("frame", "parquet", "csv"):
            yield "summarize", f"{title}, {kind}", lambda h=how, k=kind: summed(h, k)
    for title, ask in STORED_SUMMARY.items():
        yield "CalibrationSummary stored", title, ask


def merged_monitor(how):
    """Two servers, the second with other labels, and rows after they are merged."""
    parts = [CalibrationMonitor(classes=[0, 1], **how) for _ in range(2)]
    for turn, part in enumerate(parts):
        more = {"groups": TWO["groups"]} if "groups" in how else {}
        time = [f"2024-01-{turn + 1:02d}"] * N
        part.update((Y + turn) % 2, P, time=time, **more)
    first = parts[0].merge(parts[1])
    first.update(1 - Y, P, **more)
    return first, first.alarms_, first.history_


def table_of_rows():
    table = pd.DataFrame({"y": Y, "p": P, "q": 1 - P, "w": WEIGHT + 0.25})
    table["s1"] = 0.5 * OTHER + 0.5 * Y
    table["n"] = 1 + np.arange(N) % 3
    table["h"] = np.where(np.arange(N) % 7 == 2, np.nan, Y)
    return table


def summed(how, kind):
    how = {"label": "y", "prob": "p"} | how
    table = table_of_rows()
    with tempfile.TemporaryDirectory() as folder:
        data = table
        if kind != "frame":
            data = Path(folder) / f"t.{kind}"
            write = table.to_parquet if kind == "parquet" else table.to_csv
            write(data, index=False)
        with warnings.catch_warnings():  # which name the folder
            warnings.simplefilter("ignore")
            found = summarize(data, **how)
    shares = how.get("soft_labels", False)
    cv = [] if shares else found.cross_validate(["platt"], cv=3)
    return found.totals, found.measure("log_loss"), cv


def small_summary(k=2):
    data = TWO if k == 2 else THREE
    made = CalibrationSummary(classes=range(k))
    return made.update(data["y"], data["first"], WEIGHT)


def read_again(k):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.parquet"
        small_summary(k).to_parquet(path)
        found = CalibrationSummary.from_parquet(path)
    return found.totals, found.measure("brier_loss"), found.test(n_resamples=9)


def soft_rows(k):
    data = TWO if k == 2 else THREE
    shares = 0.5 * data["second"] + 0.5 * np.eye(k)[data["y"]]
    shares = shares[:, 1] if k == 2 else shares
    found = CalibrationSummary(classes=range(k))
    found.update(shares, data["first"], WEIGHT, soft_labels=True)
    return found.totals, found.measure("log_loss")


def coarse_summary():
    scores = np.linspace(0.001, 0.999, 100 * N)
    made = CalibrationSummary(classes=[0, 1]).update(np.tile(Y, 100), scores)
    found = made.coarsen(4096)
    return found.totals, found.n_cells, found.measure("expected_calibration_error")


STORED_SUMMARY = {
    **{f"parquet, {k} classes": functools.partial(read_again, k) for k in (2, 3)},
    **{f"shares, {k} classes": functools.partial(soft_rows, k) for k in (2, 3)},
    "coarsened": lambda: coarse_summary(),
    "sum": lambda: (small_summary() + small_summary()).totals,
    "classes": lambda: summary.find_distinct_labels(table_of_rows(), label="y"),
    "map": lambda: from_dict(to_dict(small_summary().fit("isotonic"))).predict_proba(P),
}


# --- parts of commands that are used for many rows ------------------------------------------------


def calls_of_parts():
    group = np.arange(N) % 13
    moved = LogLoss().compute_row_losses(
        TWO["second"], Y
    ) - LogLoss().compute_row_losses(TWO["first"], Y)
    for level in (0.8, 0.95):
        yield (
            "parts",
            f"by_group, level {level}",
            lambda level=level: compute_clustered_difference(
                inference.paired_difference(Y, P, OTHER, "log_loss", level=level),
                moved,
                WEIGHT,
                group,
            ),
        )
    for groups_of_rows in (None, group):
        for drawn in (True, False):
            yield (
                "parts",
                f"compare_losses, {groups_of_rows is None}, {drawn}",
                lambda g=groups_of_rows, drawn=drawn: drawn_difference(g, drawn),
            )


def drawn_difference(group, drawn):
    """Of rows of which every second one is drawn, from strata with shares of their own."""
    rows = np.arange(0, N, 2)
    sample = {"predictions": validate_predictions(Y, P)}
    if drawn:
        sample |= {"stratum": np.arange(N) % 3, "share": 0.3 + np.arange(N) % 3 / 10}
    weight = WEIGHT[rows] + 0.1
    given = {"sample_indices": rows, "squares": weight**2}
    given["predictions"] = validate_predictions(Y[rows], OTHER[rows], weight)
    return compare_losses(
        SimpleNamespace(**sample), SimpleNamespace(**given), 0.5, 0.9, group
    )


def calls_of_rare_cases():
    """Rows, folds and models that few calls have."""
    centred = X - X.mean(axis=0)
    plain = LogisticRegression(fit_intercept=False, tol=1e-10, max_iter=1000)
    yield (
        "estimate_angle",
        "centred features",
        lambda: linear.estimate_angle(
            clone(plain).fit(centred, Y), centred, Y, assume_centered=True
        ),
    )
    yield (
        "decompose_loss",
        "folds that leave rows out",
        lambda: decomposition.decompose_loss(Y, P, cv=[*KFold(3).split(P)][:2]),
    )
    yield (
        "staging",
        "partial fits of balanced classes",
        lambda: staged(
            SGDClassifier(
                "log_loss",
                alpha=0.05,
                max_iter=4,
                tol=None,
                class_weight="balanced",
            )
        ),
    )
    many = {"id": 1_000_000 + np.arange(N), "x": np.arange(N) / 7}
    yield (
        "find_groups",
        "whole and other numbers",
        lambda: words_and_numbers(groups.find_groups(many, N, min_rows=5).names),
    )
    made = small_summary()
    for seed in (0, 1):
        yield (
            "CalibrationSummary stored",
            f"reliability_curve with seed {seed}",
            lambda seed=seed: [*made.reliability_curve(n_bins=5, random_state=seed)],
        )
    for title, more in {
        "grouping": {"features": TABLE},
        "grouping, weights": {"features": TABLE, "sample_weight": WEIGHT + 0.01},
    }.items():
        yield (
            "DecompositionDisplay",
            title,
            lambda more=more: drawn_parts(**more),
        )
    rows = np.random.default_rng(0).beta(1.2, 1.7, 9000)
    labels = (np.random.default_rng(1).random(9000) < rows**1.1).astype(int)
    yield (
        "BBQ",
        "many rows",
        lambda: all_recalibrators()["bbq"]().fit(rows, labels).predict_proba(P),
    )


def calls_of_long_names():
    """Names of sixty letters, which tables and pages cut off."""
    long = {letter: 60 * letter for letter in "abcdefgh"}
    group = np.array([long[letter] for letter in "abcd"])[np.arange(N) % 4]
    asked = {
        "Grades": lambda: groups.Grades([0.3, 0.6], [long[x] for x in "abc"]),
        "grade_calibration": lambda: groups.grade_calibration(
            Y, P, groups.Grades([0.3, 0.6], [long[x] for x in "abc"]), n_resamples=9
        ),
        "group_calibration": lambda: groups.group_calibration(
            Y, P, {long["g"]: group}, n_resamples=9, min_rows=5
        ),
        "calibration_report": lambda: calibration_report(
            Y, {long["a"]: P, long["b"]: OTHER}, n_resamples=5
        ),
        "report of groups": lambda: calibration_report(
            Y, P, by={long["g"]: group}, n_resamples=5
        ),
        "report of features": lambda: calibration_report(
            Y, P, features={long["f"]: TABLE["a"]}, n_resamples=5
        ),
        "report of classes": lambda: calibration_report(
            np.array([long[x] for x in "abc"])[THREE["y"]],
            THREE["first"],
            n_resamples=5,
        ),
        "multilabel_report": lambda: multilabel_report(
            np.column_stack([Y, 1 - Y]),
            np.column_stack([P, OTHER]),
            labels=[long["a"], long["b"]],
            n_resamples=5,
        ),
        "SelectiveClassifier": lambda: decisions.SelectiveClassifier(
            FrozenEstimator(clone(LR).fit(X, Y)), max_risk=0.01
        ).fit(X, Y, groups=group),
    }
    for title, ask in asked.items():
        yield "long names", title, ask


def words_and_numbers(texts):
    text = "; ".join(texts)
    return text, numbers_in(text)


def drawn_parts(**more):
    from stored_numbers import drawn_by

    parts = decomposition.decompose_loss(Y, P, **more)
    return drawn_by(DecompositionDisplay({"a": parts}).plot())


PATHS = (
    calls_of_rare_cases,
    calls_of_long_names,
    calls_of_parts,
    calls_of_blocks,
    calls_of_options,
    calls_of_texts,
    calls_of_wide_tables,
    calls_of_validation,
    calls_of_streams,
)
