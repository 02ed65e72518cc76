"""Each program of the page "From where you are", where its package is installed."""

import re
from importlib import import_module

import numpy as np
import pytest
from boosters import imported
from checkout import GUIDE
from scipy.special import expit

from sklearn_calib import decomposition, inference, metrics, recalibrators

pytestmark = [  # warnings are those of the packages
    pytest.mark.slow,
    pytest.mark.whole,
    pytest.mark.filterwarnings("default"),
]
PROGRAM = re.compile(r"code-block:: python\n(?:   :.*\n)?\n((?:(?:   .*)?\n)+)")


def sections():
    """The programs by the heading above them; "" is what all begin with."""
    text = (GUIDE / "from_where_you_are.rst").read_text(encoding="utf-8")
    start, *parts = re.split(r"(?m)^(.+)\n-{3,}\n", text)
    return {"": start} | dict(zip(parts[::2], parts[1::2], strict=True))


def program(section):
    (found,) = PROGRAM.findall(section)
    return re.sub("(?m)^   ", "", found)


def written_by_lm_eval():
    """A file of the harness's own writer: 400 questions, too sure by 2."""
    tracker = import_module("lm_eval.loggers").EvaluationTracker(output_path="results")
    tracker.general_config_tracker.model_name_sanitized, tracker.date_id = (
        "model",
        "2026",
    )
    rng, rows = np.random.default_rng(0), []
    for number in range(400):
        logits = 2 * rng.normal(size=4)
        chance = np.exp(logits / 2) / np.exp(logits / 2).sum()
        answers = [(float(x) - 20, bool(x == logits.max())) for x in logits]
        row = {
            "doc_id": number,
            "target": int(rng.choice(4, p=chance)),
            "filter": "none",
        }
        row |= {
            "arguments": [("?", letter) for letter in "ABCD"],
            "filtered_resps": answers,
        }
        rows.append(row | {"resps": [[answer] for answer in answers]})
    tracker.save_results_samples("quiz", rows)


def written_by_inspect():
    """A log of 300 answers whose confidence is 0.15 too high."""
    log, scorer = import_module("inspect_ai.log"), import_module("inspect_ai.scorer")
    rng, samples = np.random.default_rng(0), []
    for number in range(300):
        sure = float(rng.choice([0.7, 0.8, 0.9, 1.0]))
        value = "C" if rng.random() < sure - 0.15 else "I"
        scores = {"stated": scorer.Score(value=value, metadata={"confidence": sure})}
        sample = {
            "id": number,
            "epoch": 1,
            "input": "?",
            "target": "A",
            "scores": scores,
        }
        samples.append(log.EvalSample(**sample))
    about = {
        "created": "2026-01-01T00:00:00+00:00",
        "task": "quiz",
        "model": "mockllm/model",
    }
    spec = log.EvalSpec(**about, dataset=log.EvalDataset(), config=log.EvalConfig())
    log.write_eval_log(
        log.EvalLog(eval=spec, status="success", samples=samples), "quiz.eval"
    )


NOT_CALIBRATED = "quiz_2026.jsonl The probabilities are not calibrated"
#: The package, what writes the files that a program reads, and what it prints.
SECTIONS = {
    "mlflow": ("mlflow", None, r"'smooth_calibration_error': 0\.0675"),
    "skore": ("skore", None, r"smooth_calibration_error +0\.0675"),
    "evidently": ("evidently", None, r"'value': 0\.0675"),
    "lm-evaluation-harness": (
        "lm_eval",
        written_by_lm_eval,
        f"samples_{NOT_CALIBRATED}",
    ),
    "Inspect": (
        "inspect_ai",
        written_by_inspect,
        "^The probabilities are not calibrated",
    ),
    "Hugging Face evaluate": ("evaluate", None, r"'smooth_calibration_error': 0\.0675"),
    "skrub": ("skrub", None, r"^\[\[0\."),
    "XGBoost's Booster": ("xgboost", None, r"^\[\[0\."),
    "river": ("river", None, r"LogLoss: 1\.00\d+\nLogLoss: 0\.50\d+"),
    "SHAP": ("shap", None, r"e-1[4-7]$"),
}


def test_each_section_has_a_test():
    assert [*sections()][1:] == [*SECTIONS]


@pytest.mark.parametrize("heading", SECTIONS)
def test_program(heading, tmp_path, monkeypatch, capsys):
    package, write, said = SECTIONS[heading]
    imported(package) if package == "xgboost" else pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    if write is not None:
        write()
    names = {"__name__": "snippet"}
    for text in (sections()[""], sections()[heading]):
        exec(program(text), names)
    assert re.search(said, capsys.readouterr().out.strip())


# -- the numbers that the page "Coming from" calls the same ----------------------------------

RNG = np.random.default_rng(1)
P = expit(1.5 * RNG.normal(size=900))
Y = (RNG.random(900) < P**1.3).astype(int)
EQUAL = {"rel": 1e-6}


def test_pycaleva():
    there = pytest.importorskip("pycaleva").CalibrationEvaluator(
        Y, P, outsample=True, n_groups=10
    )
    assert there.brier == pytest.approx(metrics.brier_loss(Y, P), **EQUAL)
    assert there.auroc == pytest.approx(
        inference.validation_summary(Y, P)["AUC"].estimate, **EQUAL
    )
    assert there.ace == pytest.approx(
        metrics.expected_calibration_error(Y, P, n_bins=10), **EQUAL
    )
    assert there.mce == pytest.approx(
        metrics.maximum_calibration_error(Y, P, n_bins=10), **EQUAL
    )
    test = inference.hosmer_lemeshow_test(Y, P)
    assert there.hosmerlemeshow(verbose=False).statistic == pytest.approx(
        test.statistic, **EQUAL
    )
    test = inference.spiegelhalter_test(Y, P)
    assert there.z_test().statistic == pytest.approx(test.statistic, **EQUAL)


def test_calzone():
    there, utils = (
        pytest.importorskip("calzone.metrics"),
        import_module("calzone.utils"),
    )
    both = np.column_stack([1 - P, P])
    frequency, confidence, _, counts = utils.reliability_diagram(
        Y, both, num_bins=10, class_to_plot=1
    )
    found = there.calculate_ece_mce(frequency, confidence, counts)
    bins = {"n_bins": 10, "strategy": "uniform"}
    ours = metrics.expected_calibration_error, metrics.maximum_calibration_error
    assert found == pytest.approx([measure(Y, P, **bins) for measure in ours], **EQUAL)
    test = inference.spiegelhalter_test(Y, P)
    assert there.spiegelhalter_z_test(Y, both)[0] == pytest.approx(
        test.statistic, **EQUAL
    )
    slope, intercept, *_ = there.cox_regression_analysis(Y, both)
    rows = inference.validation_summary(Y, P)
    line = rows["slope"].estimate, rows["intercept"].estimate
    assert (slope, intercept) == pytest.approx(line, rel=1e-4)
    indices = decomposition.calibration_indices(Y, P, smoother="cox")
    assert there.cal_ICI_cox(slope, intercept, both) == pytest.approx(
        indices.ici, rel=1e-3
    )


def test_calibstats():
    there = pytest.importorskip("calibstats")
    uniform = {"strategy": "uniform"}
    ece, mce = metrics.expected_calibration_error, metrics.maximum_calibration_error
    assert there.ece(P, Y) == pytest.approx(ece(Y, P, **uniform), **EQUAL)
    assert there.ace(P, Y) == pytest.approx(ece(Y, P), **EQUAL)
    assert there.mce(P, Y) == pytest.approx(mce(Y, P, **uniform), **EQUAL)
    assert there.brier_score(P, Y) == pytest.approx(metrics.brier_loss(Y, P), **EQUAL)
    assert there.nll(P, Y) == pytest.approx(metrics.log_loss(Y, P), **EQUAL)
    logits = np.log(np.column_stack([1 - P, P]))
    scaled = recalibrators.TemperatureScaling().fit(np.column_stack([1 - P, P]), Y)
    found = there.TemperatureScaler().fit(logits, Y).temperature_
    assert found == pytest.approx(scaled.temperature_, **EQUAL)
