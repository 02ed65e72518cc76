"""Internal validation: beside R and plain loops, each option, groups, what cannot be."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from joblib import parallel_config
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from sklearn_calib import CalibratedModel
from sklearn_calib._random import spawn_generators
from sklearn_calib._show import get_sections, render_markdown
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.export import from_dict, to_dict
from sklearn_calib.inference import internal_validation as validate
from sklearn_calib.inference._refits import RepeatedFits
from sklearn_calib.metrics import brier_loss, ranked_probability_score

DATA = Path(__file__).parents[1] / "data" / "internal_r.json"
B = 6
FULL = LogisticRegression(C=np.inf, tol=1e-10, solver="newton-cholesky")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    return X, (rng.random(80) < expit(X[:, 0] - 0.5)).astype(int)


@pytest.fixture
def drawn(monkeypatch):
    """Samples given one by one, in the place of random ones."""

    def give(samples):
        order = iter(samples)
        monkeypatch.setattr(
            RepeatedFits, "_draw_bootstrap_row_indices", lambda self, rng: next(order)
        )

    return give


def line(p, y):
    """Intercept and slope by scikit-learn."""
    fitted = FULL.fit(logit(p)[:, None], y)
    return fitted.intercept_[0], fitted.coef_[0, 0]


def measured(y, p):
    a, b = line(p, y)
    found = {
        "slope": b,
        "intercept": a,
        "O/E": y.mean() / p.mean(),
        "AUC": roc_auc_score(y, p),
    }
    return found | {"Brier": brier_score_loss(y, p), "log loss": log_loss(y, p)}


def samples(n, seed=5):
    return np.sort(np.random.default_rng(seed).integers(0, n, (B, n)), axis=1)


# -- beside other programs ------------------------------------------------------------------------


@pytest.mark.slow
def test_beside_rms(drawn):
    """rms::validate on the same resamples: tests/data/internal_r.json states by which command."""
    kept = json.loads(DATA.read_text(encoding="utf-8"))
    X, y, theirs = np.array(kept["X"]), np.array(kept["y"]), kept["R"]
    drawn(np.array(kept["drawn"]))
    found = validate(FULL, X, y, n_resamples=len(kept["drawn"]))
    names = {"Dxy": "AUC", "Intercept": "intercept", "Slope": "slope", "B": "Brier"}
    for theirs_name, name in names.items():
        for column, field in (
            ("index.orig", "apparent"),
            ("index.corrected", "corrected"),
        ):
            value = getattr(found[name], field)
            value = 2 * value - 1 if name == "AUC" else value
            assert value == pytest.approx(theirs[f"{theirs_name} {column}"], abs=1e-7)
    heuristic = found.shrinkage("heuristic", n_parameters=5)
    assert heuristic.slope_ == pytest.approx(theirs["heuristic slope"], abs=1e-9)


def test_optimism_by_a_plain_loop(rows, drawn):
    (X, y), chosen = rows, samples(80)
    own = measured(y, GaussianNB().fit(X, y).predict_proba(X)[:, 1])
    fits = [GaussianNB().fit(X[s], y[s]) for s in chosen]
    in_sample = [
        measured(y[s], m.predict_proba(X[s])[:, 1])
        for s, m in zip(chosen, fits, strict=True)
    ]
    on_all = [measured(y, m.predict_proba(X)[:, 1]) for m in fits]
    for ci in ("pivot", "shifted"):
        drawn(chosen)
        found = validate(GaussianNB(), X, y, n_resamples=B, level=0.8, ci=ci)
        for name, apparent in own.items():
            row = found[name]
            a = np.array([one[name] for one in in_sample])
            excess = a - [one[name] for one in on_all]
            assert row.apparent == pytest.approx(apparent, abs=1e-7), name
            assert row.optimism == pytest.approx(excess.mean(), abs=1e-7), name
            assert row.corrected == pytest.approx(apparent - excess.mean(), abs=1e-7), (
                name
            )
            if ci == "pivot":
                ends = apparent - np.quantile(excess, [0.9, 0.1])
            else:
                ends = np.quantile(a, [0.1, 0.9]) - excess.mean()
            np.testing.assert_allclose(
                [row.low, row.high], ends, atol=1e-7, err_msg=name
            )
            assert row.n_used == B


def test_632_plus_by_a_plain_loop(rows, drawn):
    (X, y), chosen = rows, samples(80, 9)
    p = GaussianNB().fit(X, y).predict_proba(X)[:, 1]
    own, left, inside = measured(y, p), [], []
    for s in chosen:
        out, model = np.setdiff1d(np.arange(80), s), GaussianNB().fit(X[s], y[s])
        left.append(measured(y[out], model.predict_proba(X[out])[:, 1]))
        inside.append(measured(y[s], model.predict_proba(X[s])[:, 1]))
    every = np.mean([y.mean() * np.log(p) + (1 - y.mean()) * np.log1p(-p)])
    nothing = {"AUC": 0.5, "slope": 0.0, "log loss": -every}
    nothing["Brier"] = np.mean((y[:, None] - p) ** 2)
    drawn(chosen)
    found = validate(GaussianNB(), X, y, n_resamples=B, method=".632+")
    rate = {}
    for name, worst in nothing.items():
        apparent, out = own[name], np.mean([one[name] for one in left])
        rate[name] = np.clip((out - apparent) / (worst - apparent), 0, 1)
        part = 0.632 / (1 - 0.368 * rate[name])
        expected = (
            1 - part
        ) * apparent + part * out  # eq. 29; nothing is beyond `worst` here
        assert found[name].corrected == pytest.approx(expected, abs=1e-6), name
        excess = np.array(
            [a[name] - b[name] for a, b in zip(inside, left, strict=True)]
        )
        low = expected - np.quantile(excess - excess.mean(), 0.975)
        assert found[name].low == pytest.approx(low, abs=1e-6), name
    assert 0 < rate["AUC"] < 1
    part = 0.632 / (1 - 0.368 * rate["log loss"])
    out = np.mean([one["O/E"] for one in left])
    assert found["O/E"].corrected == pytest.approx(
        (1 - part) * own["O/E"] + part * out, abs=1e-6
    )


def test_weights_by_a_plain_loop(rows, drawn):
    """Fits and measures of each set of rows take the weights; a row drawn twice counts twice."""
    (X, y), chosen = rows, samples(80)
    weight = 1.0 + np.arange(80) % 3
    model = GaussianNB().fit(X, y, weight)

    def brier(model, s):
        p = model.predict_proba(X[s])[:, 1]
        return brier_score_loss(y[s], p, sample_weight=weight[s])

    all_rows = np.arange(80)
    left = [np.setdiff1d(all_rows, s) for s in chosen]
    fits = [GaussianNB().fit(X[s], y[s], weight[s]) for s in chosen]
    excess = [
        brier(m, s) - brier(m, all_rows) for m, s in zip(fits, chosen, strict=True)
    ]
    out = np.mean([brier(m, s) for m, s in zip(fits, left, strict=True)])
    options = {"n_resamples": B, "sample_weight": weight, "measures": "Brier"}
    drawn(chosen)
    found = validate(GaussianNB(), X, y, **options)["Brier"]
    own = brier(model, all_rows)
    assert found.apparent == pytest.approx(own, abs=1e-9)
    assert found.optimism == pytest.approx(np.mean(excess), abs=1e-9)
    drawn(chosen)
    found = validate(GaussianNB(), X, y, method=".632+", **options)["Brier"]
    share = np.average(y, weights=weight)
    p = model.predict_proba(X)[:, 1]
    mean = np.average(share * (1 - p) ** 2 + (1 - share) * p**2, weights=weight)
    rate = (out - own) / (mean - own)
    part = 0.632 / (1 - 0.368 * rate)
    assert 0 < rate < 1
    assert found.corrected == pytest.approx((1 - part) * own + part * out, abs=1e-9)


def test_folds_by_a_plain_loop(rows):
    X, y = rows
    found = validate(GaussianNB(), X, y, n_resamples=11, method="cross_validation")
    assert (found.n_resamples, found.n_folds) == (20, 10)
    values = []
    for rng in spawn_generators(0, 2):
        folds = StratifiedKFold(10, shuffle=True, random_state=int(rng.integers(2**32)))
        p = np.empty(80)
        for train, test in folds.split(X, y):
            p[test] = GaussianNB().fit(X[train], y[train]).predict_proba(X[test])[:, 1]
        values.append(measured(y, p))
    for name in values[0]:
        mean = np.mean([one[name] for one in values])
        assert found[name].corrected == pytest.approx(mean, abs=1e-7), name
        assert np.isnan(found[name].low)
    assert (
        "10 folds, 2 times" in str(found)
        and "interval" not in str(found).splitlines()[0]
    )


# -- options --------------------------------------------------------------------------------------


def corrected(found):
    return [row.corrected for row in found.rows]


@run_every_case(
    "option",
    [
        {"n_resamples": B + 1},
        {"method": ".632+"},
        {"method": "cross_validation"},
        {"groups": np.arange(80) // 4},
        {"sample_weight": 1.0 + np.arange(80) % 3},
        {"pos_label": 0},
        {"random_state": 1},
    ],
    ids=lambda option: "-".join(map(str, [*option, *map(type, option.values())]))[:24],
)
def test_each_option_matters(rows, option):
    plain = validate(GaussianNB(), *rows, n_resamples=B)
    again = validate(GaussianNB(), *rows, n_resamples=B)
    assert corrected(plain) == corrected(again)
    other = validate(GaussianNB(), *rows, **{"n_resamples": B, **option})
    assert not np.allclose(corrected(plain)[:3], corrected(other)[:3], atol=1e-9)


def test_options_of_intervals_and_measures(rows):
    wide, narrow = (
        validate(GaussianNB(), *rows, n_resamples=B, level=v) for v in (0.95, 0.5)
    )
    assert narrow["AUC"].low > wide["AUC"].low
    assert narrow["AUC"].high < wide["AUC"].high
    some = ["AUC", "brier_loss", ranked_probability_score]
    found = validate(
        GaussianNB(), *rows, n_resamples=B, measures=some, keep_predictions=False
    )
    assert [row.measure for row in found.rows] == [
        "AUC",
        "brier_loss",
        "ranked_probability_score",
    ]
    assert found["brier_loss"].corrected == pytest.approx(
        wide["Brier"].corrected, abs=1e-12
    )
    assert found.resampled is None and wide.resampled.shape == (B, 80)
    assert found.line == pytest.approx(wide.line)
    single = validate(GaussianNB(), *rows, n_resamples=B, measures=brier_loss)
    assert single.rows[0].low == pytest.approx(found.rows[1].low)


def test_pos_label_is_the_event(rows):
    X, y = rows
    one = validate(GaussianNB(), X, np.where(y, "yes", "no"), n_resamples=B)
    other = validate(
        GaussianNB(), X, np.where(y, "a", "b"), n_resamples=B, pos_label="a"
    )
    np.testing.assert_allclose(corrected(one), corrected(other), atol=1e-9)
    np.testing.assert_allclose(one.resampled, other.resampled, atol=1e-6)
    p = one.estimator.predict_proba(X)
    # the map of the same event, whatever the order of the columns
    np.testing.assert_allclose(
        one.shrinkage().predict_proba(p)[:, 1],
        other.shrinkage().predict_proba(p[:, ::-1])[:, 0],
    )


def test_jobs_give_the_same_bits(rows):
    one = validate(GaussianNB(), *rows, n_resamples=27)
    with parallel_config(backend="threading"):
        two = validate(GaussianNB(), *rows, n_resamples=27, n_jobs=2)
    assert one.to_dict() == two.to_dict()
    np.testing.assert_array_equal(one.resampled, two.resampled)


@pytest.mark.slow
def test_processes_give_the_same_bits(rows):
    one, two = (
        validate(FULL, *rows, n_resamples=60, n_jobs=jobs) for jobs in (None, 2)
    )
    assert one.to_dict() == two.to_dict()


# -- what is fitted -------------------------------------------------------------------------------


class Spy(ClassifierMixin, BaseEstimator):
    """Keeps what its fits were given, in a list of the class."""

    seen: list = []  # noqa: RUF012

    def __init__(self, cv=None):
        self.cv = cv

    def fit(self, X, y, sample_weight=None):
        self.seen.append((X, y, sample_weight, self.cv))
        self.classes_, self._mean = np.unique(y), np.mean(np.asarray(X), axis=0)
        return self

    def predict_proba(self, X):
        z = np.asarray(X, dtype=float)[:, -1] - self._mean[-1]
        return np.column_stack([expit(-z), expit(z)])


@pytest.fixture
def spy():
    Spy.seen = []
    return Spy


@pytest.mark.parametrize("method", ["optimism", "cross_validation"])
def test_groups_stay_whole(rows, spy, method):
    X, y = rows
    group = np.repeat(np.arange(20), 4)
    table = np.column_stack([group, X[:, 0]])
    found = validate(spy(), table, y, groups=group, method=method, n_resamples=B)
    for X_fit, *_ in spy.seen[1:]:
        counts = np.bincount(X_fit[:, 0].astype(int), minlength=20)
        assert (counts % 4 == 0).all() and (counts == 0).any()
    assert len(spy.seen) == 1 + found.n_resamples


def test_tables_labels_and_weights_come_as_they_are(rows, spy):
    pd = pytest.importorskip("pandas")
    X, y = rows
    frame = pd.DataFrame(X, columns=["a", "b", "c"], index=np.arange(80)[::-1])
    labels = pd.Series(np.where(y, "ill", "well"), index=frame.index)
    weight = 1.0 + np.arange(80) % 3
    weight[:5] = 0
    validate(spy(), frame, labels, sample_weight=weight, n_resamples=2)
    assert [len(one[0]) for one in spy.seen] == [75] * 3
    for X_fit, y_fit, w_fit, _ in spy.seen:
        assert list(X_fit.columns) == ["a", "b", "c"] and set(y_fit) == {"ill", "well"}
        places = 79 - X_fit.index.to_numpy()
        assert (y_fit == labels.to_numpy()[places]).all()
        np.testing.assert_array_equal(w_fit, weight[places])


def test_copies_of_a_row_share_a_fold(rows, spy):
    X, y = rows
    table = np.column_stack([np.arange(80), X[:, 0]])
    for estimator in (spy(cv=4), make_pipeline(StandardScaler(), spy(cv=4))):
        spy.seen.clear()
        validate(estimator, table, y, n_resamples=2)
        (_, _, _, given), *resampled = spy.seen
        assert given == 4  # the model itself is what it was
        for X_fit, _, _, cv in resampled:
            fold = cv.test_fold
            assert set(fold) == set(range(4))
            pairs = set(zip(X_fit[:, 0].round(9).tolist(), fold.tolist(), strict=True))
            assert len(pairs) == len(set(X_fit[:, 0].round(9)))


def test_labels_as_some_packages_want_them(rows, spy):
    Boosted = type(
        "Boosted", (Spy,), {"__module__": "xgboost.sklearn", "seen": Spy.seen}
    )
    X, y = rows
    found = validate(Boosted(), X, np.where(y, "ill", "well"), n_resamples=2)
    assert all(set(one[1]) == {0, 1} for one in spy.seen)
    plain = validate(spy(), X, np.where(y, "ill", "well"), n_resamples=2)
    assert corrected(found) == corrected(plain)


@pytest.mark.slow
def test_whole_procedures(rows):
    X, y = rows
    labels, group = np.where(y, "ill", "well"), np.arange(80) // 2
    pipe = make_pipeline(StandardScaler(), LogisticRegression())
    grid = {"logisticregression__C": [0.01, 1.0]}
    for estimator in (
        pipe,
        CalibratedModel(GaussianNB(), "platt", cv=3),
        GridSearchCV(pipe, grid, cv=3),
        GridSearchCV(pipe, grid, cv=GroupKFold(3)),
    ):
        weight = 1.0 + np.arange(80) % 2
        options = {"groups": group, "sample_weight": weight, "n_resamples": 3}
        found = validate(estimator, X, labels, **options)
        assert np.isfinite(corrected(found)).all()
    search = found.estimator
    assert set(search.best_params_) == set(grid)


def test_redrawn_samples_are_counted(drawn):
    X, y = np.arange(12.0)[:, None], np.array([1, 0, 0, 1] + [0] * 8)
    good, bad = np.arange(12), np.full(12, 5)
    drawn([bad, good, bad, bad, good])
    found = validate(GaussianNB(), X, y, n_resamples=2)
    assert found.n_redrawn == 3
    assert "3 samples without one of the classes were drawn again." in str(found)


def test_warnings_of_fits_are_said_once(rows):
    class Loud(GaussianNB):
        def fit(self, X, y):
            warnings.warn(f"no {X[0, 0]}", RuntimeWarning, stacklevel=2)
            return super().fit(X, y)

    with pytest.warns(RuntimeWarning) as caught:
        validate(Loud(), *rows, n_resamples=B)
    assert len(caught) == 2  # the model itself, and the resamples
    assert f"(Said {B} times in the fits of {B} resamples.)" in str(caught[1].message)
    assert caught[1].filename == __file__


# -- several classes, and what does not exist -----------------------------------------------------


def test_several_classes(rows):
    X, _ = rows
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    found = validate(GaussianNB(), X, y, n_resamples=B)
    assert [row.measure for row in found.rows] == ["Brier", "log loss", "ICI"]
    own = brier_loss(y, GaussianNB().fit(X, y).predict_proba(X))
    assert found["Brier"].apparent == pytest.approx(own)
    assert found["Brier"].corrected > own
    for method in (".632+", "cross_validation"):
        other = validate(GaussianNB(), X, y, n_resamples=B, method=method)
        assert other["Brier"].corrected > own
    assert found.instability(pos_label=2).predicted.shape == (80,)
    with raises_invalid_input(
        ValueError, expected=r".*pos_label among \[0, 1, 2\]", value="none"
    ):
        found.instability()
    with raises_invalid_input(
        ValueError, expected="two classes", value="3", hint="Validate each class"
    ):
        found.shrinkage()
    with pytest.raises(ValueError, match=r"3 classes, such as Brier, .* y == label"):
        validate(GaussianNB(), X, y, measures=["slope"])


def test_a_model_that_knows_its_rows_by_heart(drawn):
    X, y = np.arange(20.0)[:, None], np.repeat([0, 1], 10)
    drawn(samples(20)[:, :20])
    with pytest.warns(
        CalibrationWarning, match=r"none of slope in \d.* Those resamples"
    ) as caught:
        found = validate(GaussianNB(), X, y, n_resamples=B)
    assert caught[0].filename == __file__
    assert found["slope"].apparent == np.inf
    assert np.isnan(found["slope"].corrected)
    assert found.to_dict()["rows"][0]["corrected"] is None
    with raises_invalid_input(
        ValueError, expected=".*above 0", value="nan", hint=r"Take method='.632\+'"
    ):
        found.shrinkage()


@run_every_case(
    ("change", "error", "message"),
    [
        (
            {"estimator": GaussianNB},
            TypeError,
            "scikit-learn's kind, got .* Pass an instance",
        ),
        (
            {"estimator": FrozenEstimator(GaussianNB())},
            TypeError,
            "can be fitted again, got a Fro",
        ),
        (
            {"estimator": LinearSVC()},
            TypeError,
            "predict_proba, got LinearSVC. Wrap it: Calibra",
        ),
        ({"method": "boot"}, ValueError, "method among optimism, .632.*got 'boot'"),
        ({"ci": "bca"}, ValueError, "ci among pivot, shifted, got 'bca'"),
        ({"level": 95}, ValueError, "a level between 0 and 1, got 95"),
        ({"n_resamples": 1}, ValueError, "n_resamples >= 2, got 1"),
        ({"n_jobs": 0.5}, ValueError, "n_jobs as a whole number or None, got 0.5"),
        ({"measures": ["auc"]}, ValueError, "measures among .*got 'auc'"),
        ({"measures": []}, ValueError, "at least one measure, got none"),
        ({"pos_label": 7}, ValueError, "pos_label among 0, 1, got 7"),
        (
            {"groups": ["all"] * 80},
            ValueError,
            "at least two groups, which are drawn, got one",
        ),
        ({"groups": [1, 2]}, ValueError, "one value for each of the 80 rows"),
        (
            {"y": np.ones(80)},
            ValueError,
            "labels of at least two classes, got one class",
        ),
        ({"sample_weight": -np.ones(80)}, ValueError, "expected .*weight"),
        ({"random_state": "x"}, ValueError, "random_state as a whole number"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else None,
)
def test_refused(rows, change, error, message):
    given = {
        "estimator": GaussianNB(),
        "X": rows[0],
        "y": rows[1],
        "n_resamples": 2,
        **change,
    }
    with pytest.raises(error, match=message):
        validate(**given)


def test_weights_that_leave_a_class_out(rows):
    X, y = rows
    with raises_invalid_input(
        ValueError, expected=".*above 0 of each class", value=r"none of \[1\]"
    ):
        validate(GaussianNB(), X, y, sample_weight=(y == 0).astype(float))


def test_a_rare_class_has_no_folds(rows):
    X, _ = rows
    y = (np.arange(80) == 0).astype(int)
    with raises_invalid_input(
        ValueError, expected=".*two rows of each class for folds", value="1"
    ):
        validate(GaussianNB(), X, y, method="cross_validation")


def test_what_is_said_of_the_estimator(rows):
    X, y = rows
    model = CalibratedModel(FrozenEstimator(GaussianNB().fit(X, y)), "platt")
    with pytest.warns(
        CalibrationWarning, match="learns everything again on each resample, got"
    ):
        validate(model, X, y, n_resamples=2)
    from sklearn.neighbors import KNeighborsClassifier

    weight = 1.0 + np.arange(80) % 3
    with pytest.warns(
        UserWarning, match="whose fit takes sample_weight, got KNeighborsClass"
    ):
        validate(KNeighborsClassifier(30), X, y, sample_weight=weight, n_resamples=2)


# -- the result -----------------------------------------------------------------------------------


def test_as_text_and_tables(rows):
    found = validate(GaussianNB(), *rows, n_resamples=B)
    assert str(found).splitlines()[0].split() == [
        *("apparent", "optimism", "corrected", "95", "%", "interval")
    ]
    assert "80 rows. Corrected by the mean optimism of 6 bootstrap samples." in str(
        found
    )
    assert "<table" in found._repr_html_() and "| slope |" in render_markdown(
        get_sections(found)
    )
    pd = pytest.importorskip("pandas")
    assert isinstance(found.to_frame(), pd.DataFrame)
    assert found.to_frame()["corrected"].tolist() == corrected(found)
    assert json.loads(json.dumps(found.to_dict()))["rows"][3]["measure"] == "AUC"
    assert [*found] == [row.measure for row in found.rows] and "E50" not in found
    with raises_invalid_input(
        KeyError, expected=".*a measure among slope", value="'E50'"
    ):
        found["E50"]


def test_shrinkage_is_exported(rows):
    X, y = rows
    found = validate(FULL, X, y, n_resamples=B)
    shrunk = found.shrinkage()
    assert (shrunk.intercept_, shrunk.slope_) == pytest.approx(found.line)
    p = found.estimator.predict_proba(X)
    expected = expit(found.line[0] + found.line[1] * logit(p[:, 1]))
    np.testing.assert_allclose(shrunk.predict_proba(p)[:, 1], expected, rtol=1e-12)
    np.testing.assert_array_equal(
        shrunk.predict_proba(p[:, 1]), shrunk.predict_proba(p)
    )
    read = from_dict(json.loads(json.dumps(to_dict(shrunk))))
    np.testing.assert_allclose(
        read.predict_proba(p), shrunk.predict_proba(p), rtol=1e-12
    )
    assert (
        shrunk.predict(p[:3]).tolist()
        == y[:0].tolist() + shrunk.predict(p[:3, 1]).tolist()
    )


def test_heuristic_shrinkage_keeps_the_event_rate(rows):
    X, y = rows
    found = validate(FULL, X, y, n_resamples=2)
    shrunk = found.shrinkage("heuristic", n_parameters=3)
    mean = shrunk.predict_proba(found.estimator.predict_proba(X))[:, 1].mean()
    assert mean == pytest.approx(y.mean(), abs=1e-9)
    assert found.shrinkage("heuristic", n_parameters=0).slope_ == 1
    for options, message in (
        ({"kind": "heuristic"}, "n_parameters with kind='heuristic'"),
        ({"n_parameters": 3}, "n_parameters with kind='heuristic'"),
        ({"kind": "heuristic", "n_parameters": -1}, "n_parameters >= 0, got -1"),
        ({"kind": "heuristic", "n_parameters": 999}, "a finite slope above 0, got -"),
        ({"kind": "both"}, "kind among corrected, heuristic, got 'both'"),
    ):
        with pytest.raises(ValueError, match=message):
            found.shrinkage(**options)


@pytest.mark.parametrize("first", [False, True])
def test_heuristic_shrinkage_by_its_definition(rows, first):
    """(G - k) / G, also if the event is the first class."""
    X, y = rows
    words = np.where(y, "a", "b") if first else np.where(y, "yes", "no")
    found = validate(FULL, X, words, n_resamples=2, pos_label="a" if first else "yes")
    shrunk = found.shrinkage("heuristic", n_parameters=3)
    event = 0 if first else 1
    p = found.estimator.predict_proba(X)[:, event]
    gain = 2 * len(y) * (log_loss(y, np.full(len(y), y.mean())) - log_loss(y, p))
    moved = shrunk.predict_proba(found.estimator.predict_proba(X))[:, event]
    np.testing.assert_allclose(
        np.diff(logit(moved)), (gain - 3) / gain * np.diff(logit(p))
    )
    assert moved.mean() == pytest.approx(y.mean(), abs=1e-9)


def test_instability_by_hand(rows):
    found = validate(GaussianNB(), *rows, n_resamples=B, level=0.5)
    moved = found.instability(threshold=0.4)
    p = found.proba[:, 1]
    models = found.resampled.astype(float)
    np.testing.assert_array_equal(moved.predicted, p)
    np.testing.assert_allclose(moved.low, np.quantile(models, 0.25, axis=0))
    np.testing.assert_allclose(moved.high, np.quantile(models, 0.75, axis=0))
    np.testing.assert_allclose(
        moved.mean_absolute_error, np.abs(models - p).mean(axis=0)
    )
    np.testing.assert_allclose(
        moved.changed, ((models >= 0.4) != (p >= 0.4)).mean(axis=0)
    )
    assert moved.curves[0].shape == moved.curves[1].shape == (B, 64)
    other = found.instability(threshold=0.6, pos_label=0)
    np.testing.assert_allclose(
        other.mean_absolute_error, moved.mean_absolute_error, atol=1e-12
    )
    np.testing.assert_allclose(other.predicted, 1 - p)


def test_instability_needs_predictions_of_samples(rows):
    given = {"n_resamples": 2, "measures": ["AUC"]}
    crossed = validate(GaussianNB(), *rows, method="cross_validation", **given)
    bare = validate(GaussianNB(), *rows, keep_predictions=False, **given)
    kept = validate(GaussianNB(), *rows, **given)
    for found, message, options in (
        (crossed, "models of a cross-validation. Take method='optimism'", {}),
        (
            bare,
            "were not kept. Call internal_validation with keep_predictions=True",
            {},
        ),
        (kept, "a threshold between 0 and 1, got 1", {"threshold": 1}),
        (kept, "pos_label among 0, 1, got 'x'", {"pos_label": "x"}),
    ):
        with pytest.raises(ValueError, match=message):
            found.instability(**options)


def test_ranges_end_where_a_measure_ends(rows):
    X, y = rows
    found = validate(GaussianNB(), X, y, n_resamples=B, ci="shifted", level=0.99)
    for row in found.rows:
        if row.measure in ("ICI", "Brier", "AUC"):
            assert row.low >= 0 and row.high <= 1, row


@pytest.mark.filterwarnings("ignore")
def test_the_area_under_the_curve_is_at_most_one(rows):
    X, y = rows
    X = np.column_stack([X, y + 0.3 * X[:, 0]])
    found = validate(GaussianNB(), X, y, n_resamples=B, ci="shifted", level=0.99)
    (row,) = (row for row in found.rows if row.measure == "AUC")
    assert row.corrected > 0.99 and row.high <= 1
