"""The record of a map: what is kept of its rows, its checksum, and how it is read out."""

import copy
import datetime
import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from golden_sets import golden_set
from refused import refuses
from scipy.special import expit, logit
from sklearn.pipeline import make_pipeline

from sklearn_calib import canonical_proba
from sklearn_calib._files.checksum import checksum
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.export import (
    from_dict,
    from_json,
    simplify,
    to_code,
    to_dict,
    to_json,
)
from sklearn_calib.export._nodes import NODES
from sklearn_calib.recalibrators import (
    Identity,
    IsotonicCalibration,
    OnlineCalibration,
    PlattScaling,
    PriorShift,
    StackedCalibration,
    TemperatureScaling,
    _base,
    cross_fitted_proba,
)
from sklearn_calib.summary import CalibrationSummary

Y, P = golden_set()
MAPS = Path(__file__).parent.parent / "data" / "maps"
STORED = sorted(MAPS.glob("*.json"))


def signed(document):
    """With a checksum that fits, as a forger would write it."""
    return document | {"sha256": checksum(document)}


def line(p):
    """Intercept and slope of the log-odds, by Newton's steps."""
    columns, found = np.column_stack([np.ones(len(p)), logit(p)]), np.zeros(2)
    for _ in range(50):
        q = expit(columns @ found)
        found += np.linalg.solve((columns.T * (q * (1 - q))) @ columns, columns.T @ (Y - q))
    return found


# -- what a fit keeps -------------------------------------------------------------------------


def test_the_record_of_a_fit():
    weight = np.r_[0.0, np.tile([0.5, 2.0], 100)[1:]]
    fitted = PlattScaling().fit(P, Y, weight)
    record = fitted.record_
    assert record["rows"] == 199
    assert record["events"] == [weight[Y == 0].sum(), weight[Y == 1].sum()]
    assert record["mean_before"][1] == pytest.approx(np.average(P, weights=weight), rel=1e-14)
    after = np.average(fitted.predict_proba(P), axis=0, weights=weight)
    assert record["mean_after"] == pytest.approx(after, rel=1e-14)
    assert "rows_of_mean_after" not in record
    assert all(type(n) is int for n in PlattScaling().fit(P, Y).record_["events"])


def test_the_mean_before_is_that_of_scores_as_given():
    p = np.r_[0.0, 0.0, P]
    fitted = PlattScaling().fit(p, np.r_[0, 1, Y])
    assert fitted.record_["mean_before"][1] == pytest.approx(p.mean(), rel=1e-14)


def test_of_many_rows_some_tell_the_mean():
    """They are said; a target mean is checked on all rows."""
    proba, y = make_overconfident(2, 10_000, random_state=0)
    fitted = IsotonicCalibration().fit(proba, y)
    record, after = fitted.record_, fitted.predict_proba(proba)[:, 1]
    some = record["rows_of_mean_after"]
    error = np.std(after - proba[:, 1]) / np.sqrt(some)
    assert some == 4096 and 0 < abs(record["mean_after"][1] - after.mean()) < 3 * error
    exact = PriorShift(mean=0.2).fit(proba, y).record_
    assert "rows_of_mean_after" not in exact
    assert exact["mean_after"][1] == pytest.approx(0.2, rel=1e-13)
    of_cells = CalibrationSummary().update(y, proba).fit("isotonic")
    assert of_cells.record_["rows"] == 10_000 and sum(of_cells.record_["events"]) == 10_000
    assert of_cells.record_["mean_after"][1] == pytest.approx(after.mean(), abs=1e-5)


def test_of_what_moves_nothing_all_rows_tell_the_mean():
    proba, y = make_overconfident(3, 10_000, random_state=0)
    weight = np.tile([1.0, 3.0], 5000)
    for one in (Identity(), PriorShift()):
        record = one.fit(proba, y, weight).record_
        assert "rows_of_mean_after" not in record
        assert record["mean_after"] == record["mean_before"]
        assert record["mean_before"] == pytest.approx(np.average(proba, axis=0, weights=weight))
        assert record["events"] == np.bincount(y, weights=weight).tolist()


@pytest.mark.parametrize("k", [2, 3])
def test_events_of_one_weight(k):
    """Counted by another way than those of weights that differ."""
    proba, y = make_overconfident(k, 100, random_state=0)
    counts = np.bincount(y, minlength=k)
    assert Identity().fit(proba, y).record_["events"] == counts.tolist()
    assert Identity().fit(proba, y, np.full(100, 0.5)).record_["events"] == (counts / 2).tolist()


def test_a_record_is_made_when_it_is_asked_for(monkeypatch):
    """A fit waits for no prediction; what is kept of the rows is a copy, and is not written."""
    p, y = P.copy(), Y
    monkeypatch.setattr(PlattScaling, "_predict_proba", None)
    few = PlattScaling().fit(p, y)
    proba, labels = make_overconfident(2, 10_000, random_state=0)
    many = PlattScaling().fit(proba, labels)
    monkeypatch.undo()
    kept = len(pickle.dumps(vars(few))), len(pickle.dumps(vars(many)))
    p[:] = 0.5  # the rows of the user are his
    assert "record_" not in vars(few) and "record_" not in vars(many)
    for fitted, rows, most in ((few, P, 10_000), (many, proba, 170_000)):
        again = pickle.loads(pickle.dumps(fitted))
        assert vars(again)["record_"] == fitted.record_ == copy.deepcopy(fitted).record_
        assert "_record_later" not in {*vars(again), *vars(fitted)}
        mean = np.mean(rows if rows is P else np.asarray(rows)[:, 1])
        assert fitted.record_["mean_before"][1] == pytest.approx(mean, rel=1e-14)
        assert kept[fitted is many] < most
    assert few.record_["mean_after"] == PlattScaling().fit(P, Y).record_["mean_after"]
    with pytest.raises(AttributeError, match="'PlattScaling' has no record_"):
        PlattScaling().record_  # noqa: B018
    with refuses(ValueError):
        few.fit([0.5, 2.0], [0, 1])
    assert not hasattr(few, "record_")  # of the former fit


def test_the_record_is_that_of_the_map_before_it_learned_more():
    fitted = OnlineCalibration().fit(P, Y)
    before = fitted.predict_proba(P)[:, 1].mean()
    fitted.partial_fit(P, 1 - Y)
    assert fitted.record_["mean_after"][1] == pytest.approx(before, rel=1e-12)


@pytest.mark.parametrize("weight", [None, np.ones(len(Y)), np.full(len(Y), 0.1)])
def test_weights_that_are_even(weight):
    found, plain = PlattScaling().fit(P, Y, weight).record_, PlattScaling().fit(P, Y).record_
    assert found["mean_before"] == pytest.approx(plain["mean_before"], rel=1e-14)
    assert sum(found["events"]) == pytest.approx(len(Y) if weight is None else weight.sum())


def test_fits_of_folds_keep_no_record(monkeypatch):
    """They cost time, and nobody sees them; the maps that stay have theirs."""
    calls = []
    monkeypatch.setattr(_base, "keep_record", lambda model, *rows: calls.append(type(model)))
    cross_fitted_proba("platt", P, Y)
    assert not calls
    StackedCalibration(["platt", "temperature"]).fit(P, Y)
    assert calls == [PlattScaling, TemperatureScaling, StackedCalibration]


def test_an_adapted_map_has_the_record_of_its_rows():
    adapted = PriorShift("em").fit(P, Y).adapt(P[::4])
    assert adapted.record_["rows"] == 50 and "events" not in adapted.record_
    mean = adapted.predict_proba(P[::4]).mean(axis=0)
    assert adapted.record_["mean_after"] == pytest.approx(mean)
    assert "adapted to 50 rows without labels" in from_dict(to_dict(adapted)).describe()


def test_a_failed_fit_leaves_no_record():
    fitted = PlattScaling().fit(P, Y)
    with pytest.raises(ValueError):
        fitted.fit(P, Y[:-1])
    assert not hasattr(fitted, "record_")


# -- the checksum of the map ------------------------------------------------------------------


def test_the_same_data_give_the_same_checksum():
    """Neither date, columns, parameters that change nothing, nor the form of input matter."""
    first = to_dict(PlattScaling().fit(P, Y))["record"]["map_sha256"]
    for said in ({"date": "2026-11-23"}, {"columns": ["p"]}, {"input": "logits"}):
        assert to_dict(PlattScaling().fit(P, Y), **said)["record"]["map_sha256"] == first
    assert to_json(PlattScaling().fit(P, Y)) == to_json(PlattScaling().fit(P, Y))
    other = to_dict(PlattScaling().fit(P, 1 - Y[::-1]))["record"]["map_sha256"]
    text = PlattScaling().fit(P, np.array(["a", "b"])[Y], classes=["a", "b"])
    labels = to_dict(text)["record"]["map_sha256"]
    assert len({first, other, labels}) == 3
    document = to_dict(PlattScaling().fit(P, Y))
    parts = {name: document[name] for name in ("classes", "classes_type", "map")}
    assert checksum(parts) == first  # as the page says


def test_the_checksum_follows_the_map():
    fitted = IsotonicCalibration().fit(P, Y)
    small = simplify(fitted, 0.05).document["record"]
    whole = to_dict(fitted)["record"]
    assert small["map_sha256"] != whole["map_sha256"] and small["rows"] == whole["rows"]
    again = to_dict(from_json(to_json(fitted)))["record"]
    assert again == whole
    assert whole["map_sha256"] in to_code(fitted, "c")


def test_a_map_that_disagrees_with_its_checksum_is_refused():
    document = to_dict(PlattScaling().fit(P, Y))
    forged = copy.deepcopy(document)
    forged["map"]["parts"][1]["coef"][0] += 1e-13  # the check rows still fit
    with refuses(ValueError, where="sha256", rule="the checksum of the document"):
        from_dict(forged)
    with refuses(ValueError, where=r"record\.map_sha256", rule="the checksum of the map.*"):
        from_dict(signed(forged))
    edited = from_dict(forged, edited=True)
    assert edited.document["record"]["map_sha256"] != document["record"]["map_sha256"]
    assert "It was edited by hand since" in edited.describe()
    moved = copy.deepcopy(document)
    moved["record"]["rows"] = 10_000
    with refuses(ValueError, rule="the checksum of the document"):
        from_dict(moved)


# -- what the user says -----------------------------------------------------------------------


@pytest.mark.parametrize("date", ["2026-11-23", datetime.date(2026, 11, 23)])
def test_date_and_columns_are_kept(date):
    fitted = PlattScaling().fit(P, Y)
    columns = {"label": "default", "scores": ["pd"]}
    read = from_json(to_json(fitted, date=date, columns=columns))
    assert read.document["record"]["date"] == "2026-11-23"
    assert read.document["record"]["columns"] == {"label": ["default"], "scores": ["pd"]}
    assert "Date: 2026-11-23." in read.describe()
    assert "Columns: label 'default'; scores 'pd'." in read.describe()
    later = to_dict(read, date="2027-01-01")["record"]
    assert later["date"] == "2027-01-01" and later["columns"] == columns | {"label": ["default"]}
    assert to_dict(fitted, columns=["a", "b"])["record"]["columns"] == {"scores": ["a", "b"]}


def test_what_is_no_date_or_column_is_refused():
    fitted = PlattScaling().fit(P, Y)
    for date in ("23.11.2026", "today", 2026):
        with refuses(ValueError, where="to_dict", rule="a date such as '2026-11-23'"):
            to_dict(fitted, date=date)
    for columns in ([1], {"label": 3}, {1: "a"}, 5):
        with refuses(ValueError, where="to_dict", rule="names of columns as texts"):
            to_dict(fitted, columns=columns)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rows": -1}, r"record\.rows: expected a whole number, got -1"),
        ({"rows": True}, r"record\.rows: expected a whole number"),
        ({"events": [1]}, r"record\.events: expected 2 numbers >= 0"),
        ({"mean_after": [0.5, "x"]}, r"record\.mean_after: expected 2 numbers"),
        ({"slope": None}, r"record\.slope: expected a finite number"),
        ({"columns": ["p"]}, r"record\.columns: expected lists of names"),
        ({"date": 3}, r"record\.date: expected a text"),
        ({"more": 1}, r"record\.more: expected one of map_sha256, rows"),
    ],
)
def test_damaged_records_are_refused(change, words):
    document = to_dict(PlattScaling().fit(P, Y))
    with pytest.raises(ValueError, match=words):
        from_dict(signed(document | {"record": document["record"] | change}))


def test_documents_without_a_record_are_refused():
    document = to_dict(PlattScaling().fit(P, Y))
    del document["record"]
    with refuses(ValueError, where="record", rule="a value", value="nothing"):
        from_dict(signed(document))
    with refuses(ValueError, where=r"record\.map_sha256", rule="a value", value="nothing"):
        from_dict(signed(document | {"record": {}}))


# -- sentences --------------------------------------------------------------------------------


def test_an_offset_says_what_it_did():
    shift = PriorShift(mean=0.3).fit(P, Y)
    text = from_dict(to_dict(shift)).describe()
    before, after = line(P), line(shift.predict_proba(P)[:, 1])
    assert after[1] == pytest.approx(before[1])
    assert f"slope on these rows, {before[1]:.4g}, stays" in text
    assert f"intercept goes from {before[0]:.4g} to {after[0]:.4g}" in text
    assert f"adds {shift.offset_[1]:.6g} to the log-odds of '1'" in text
    assert f"is {P.mean():.6g} as given and 0.3 by the map; observed is {Y.mean():.6g}" in text
    assert "further from the observed frequency" in text
    nearer = PriorShift(mean=Y.mean()).fit(np.sqrt(P), Y)
    assert "nearer to the observed frequency" in from_dict(to_dict(nearer)).describe()


def test_a_pipeline_that_ends_in_an_offset():
    pipeline = make_pipeline(PlattScaling(), PriorShift(mean=0.2)).fit(P, Y)
    record = to_dict(pipeline)["record"]
    assert record["mean_before"][1] == pytest.approx(P.mean())
    assert record["mean_after"][1] == pytest.approx(0.2, rel=1e-13)
    assert record["slope"] == pytest.approx(1, abs=0.05)  # of what the offset was given
    text = from_dict(to_dict(pipeline)).describe()
    assert "pipeline of platt, prior_shift" in text and "Its last step adds" in text


def test_labels_and_columns_are_data():
    labels = np.array(["no", "yes\x1b[31m\n"])[Y]
    fitted = PlattScaling().fit(P, labels, classes=np.unique(labels))
    text = from_dict(to_dict(fitted, columns={"a\n": ["b\x1b[0m"]})).describe()
    assert "\x1b" not in text and r"'yes\x1b[31m\n'" in text and r"'b\x1b[0m'" in text
    assert len(text.splitlines()) == 5


def test_maps_of_other_rows_are_described():
    """Several classes, weights, and a map that was never fitted to rows."""
    proba, y = make_overconfident(3, 60)
    text = from_dict(to_dict(PlattScaling().fit(proba, y, np.full(60, 0.5)))).describe()
    assert "fitted to 60 rows, weights that add up to 30" in text
    assert text.count("The mean probability of") == 3
    undone = PriorShift.from_class_weight({0: 1, 1: 9}, [0, 0, 0, 1])
    assert "no record of the rows" in from_dict(to_dict(undone)).describe()
    logits = canonical_proba(np.linspace(-900, 900, 40), kind="logits")
    far = PriorShift(mean=0.3).fit(logits, np.arange(40) % 2)
    assert "adds" in from_dict(to_dict(far, input="logits")).describe()


# -- stored documents -----------------------------------------------------------------------------


def kinds_in(tree):
    if isinstance(tree, dict):
        yield from [tree["node"]] if "node" in tree else []
        yield from (kind for value in tree.values() for kind in kinds_in(value))
    elif isinstance(tree, list):
        yield from (kind for value in tree for kind in kinds_in(value))


def test_every_kind_of_node_is_stored():
    trees = [json.loads(path.read_text(encoding="utf-8"))["map"] for path in STORED]
    assert set(kinds_in(trees)) == set(NODES)
