"""Operations that follow one another: twice, in a pipeline, merged, saved, read and fitted again.

What a second step does may not depend on how the first one was reached.
"""

import copy
import functools
import json
import os
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from cases import run_every_case
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from stored_numbers import parse_error_fields
from test_functions import FUNCTIONS, SLOW, call, rows as rows_of
from words import QUICKER, same

from sklearn_calib import CalibratedModel, RefineThenCalibrateCV, decisions, groups
from sklearn_calib._cli import main
from sklearn_calib.classifiers import AngularCalibratedClassifier
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.export import (
    ExportedMap,
    from_dict,
    from_json,
    simplify,
    to_dict,
    to_json,
)
from sklearn_calib.monitoring import CalibrationMonitor
from sklearn_calib.recalibrators import (
    AngularCalibration,
    HistogramBinning,
    IsotonicCalibration,
    MultilabelCalibration,
    PlattScaling,
    PriorShift,
    SplineCalibration,
    TemperatureScaling,
    VennAbers,
    all_recalibrators,
    cross_fitted_proba,
)
from sklearn_calib.staged import find_staging
from sklearn_calib.summary import CalibrationSummary, summarize
from sklearn_calib.summary._pattern_cells import ScoreGroupTable

N = 120
rng = np.random.default_rng(3)
P = np.round(rng.beta(1.3, 1.6, N), 3).clip(0.01, 0.99)
Y = (rng.random(N) < P**1.4).astype(int)
OTHER = np.round(rng.beta(2, 1.2, N), 3).clip(0.01, 0.99)
OTHER_Y = (rng.random(N) < np.sqrt(OTHER)).astype(int)
QUERY = np.linspace(0.003, 0.997, 61)
MAPS = sorted(all_recalibrators().values(), key=lambda cls: cls.__name__)
SLOW_MAPS = (
    "AdaptiveCalibration",
    "OnlineCalibration",
    "TrendFiltering",
    "TrendFilteringEnsemble",
)
BOUND = 1e-4


def each(classes):
    """Parameters of a test: what takes long to fit or to read is slow."""
    for cls in classes:
        marks = pytest.mark.slow if cls.__name__ in SLOW_MAPS else ()
        yield pytest.param(cls, id=cls.__name__, marks=marks)


def quiet(function):
    """Run it without warnings of few rows."""

    @functools.wraps(function)
    def inner(*args, **more):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrationWarning)
            return function(*args, **more)

    return inner


def build(cls):
    return cls(**QUICKER.get(cls.__name__, {}))


@functools.cache
@quiet
def fitted(cls):
    return build(cls).fit(P, Y)


def second(model, at=QUERY):
    return np.asarray(model.predict_proba(at))[:, 1]


def close(title, found, expected, bound=1e-12):
    worst = np.abs(np.asarray(found) - expected).max()
    assert worst <= bound, (
        f"{title}: expected a difference of at most {bound}, got {worst}"
    )


def by_name(cls):
    return cls.__name__


# --- recalibrators: fitted again ----------------------------------------------------------------

KEEPS_STATE = {"OnlineCalibration": "none", "TemperatureScaling": "warm_start is off"}


@run_every_case("cls", each(MAPS))
@quiet
def test_a_second_fit_forgets_the_first(cls):
    """Also of other classes, by set_params, and of a clone of what was fitted."""
    fresh = build(cls).fit(OTHER, OTHER_Y)
    model = copy.deepcopy(fitted(cls))
    model.predict_proba(QUERY)
    assert model.fit(OTHER, OTHER_Y) is model
    close(f"{cls.__name__} fitted twice", second(model), second(fresh))
    same_names = vars(model).keys() == vars(fresh).keys()
    differing = vars(model).keys() ^ vars(fresh).keys()
    assert same_names or differing <= {"_derived"}, f"{cls.__name__}: {differing}"
    unfitted = clone(fitted(cls))
    assert not [name for name in vars(unfitted) if name.endswith("_")]
    close(
        f"clone of {cls.__name__}", second(unfitted.fit(OTHER, OTHER_Y)), second(fresh)
    )
    params = fitted(cls).get_params(deep=False)
    again = build(cls).set_params(**params).fit(OTHER, OTHER_Y)
    close(f"{cls.__name__}.set_params", second(again), second(fresh))


@run_every_case("cls", each(MAPS))
@quiet
def test_an_option_changed_after_a_fit_counts_at_the_next(cls):
    flags = {
        name: not value
        for name, value in build(cls).get_params(deep=False).items()
        if isinstance(value, bool) and name not in ("warm_start", "monotone", "split")
    }
    for name, value in flags.items():
        fresh = build(cls).set_params(**{name: value}).fit(P, Y)
        model = copy.deepcopy(fitted(cls)).set_params(**{name: value}).fit(P, Y)
        close(f"{cls.__name__}({name}={value})", second(model), second(fresh))


# --- export -------------------------------------------------------------------------------------


@functools.cache
def document(cls):
    try:
        return to_dict(fitted(cls)), 0.0
    except ValueError:
        return to_dict(fitted(cls), tabulate=BOUND), BOUND


EXPORTED = [cls for cls in MAPS if not cls.capabilities.export_error]


def without_dates(found):
    return {key: one for key, one in found.items() if key not in ("date", "created")}


@run_every_case("cls", each(EXPORTED))
def test_documents_are_fixed_points(cls):
    first, bound = document(cls)
    for read in (from_dict(first), from_json(to_json(from_dict(first)))):
        again = to_dict(read)
        assert without_dates(again) == without_dates(first), cls.__name__
        assert to_dict(from_dict(again)) == again
        close(cls.__name__, second(read), second(fitted(cls)), bound + 1e-12)
        restored = pickle.loads(pickle.dumps(read))
        close(f"pickle of {cls.__name__}", second(restored), second(read), 0)


@run_every_case("cls", each(EXPORTED))
def test_simplify_after_simplify_keeps_its_promise(cls):
    """The tolerances add up, those of a table too; the maps stay within them."""
    first, bound = document(cls)
    fine = np.linspace(1e-4, 1 - 1e-4, 997)
    exact = second(fitted(cls), fine)
    once = simplify(first, 1e-3)
    twice = simplify(once, 2e-3)
    thrice = simplify(to_dict(twice), 5e-4)
    for made, total in ((once, 1e-3), (twice, 3e-3), (thrice, 3.5e-3)):
        said = made.document["largest_error"]
        expected = {"simplify": pytest.approx(total)} | (
            {"tabulate": bound} if bound else {}
        )
        assert said == expected, f"{cls.__name__}: expected {expected}, got {said}"
        if made.document["map"]["node"] in ("steps", "piecewise_linear"):
            close(cls.__name__, second(made, fine), exact, total + bound + 1e-9)


CHAINS = [
    (AngularCalibration, TemperatureScaling),
    (TemperatureScaling, AngularCalibration),
    (PlattScaling, IsotonicCalibration),
    (SplineCalibration, HistogramBinning),
    (VennAbers, PlattScaling),
    (AngularCalibration, AngularCalibration),
    (HistogramBinning, AngularCalibration, PlattScaling),
]


@pytest.mark.parametrize(
    "steps", CHAINS, ids=lambda steps: "-".join(map(by_name, steps))
)
@quiet
def test_tables_in_a_pipeline(steps):
    chain = make_pipeline(*(step() for step in steps)).fit(P, Y)
    found = to_dict(chain, tabulate=BOUND)
    tabulated = AngularCalibration in steps
    expected = {"tabulate": BOUND} if tabulated else {}
    got = found.get("largest_error", {})
    assert got == expected, f"largest_error: expected {expected}, got {got}"
    # a step behind a table may be steep
    bound = 30 * BOUND if tabulated else 1e-12
    at = QUERY[np.abs(QUERY - 0.5) > 0.01]
    worst = np.sort(np.abs(second(from_dict(found), at) - second(chain, at)))
    assert worst[-3] <= bound, f"expected differences up to {bound}, got {worst[-3:]}"
    small = simplify(found, 1e-3)
    assert small.document["largest_error"] == {"simplify": 1e-3} | expected


@quiet
def test_a_map_of_a_map_is_exported():
    first = fitted(PlattScaling)
    chain = make_pipeline(FrozenEstimator(first), IsotonicCalibration())
    exported = from_dict(to_dict(first))
    again = ExportedMap(exported.document)
    close("a map of its document", second(again), second(first))
    model = IsotonicCalibration().fit(second(first, P), Y)
    close(
        "fitted to the results of a map",
        second(model, second(first)),
        second(IsotonicCalibration().fit(second(exported, P), Y), second(exported)),
    )
    assert chain is not None


# --- summaries ----------------------------------------------------------------------------------


def parts(n_parts=4):
    found = []
    for i in range(n_parts):
        y, p = Y[i::n_parts], P[i::n_parts]
        weight = np.full(len(y), 1.0 + i % 2)
        found.append(CalibrationSummary(classes=[0, 1]).update(y, p, weight))
    return found


def test_merging_what_was_merged():
    weight = 1.0 + np.arange(N) % 4 % 2
    whole = CalibrationSummary(classes=[0, 1]).update(Y, P, weight)
    one, two, three, four = parts()
    left = one.copy().merge(two).merge(three).merge(four)
    one, two, three, four = parts()
    tree = one.merge(two).merge(three.merge(four))
    added = sum(parts())
    for title, found in (("in turn", left), ("as a tree", tree), ("added", added)):
        assert found == whole, title
        same(found.totals, whole.totals, exact=False)
        assert found.n_samples == N and found.weight == weight.sum()
        value = found.measure("log_loss")
        assert value == pytest.approx(whole.measure("log_loss"), abs=1e-12)
    empty = CalibrationSummary(classes=[0, 1])
    assert whole.copy().merge(empty) == whole
    assert CalibrationSummary(classes=[0, 1]).merge(whole) == whole


def test_summaries_that_are_saved_read_and_updated(tmp_path):
    half = N // 2
    whole = CalibrationSummary(classes=[0, 1]).update(Y, P)
    kept = CalibrationSummary(classes=[0, 1]).update(Y[:half], P[:half])
    for turn in range(3):
        kept.to_parquet(tmp_path / f"{turn}.parquet")
        kept = CalibrationSummary.from_parquet(tmp_path / f"{turn}.parquet")
    assert kept.update(Y[half:], P[half:]) == whole
    many = np.random.default_rng(0).random(9000)
    whole.update((many < 0.3).astype(int), many)
    coarse = whole.coarsen(6000).coarsen(4096)
    assert coarse.n_samples == coarse.weight == N + 9000
    assert coarse.n_cells <= 4096 and not coarse.exact
    assert whole.n_cells > 9000 and whole.exact
    merged = coarse.copy().merge(coarse)
    assert merged.n_samples == merged.weight == 2 * (N + 9000)
    assert merged.measure("brier_loss") == pytest.approx(
        coarse.measure("brier_loss"), rel=1e-6
    )


# --- results -----------------------------------------------------------------------------------


@run_every_case("name", sorted(set(FUNCTIONS) - SLOW))
@quiet
def test_results_are_the_same_after_a_copy_and_a_pickle(name):
    found = call(FUNCTIONS[name], rows_of(2))
    expected = dict(parse_error_fields(found))
    for title, other in (
        ("a pickle", pickle.loads(pickle.dumps(found))),
        ("a copy", copy.deepcopy(found)),
    ):
        again = dict(parse_error_fields(other))
        assert again.keys() == expected.keys(), f"{name}: {title} has other fields"
        for field, value in expected.items():
            where = f"{title} of {name}, {field}"
            np.testing.assert_array_equal(again[field], value, err_msg=where)


@pytest.mark.parametrize("kind", ["exact", "coarse"])
def test_summaries_are_the_same_after_a_copy_a_pickle_and_a_table(kind):
    found = CalibrationSummary(classes=[0, 1]).update(Y, P, 1.0 + np.arange(N) % 4)
    if kind == "coarse":
        many = np.random.default_rng(1).random(5000)
        found = found.update(
            (many < 0.4).astype(int), many, np.full(5000, 0.5)
        ).coarsen(4096)
    expected = dict(
        parse_error_fields([found.totals, found.samples(), found.reliability_curve()])
    )
    for title, other in (
        ("a pickle", pickle.loads(pickle.dumps(found))),
        ("a copy", found.copy()),
        ("a table", CalibrationSummary.from_arrow(found.to_arrow())),
    ):
        other.merge(CalibrationSummary(classes=[0, 1]))
        assert other == found, f"{title} of a summary, {kind}"
        again = dict(
            parse_error_fields(
                [other.totals, other.samples(), other.reliability_curve()]
            )
        )
        for field, value in expected.items():
            where = f"{title} of a summary, {kind}, {field}"
            np.testing.assert_array_equal(again[field], value, err_msg=where)
        twice = (other.merge(other.copy()), found.copy().merge(found))
        assert twice[0] == twice[1], f"{title} of a summary, {kind}, merged"


# --- monitors -----------------------------------------------------------------------------------

MONITORS = [{}, {"alarm": "test"}, {"alarm": "detector"}]


@pytest.mark.parametrize("how", MONITORS[:2], ids=str)
@quiet
def test_monitors_that_are_saved_loaded_and_updated(how):
    """In any blocks, through any number of states, as of all rows at once."""
    drifted = (np.arange(N) % 5 > 0).astype(int)
    y, p = np.concatenate([Y, drifted]), np.concatenate([P, P])
    whole = CalibrationMonitor(**how).update(y, p)
    blocks = CalibrationMonitor(**how)
    for start in range(0, len(y), 37):
        rows = slice(start, start + 37)
        state = json.loads(json.dumps(blocks.state_dict()))
        blocks = CalibrationMonitor.from_state_dict(state)
        assert blocks.state_dict() == state, "a state read again is another"
        blocks.update(y[rows], p[rows])
        blocks = pickle.loads(pickle.dumps(blocks))
    found, expected = blocks, whole
    for name in (
        "log_e_value_",
        "p_value_",
        "log_detector_",
        "slope_",
        "shift_",
        "n_samples_",
    ):
        got, wanted = getattr(found, name), getattr(expected, name)
        assert got == pytest.approx(wanted, rel=1e-9), (
            f"{name}: expected {wanted}, got {got}"
        )
    assert [one.n_samples for one in found.alarms_] == [
        one.n_samples for one in expected.alarms_
    ]
    again = whole.reset().update(y, p)
    assert again.log_e_value_ == pytest.approx(blocks.log_e_value_, rel=1e-9)
    assert again.n_samples_ == len(y)


# --- models -------------------------------------------------------------------------------------

X, LABELS = make_classification(160, 5, random_state=0)
X_OTHER, LABELS_OTHER = make_classification(150, 5, random_state=1)
MODELS = [
    CalibratedModel(LogisticRegression(), "platt", cv=3),
    CalibratedModel(LogisticRegression(), "platt", cv=3, ensemble=False),
    AngularCalibratedClassifier(LogisticRegression()),
    decisions.CostSensitiveClassifier(LogisticRegression(), [[0, 1], [3, 0]]),
    decisions.SelectiveClassifier(LogisticRegression(), coverage=0.8),
    groups.MulticalibratedModel(
        LogisticRegression(), groups=[0], n_rounds=1, n_trees=3, cv=2
    ),
    RefineThenCalibrateCV(LogisticRegression(), {"C": [0.1]}, cv=2),
]


@run_every_case("model", MODELS, ids=repr)
@quiet
def test_models_that_are_fitted_again(model):
    """A refit is a fresh fit; a clone of what was fitted too; prediction changes nothing."""
    fresh = clone(model).fit(X_OTHER, LABELS_OTHER)
    twice = clone(model).fit(X, LABELS)
    twice.predict_proba(X)
    twice.fit(X_OTHER, LABELS_OTHER)
    copied = clone(clone(model).fit(X, LABELS)).fit(X_OTHER, LABELS_OTHER)
    assert twice.get_params().keys() == model.get_params().keys()
    for title, one in (("fitted twice", twice), ("a clone", copied)):
        close(title, second(one, X), second(fresh, X), 1e-10)
        assert vars(one).keys() == vars(fresh).keys(), title
    restored = pickle.loads(pickle.dumps(fresh))
    close("a pickle", second(restored, X), second(fresh, X), 0)


@quiet
def test_maps_of_many_labels_and_groups_that_are_fitted_again():
    proba, y = np.column_stack([P, OTHER]), np.column_stack([Y, OTHER_Y])
    for pooling in ("none", "all", "shrink"):
        fresh = MultilabelCalibration("platt", pooling=pooling).fit(proba[::-1], y)
        model = (
            MultilabelCalibration("platt", pooling=pooling)
            .fit(proba, y)
            .fit(proba[::-1], y)
        )
        found = np.asarray(model.predict_proba(proba))
        close(f"pooling={pooling!r}", found, np.asarray(fresh.predict_proba(proba)))
    segment = np.arange(N) % 3
    model = groups.GroupRecalibration("platt").fit(P, Y, groups=segment)
    model.fit(OTHER, OTHER_Y, groups=segment % 2)
    fresh = groups.GroupRecalibration("platt").fit(OTHER, OTHER_Y, groups=segment % 2)
    found = model.predict_proba(P, groups=segment % 2)
    close("GroupRecalibration", found, fresh.predict_proba(P, groups=segment % 2))
    assert model.groups_ == fresh.groups_


@quiet
def test_a_cross_fit_of_a_cross_fit():
    first = cross_fitted_proba("platt", P, Y, cv=3)
    again = cross_fitted_proba(fitted(PlattScaling), P, Y, cv=3)
    close("of a fitted map", again, first)


# --- commands over folders, several files and blocks --------------------------------------------

DAYS, TIMES = 4, 4
ROWS = TIMES * N


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """The same rows in one table, in partitions by day and shop, and as saved summaries."""
    monkeypatch.chdir(tmp_path)
    rows = np.arange(ROWS)
    day, shop = rows % DAYS, np.array(["n", "s"])[rows // DAYS % 2]
    label = np.where(np.tile(Y, TIMES) == 1, "yes", "no")
    frame = pd.DataFrame(
        {"p": np.tile(P, TIMES), "label": label, "day": day, "shop": shop}
    )
    frame.to_csv("whole.csv", index=False)
    for kind in ("parquet", "csv", "jsonl", "arrow"):
        for (one, other), part in frame.groupby(["day", "shop"]):
            place = tmp_path / kind / f"day={one}" / f"shop={other}"
            place.mkdir(parents=True)
            part = part[["p", "label"]]
            if kind == "csv":
                part.to_csv(place / "a.csv", index=False)
            elif kind == "jsonl":
                part.to_json(place / "a.jsonl", orient="records", lines=True)
            elif kind == "arrow":
                part.reset_index(drop=True).to_feather(place / "a.arrow")
            else:
                part.to_parquet(place / "a.parquet")
    return frame


COLUMNS = ["--label", "label", "--prob", "p", "--positive", "yes"]
AUDIT = ["--resamples", "2", "--no-advice", "--out", "none", "--json", "r.json"]


def audit(*arguments):
    code = main(["audit", *arguments, *AUDIT])
    assert code == 0, arguments
    with open("r.json", encoding="utf-8") as file:
        found = json.load(file)
    return found, found["models"][0]


WAYS = [
    pytest.param("csv", "day,shop"),
    pytest.param("parquet/day=*/shop=*/*.parquet", "day"),
    pytest.param("jsonl", "day"),
    *(
        pytest.param(way, by, marks=pytest.mark.slow)
        for way, by in (
            ("arrow", "day"),
            ("parquet", "day,shop"),
            ("csv/day=*/shop=*/a.csv", "shop"),
        )
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("way", "by"), WAYS)
def test_audits_of_partitions_count_every_row(folders, capsys, way, by):
    """A column that folders name is that of the table."""
    expected, _ = audit("whole.csv", *COLUMNS, "--by", by)
    found, model = audit(way, *COLUMNS, "--by", by)
    assert found["n_rows"] == expected["n_rows"] == ROWS, way
    groups_found, wanted = model["groups"], expected["models"][0]["groups"]
    sizes = {row["group"]: row["n_rows"] for row in groups_found["groups"]}
    assert groups_found["n_rows"] == ROWS, f"{way} --by {by}: {sizes}"
    assert groups_found == wanted, f"{way} --by {by}"


@pytest.mark.slow
def test_summaries_in_folders_are_groups_of_all_rows(folders, tmp_path, capsys):
    for day in range(DAYS):
        os.makedirs(f"saved/day={day}")
        part = f"parquet/day={day}"
        audit(part, *COLUMNS, "--save", f"saved/day={day}/s.parquet")
    found, model = audit("saved/day=*/s.parquet", "--by", "day")
    expected, wanted = audit("whole.csv", *COLUMNS, "--by", "day")
    assert found["n_rows"] == ROWS, f"expected {ROWS} rows, got {found['n_rows']}"
    rows = [row["n_rows"] for row in model["groups"]["groups"]]
    assert rows[0] == ROWS or sum(rows) == ROWS, rows
    assert model["groups"] == wanted["groups"]
    alone, _ = audit("saved")
    assert alone["n_rows"] == ROWS
    merged = sum(summarize(["saved"], by=["day"]).values())
    assert merged.n_samples == expected["n_rows"]


@pytest.mark.parametrize(
    "command",
    [
        "fit",
        "monitor",
        *(
            pytest.param(c, marks=pytest.mark.slow)
            for c in ("estimate-mean", "sample-size", "audit-multilabel")
        ),
    ],
)
def test_other_commands_read_partitions_as_one_table(folders, capsys, command):
    def run(source):
        more = {
            "fit": [*COLUMNS, "--recalibrator", "platt", "--out", "m.json"],
            "estimate-mean": ["--label", "label", "--score", "p", "--positive", "yes"],
            "sample-size": ["--prob", "p", "--error", "0.1"],
            "monitor": [*COLUMNS],
            "audit-multilabel": None,
        }[command]
        if command == "audit-multilabel":
            more = [
                "--label",
                "y1,y2",
                "--prob",
                "p,q",
                "--resamples",
                "2",
                "--out",
                "none",
            ]
        code = main([command, *source, *more])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    frame = folders.assign(
        q=np.tile(OTHER, TIMES), y1=np.tile(Y, TIMES), y2=np.tile(OTHER_Y, TIMES)
    )
    if command == "monitor":
        frame = frame.sort_values(["day", "shop"], kind="stable")
    frame.to_csv("all.csv", index=False)
    sources = []
    for (day, shop), part in frame.groupby(["day", "shop"]):
        os.makedirs(f"f/day={day}/shop={shop}")
        sources.append(f"f/day={day}/shop={shop}/a.csv")
        part.drop(columns=["day", "shop"]).to_csv(sources[-1], index=False)
    code, expected, said = run(["all.csv"])
    assert code in (0, 3), said
    if command == "estimate-mean":
        assert "n" in expected
    for source in (sources, ["f"]):
        if os.path.exists("m.json"):
            with open("m.json", encoding="utf-8") as file:
                whole = json.load(file)
            os.remove("m.json")
        code, found, said = run(source)
        assert code in (0, 3), f"{command} {source}: {said}"
        assert str(ROWS) in found + said or command in (
            "sample-size",
            "estimate-mean",
        ), found
        if command == "fit":
            with open("m.json", encoding="utf-8") as file:
                other = json.load(file)
            at = np.linspace(0.05, 0.95, 9)
            close(
                "fit", second(from_dict(other), at), second(from_dict(whole), at), 1e-9
            )


@pytest.mark.parametrize(
    "model",
    [
        GradientBoostingClassifier(n_estimators=6, max_depth=2),
        HistGradientBoostingClassifier(max_iter=6, early_stopping=False),
        AdaBoostClassifier(n_estimators=6),
        RandomForestClassifier(n_estimators=6, max_depth=3),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_model_that_is_cut_twice_is_a_model_that_is_cut_once(model):
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(80, 2)), rng.integers(0, 2, 80)
    staging, whole = (
        find_staging(model),
        clone(model).set_params(random_state=0).fit(X, y),
    )
    before = whole.predict_proba(X)
    first = staging.truncate_to_stage(whole, 4)
    twice, once = (
        staging.truncate_to_stage(first, 2),
        staging.truncate_to_stage(whole, 2),
    )
    name = type(model).__name__
    assert [staging.n_stages(one) for one in (whole, first, twice)] == [6, 4, 2], name
    close(name, twice.predict_proba(X), once.predict_proba(X))
    close(f"{name} itself", whole.predict_proba(X), before)


def test_cells_of_groups_that_are_merged_take_more_rows():
    rng = np.random.default_rng(8)
    p, y, pattern = (
        rng.random(90).round(1),
        rng.integers(0, 2, 90),
        rng.integers(0, 3, 90),
    )
    found, other, expected = ScoreGroupTable(), ScoreGroupTable(), ScoreGroupTable()
    parts = [(found, slice(0, 30)), (other, slice(30, 60)), (found, slice(60, 90))]
    for number, (cells, rows) in enumerate(parts):
        if number == 2:
            found.merge(other)
        given = pattern[rows], p[rows], 1 - p[rows], y[rows].astype(np.uint8), None
        cells.add_rows(*given)
    expected.add_rows(pattern, p, 1 - p, y.astype(np.uint8), None)
    for name in ("pattern", "proba", "counts", "weight", "squares"):
        close(
            name,
            getattr(found.compute_sums(), name),
            getattr(expected.compute_sums(), name),
        )


def test_a_second_adaptation_forgets_the_errors_of_the_first():
    rng = np.random.default_rng(3)
    p = rng.random(200)
    y, target = (rng.random(200) < p).astype(int), rng.beta(2, 3, 200)
    first = PriorShift("bbse").fit(p, y).adapt(target)
    assert hasattr(first, "prior_se_") and hasattr(first, "prior_interval_")
    second = first.set_params(prior="rlls").adapt(target)
    assert not hasattr(second, "prior_se_") and not hasattr(second, "prior_interval_")
