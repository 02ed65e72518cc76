"""The page of a report: well-formed, by itself, safe for any name; its pictures tell the truth."""

import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

import sklearn_calib
from sklearn_calib import displays
from sklearn_calib._kernels._picture_axes import LogitAxis
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.decisions import decision_difference
from sklearn_calib.metrics import brier_loss, measure, reliability_curve
from sklearn_calib.report import calibration_report
from sklearn_calib.report._pictures import (
    choose_classes,
    compute_binned_error,
    has_rare_events,
    make_diagram_series_by_model,
)
from sklearn_calib.report._sections import make_meanings_section
from sklearn_calib.report._svg import (
    LARGE_FRAME,
    SMALL_FRAME,
    DiagramSeries,
    draw_diagram,
    format_steps_path,
)
from sklearn_calib.report._written_report import DARK_COLOURS_CSS, LIGHT_COLOURS_CSS
from sklearn_calib.summary import CalibrationSummary

VOID = {"meta", "br", "wbr", "img", "hr", "link", "input"}
HOSTILE = [
    '"><script>alert(1)</script>', "$x_{$", "\x1b[1m\x00x", "\u202eabc", "שלום עולם", "👨\u200d👩",
    "]]>", "</title>", "{0}", "%s", "w" * 500, "a\nb",
]  # fmt: skip


class Page(HTMLParser):
    """Tags that open and close in order, attributes, and texts by tag."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.texts = [], [], []
        self.feed(text)
        self.close()
        assert not self.open, f"{self.open} are never closed"

    def handle_starttag(self, tag, attributes):
        names = [name for name, _ in attributes]
        assert len(set(names)) == len(names), f"<{tag}> says {names}"
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> in {self.open}"
        self.open.pop()

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else "", data))

    @property
    def words(self):
        return " ".join(data for tag, data in self.texts if tag != "style")

    @staticmethod
    def titles(figure):
        return re.search(r"<figcaption><bdi>([^<]*)", figure)[1]

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]

    def text(self, tag):
        return [data for name, data in self.texts if name == tag]


def written(report, folder, **options):
    return Path(report.to_html(folder / "page.html", **options)).read_text(
        encoding="utf-8"
    )


def softened(proba, power):
    proba = proba**power
    return proba / proba.sum(axis=1, keepdims=True)


@pytest.fixture(scope="module")
def reports():
    """Reports by name, made when first asked for."""
    options = {"n_resamples": 4, "check_columns": False}

    @cache
    def report(kind):
        if kind == "two":
            proba, y = make_overconfident(2, 500)
            labels = np.array(["no", "yes"])[y]
            return calibration_report(
                labels, proba, name="forest", source="a/b.csv", **options
            )
        if kind == "ten":
            proba, y = make_overconfident(10, 600)
            return calibration_report(
                y, {"raw": proba, "soft": softened(proba, 0.7)}, **options
            )
        n_models, n_classes = map(int, kind.split("x"))
        proba, y = make_overconfident(n_classes, 1500)
        models = {f"model {i}": softened(proba, 1 - i / 40) for i in range(n_models)}
        labels = np.arange(n_classes)
        return calibration_report(
            y, models, measures=["log_loss"], labels=labels, **options
        )

    return report


@pytest.fixture(scope="module")
def advised():
    """Two classes with advice."""
    proba, y = make_overconfident(2, 600)
    report = calibration_report(
        y, proba, n_resamples=4, columns=["<y>", "p"], source="</pre>.csv"
    )
    report.advise()
    return report


@pytest.mark.parametrize(
    ("kind", "pictures"),
    [
        ("two", 1),
        pytest.param("ten", 13, marks=pytest.mark.slow),
        pytest.param("4x30", 17, marks=pytest.mark.slow),
        pytest.param("20x100", 33, marks=pytest.mark.slow),
    ],
)
def test_pages_are_well_formed_and_by_themselves(reports, tmp_path, kind, pictures):
    text = written(reports(kind), tmp_path)
    page = Page(text)
    assert len(text.encode()) < 1.5e6
    drawn = [svg for svg in page.all("svg") if svg.get("role") == "img"]
    assert len(drawn) == pictures
    for svg in drawn:  # a sentence for those who do not see it
        said = r"Reliability diagram of .* \(observed \d\.\d+\).*|Log loss by temperature, .*"
        assert re.fullmatch(rf"({said})\.", svg["aria-label"])
    assert all(
        "role" in svg or svg.get("aria-hidden") == "true" for svg in page.all("svg")
    )
    assert page.all("html")[0]["lang"] == "en" and page.all("title")
    assert not page.all("script") and not page.all("link") and not page.all("img")
    style = "".join(page.text("style"))
    assert "@import" not in style and "url(" not in style
    for tag, attributes in page.tags:
        for name, value in attributes.items():
            assert name not in ("src", "srcset", "xlink:href") and not name.startswith(
                "on"
            ), tag
            assert name != "href" or value.startswith("#")
    header = page.all("th")
    assert header and all("scope" in th for th in header)


@pytest.mark.slow
def test_the_order_of_the_page(advised, tmp_path):
    """Verdict, before and after, measures, what is gained with the code, bins."""
    text = written(advised, tmp_path)
    page = Page(text)
    assert page.text("h2") == [
        "Verdict",
        "Reliability",
        "Measures",
        "What recalibration gains",
        "Bins of equal mass",
        "What the measures mean",
    ]
    said = [data for data in page.text("p") if data.strip()]
    sentences = [sentence.text for sentence in advised.verdict.sentences]
    assert len(sentences) > 4 and set(sentences) <= set(said)
    first = text.index("The probabilities are not calibrated")
    assert first < text.index("<svg") and text[:first].count("<p") == 2, (
        "it does not open with it"
    )
    advice = advised.advice["model"]
    assert "".join(page.text("code")) == advice.code and "<y>" in advice.code
    cells = page.text("td") + page.text("strong")
    for row in advice.rows:
        assert f"{row.loss:.4f}" in cells and f"{row.standard_error:.4f}" in cells
    for one in advised.bins():
        assert f"{one.predicted:.4f}" in cells and f"{one.observed:.4f}" in cells
    assert "</pre>.csv" in page.text("bdi") and advised.created in text


@pytest.mark.slow
def test_before_and_after_side_by_side(advised, tmp_path):
    """The dots of both pictures are the curves of the rows as given and as recalibrated."""
    text = written(advised, tmp_path)
    pair = text[text.index('<div class="pair">') :].split("</figure>")[:2]
    assert [*map(Page.titles, pair)] == ["before", "after recalibration (auto)"]
    summaries = advised.advice["model"].summaries().values()
    for tone, (picture, summary) in enumerate(zip(pair, summaries, strict=True)):
        (curve,) = summary.reliability_curve(n_bins=10, n_resamples=0)
        x, y = points(picture).T
        np.testing.assert_allclose(
            (x - LARGE_FRAME.left) / LARGE_FRAME.side, curve.predicted, atol=1e-4
        )
        np.testing.assert_allclose(
            1 - (y - LARGE_FRAME.top) / LARGE_FRAME.side, curve.observed, atol=1e-4
        )
        assert f'<g class="tone{tone}">' in picture and 'class="steps"' in picture


def test_the_positive_class_is_the_one_that_was_asked_for(tmp_path, monkeypatch):
    proba, y = make_overconfident(2, 400)
    labels = np.array(["no", "yes"])[y]
    for positive, column in (("no", 0), ("yes", 1)):
        report = calibration_report(labels, proba, pos_label=positive, n_resamples=2)
        text = written(report, tmp_path)
        (curve,) = reliability_curve(
            y == column, proba[:, column], n_bins=10, n_resamples=0
        )
        assert f"event: class {positive}" in text
        x, _ = points(text[text.index("<figure>") :]).T
        np.testing.assert_allclose(
            (x - LARGE_FRAME.left) / LARGE_FRAME.side, curve.predicted, atol=1e-4
        )
        with monkeypatch.context() as patched:  # the picture by matplotlib
            patched.setattr(
                displays.ReliabilityDisplay, "plot", lambda display, **_: display
            )
            ((drawn,),) = report.plot(n_bins=10, n_resamples=0).curves.values()
        np.testing.assert_allclose(drawn.predicted, curve.predicted)


def test_what_is_not_known_is_left_out(tmp_path):
    """No rows of several classes: no panels of classes; no resamples: no intervals."""
    proba, y = make_overconfident(4, 900)
    summary = CalibrationSummary(classes=np.arange(4)).update(y, proba)
    text = written(calibration_report(summary, n_resamples=3), tmp_path)
    assert text.count('role="img"') == 1 and "Each class" not in text
    proba, y = make_overconfident(2, 100)
    report = calibration_report(y, proba, n_resamples=0)
    assert (
        "nan"
        not in str(report)
        + report._repr_html_()
        + Page(written(report, tmp_path)).words
    )


def test_page_without_matplotlib_and_network(reports, tmp_path, monkeypatch):
    import sys

    for name in ("matplotlib", "matplotlib.pyplot", "socket"):
        monkeypatch.setitem(sys.modules, name, None)  # importing it fails
    assert "<svg" in written(reports("two"), tmp_path)


def points(picture):
    """(cx, cy) of the dots of a picture in its own units."""
    found = re.findall(r'class="dot" cx="([\d.]+)" cy="([\d.]+)"', picture)
    return np.array(found, dtype=float)


@pytest.mark.parametrize("frame", [LARGE_FRAME, SMALL_FRAME])
@pytest.mark.parametrize("weighted", [False, True])
def test_dots_lie_where_the_curve_says(frame, weighted):
    proba, y = make_overconfident(2, 800)
    weight = np.random.default_rng(0).random(800) if weighted else None
    (curve,) = reliability_curve(y, proba, sample_weight=weight, n_resamples=20)
    picture = draw_diagram([DiagramSeries(curve)], "a picture", frame)
    x, y_drawn = points(picture).T
    np.testing.assert_allclose(
        (x - frame.left) / frame.side, curve.predicted, atol=1e-4
    )
    np.testing.assert_allclose(
        1 - (y_drawn - frame.top) / frame.side, curve.observed, atol=1e-4
    )
    said = re.findall(
        r"predicted ([\d.]+)\nobserved ([\d.]+) \(90 %: ([\d.]+) to ([\d.]+)", picture
    )
    expected = [
        curve.predicted,
        curve.observed,
        curve.confidence_low,
        curve.confidence_high,
    ]
    np.testing.assert_allclose(np.array(said, float).T, expected, atol=5e-5)
    bars = re.search(r'class="interval" d="([^"]+)"', picture)[1]
    bars = np.array(re.findall(r"M([\d.]+) ([\d.]+)V([\d.]+)", bars), float)
    ends = 1 - (bars[:, 1:].T - frame.top) / frame.side
    np.testing.assert_allclose(
        ends, [curve.confidence_low, curve.confidence_high], atol=1e-4
    )
    band = re.search(r'class="band" d="M([^"]+)Z"', picture)[1]
    band = np.array([pair.split() for pair in band.split("L")], float)
    low, high = np.split(1 - (band[:, 1] - frame.top) / frame.side, 2)
    np.testing.assert_allclose(low, curve.consistency_low, atol=1e-4)
    np.testing.assert_allclose(high[::-1], curve.consistency_high, atol=1e-4)


def test_histogram_has_the_heights_of_the_shares():
    proba, y = make_overconfident(2, 800)
    (curve,) = reliability_curve(y, proba, n_resamples=0)
    path = re.search(
        r'class="bars tone0" d="M[\d. ]+([^"]+)"',
        draw_diagram([DiagramSeries(curve)], ""),
    )[1]
    tops = np.array(re.findall(r"V([\d.]+)H", path), float)
    top, bottom = LARGE_FRAME.bars
    shares = (bottom - tops) / (bottom - top) * curve.histogram.max()
    np.testing.assert_allclose(shares, curve.histogram, atol=1e-3)
    said = re.findall(
        r"<title>([\d.]+) to [\d.]+: ([\d.]+) % of",
        draw_diagram([DiagramSeries(curve)], ""),
    )
    np.testing.assert_allclose(
        np.array(said, float)[:, 1] / 100, curve.histogram, atol=6e-4
    )


def test_steps_are_the_isotonic_fit():
    proba, y = make_overconfident(2, 300)
    (curve,) = reliability_curve(y, proba, strategy="isotonic", n_resamples=0)
    path = format_steps_path(LARGE_FRAME, curve)
    places = np.array(re.findall(r"H([\d.]+)V", path), float)
    values = [float(v) for v in re.findall(r"(?:M[\d.]+ |V)([\d.]+)", path)]
    at = np.searchsorted(places, LARGE_FRAME.locate_x(curve.predicted))
    drawn = 1 - (np.array(values)[at] - LARGE_FRAME.top) / LARGE_FRAME.side
    np.testing.assert_allclose(drawn, curve.observed, atol=1e-4)
    assert len(values) < len(curve.observed) / 3, "points that repeat a value are drawn"


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_harmless(tmp_path, name):
    proba, y = make_overconfident(3, 60)
    labels = np.array([name, "b", "c"], dtype=object)
    report = calibration_report(labels[y], {name: proba}, n_resamples=2, labels=labels)
    text = written(report, tmp_path, title=name)
    page = Page(text)
    assert not page.all("script") and not set(text) & set("\x1b\x00\u202e")
    shown = sklearn_calib._show.make_printable(name)
    assert shown in page.text("bdi"), (
        "the name is not shown, or not isolated from its line"
    )
    assert len("".join(page.text("title"))) < 60_000


def test_a_calibrated_model_is_not_marked_and_another_is(tmp_path):
    proba, y = make_overconfident(2, 1000)
    report = calibration_report(y, proba, n_resamples=20)
    assert all(row.value > row.null_mean for row in report.rows)
    page = Page(written(report, tmp_path))
    marks = [strong for strong in page.all("strong") if strong.get("class") == "beyond"]
    assert len(marks) == len(report.rows) and "&#9650;" in report._repr_html_()


def test_the_mark_knows_which_way_is_better(monkeypatch):
    @measure(greater_is_better=True, range=(0, 1), perfect=1.0, poolable=True)
    def skill(predictions):
        """One less the Brier loss."""
        return 1 - brier_loss.evaluate(predictions)

    monkeypatch.setitem(sklearn_calib.metrics._MEASURE_REGISTRY, "skill", skill)
    proba, y = make_overconfident(2, 1000)
    report = calibration_report(
        y, proba, measures=["skill", "brier_loss"], n_resamples=20
    )
    assert report.rows[0].value < report.rows[0].null_mean
    assert report._repr_html_().count('class="beyond"') == 2


def test_of_many_classes_the_worst_and_the_most_frequent():
    rng = np.random.default_rng(0)
    codes = rng.choice(40, 4000, p=np.arange(1, 41) / 820)
    proba = rng.dirichlet(np.ones(40), 4000)
    curves = reliability_curve(
        codes, proba, labels=np.arange(40), multiclass="classwise", n_resamples=0
    )
    shares = np.bincount(codes, minlength=40) / len(codes)
    shown = choose_classes(curves, shares)
    errors = np.array([compute_binned_error(curve) for curve in curves])
    assert len(set(shown)) == 12
    assert set(shown[:6]) == set(np.argsort(errors)[-6:])
    others = [c for c in np.argsort(-shares) if c not in shown[:6]]
    assert shares[shown[6:]].tolist() == shares[others[:6]].tolist()
    assert choose_classes(curves[:12], shares[:12]) == list(range(12))


def test_shares_of_classes_with_weights(tmp_path):
    proba, y = make_overconfident(3, 200)
    weight = np.random.default_rng(1).random(200)
    report = calibration_report(y, proba, sample_weight=weight, n_resamples=2)
    text = written(report, tmp_path)
    for label in range(3):
        share = weight[y == label].sum() / weight.sum()
        assert f"<bdi>{label}</bdi><span>{100 * share:.1f} % of the rows</span>" in text


def luminance(colour):
    parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


@pytest.mark.parametrize(
    "palette", [LIGHT_COLOURS_CSS, DARK_COLOURS_CSS], ids=["light", "dark"]
)
def test_contrast(palette):
    colours = {
        name: luminance(c) for name, c in re.findall(r"--(\w+): (#\w{6})", palette)
    }

    def contrast(one, other):
        dark, light = sorted([colours[one], colours[other]])
        return (light + 0.05) / (dark + 0.05)

    for ground in ("page", "soft"):
        for text in ("text", "muted", "beyond"):
            assert contrast(text, ground) >= 4.5, (text, ground)
    for ground in ("page", "band"):
        for line in ("before", "after", "muted"):
            assert contrast(line, ground) >= 3, (line, ground)


def test_dark_narrow_and_printed(reports, tmp_path):
    """Each colour of the light page has one in the dark; paper is light; bodies never scroll."""
    text = written(reports("two"), tmp_path)
    assert '<meta name="color-scheme" content="light dark">' in text
    names = [
        re.findall(r"--(\w+):", palette)
        for palette in (LIGHT_COLOURS_CSS, DARK_COLOURS_CSS)
    ]
    assert names[0] == names[1]
    assert "@media screen and (prefers-color-scheme: dark)" in text
    assert (
        "@media print" in text and "size: A4" in text and "@media (max-width:" in text
    )
    style = "".join(Page(text).text("style"))
    used = set(re.findall(r"var\(--([a-z]+)[,)]", style)) - {"tone"}
    assert used <= set(names[0]) and not re.search(
        r"[{;]\s*(fill|stroke|color): #", style
    )
    assert text.count('<div class="wide"><table') == text.count("<table")


def rare_page(tmp_path, models=1, share=1.0):
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 40, 1500)
    y = (rng.random(1500) < p).astype(int)
    p = np.minimum(np.where(p < 1e-4, 0, p) * share, 0.9)
    given = {"a": p, "<b>": p**0.9, "c": p**0.8}
    report = calibration_report(y, dict([*given.items()][:models]), n_resamples=5)
    return report, Path(report.to_html(tmp_path / "rare.html")).read_text(
        encoding="utf-8"
    )


@pytest.mark.slow
def test_rare_events_are_drawn_on_log_odds(tmp_path):
    report, text = rare_page(tmp_path)
    assert (
        has_rare_events(report)
        and "axes are on log-odds" in text
        and "<title>beyond: exactly 0" in text
    )
    Page(text)
    often, plain = rare_page(tmp_path, share=20)  # the median is above 0.02
    assert not has_rare_events(often) and "log-odds)" not in plain
    three = calibration_report([0, 1, 2] * 5, np.full((15, 3), 1 / 3), n_resamples=5)
    assert not has_rare_events(three)


def test_dots_on_log_odds_lie_at_their_log_odds():
    score = np.repeat([0.0, 0.001, 0.01, 0.1], 40)
    y = np.r_[np.zeros(80), np.arange(80) % 20 == 0].astype(int)
    (curve,) = reliability_curve(y, score, strategy="isotonic", n_resamples=0)
    frame = LARGE_FRAME.make_log_odds_frame([curve])
    text = draw_diagram([DiagramSeries(curve)], "", frame)
    at = [float(x) for x in re.findall(r'class="dot" cx="([\d.]+)"', text)]
    odds = np.log(curve.predicted[1:] / (1 - curve.predicted[1:]))
    steps = np.diff(at[1:]) / np.diff(odds)
    assert np.ptp(steps) < 0.02 and frame.left < at[0] < frame.locate_x(
        frame.axis.margin_border_proba[0]
    )
    heights = [*map(float, re.findall(r"v(-[\d.]+)h6", text))]
    # a quarter, the most
    assert heights == [pytest.approx(-(frame.bars[1] - frame.bars[0]))]


@pytest.mark.slow
def test_two_models_beside_each_other(tmp_path):
    report, text = rare_page(tmp_path, models=2)
    page = Page(text)
    assert "Models compared" in page.words and "Murphy diagram" in page.words
    labels = [one["aria-label"] for tag, one in page.tags if "aria-label" in one]
    (said,) = (
        label
        for label in labels
        if label.startswith("Mean elementary scores of <b> less")
    )
    problems = [model.predictions.problems()[0] for model in report._models.values()]
    axis = LogitAxis.from_values(
        [np.quantile(one.score, [0.01, 0.99]) for one in problems]
    )
    found = decision_difference(
        problems[0].hit.astype(int), problems[1].score, problems[0].score, level=report.level,
        thresholds=expit(np.linspace(axis.low, axis.high, 99)), random_state=report._seed,
    )  # fmt: skip
    assert (
        f"at {100 * (found.high < 0).mean():.0f} % of the thresholds <b> is better"
        in said
    )
    (plane,) = (
        label for label in labels if label.startswith("Log loss by temperature")
    )
    losses = {row.model: row.value for row in report.rows if row.measure == "log_loss"}
    assert all(f"{name} {loss:.4f}" in plane for name, loss in losses.items())


@pytest.mark.slow
def test_the_plane_of_more_models_and_no_picture_of_one(tmp_path):
    _, three = rare_page(tmp_path, models=3)
    assert "What the log loss is made of" in three and "Murphy" not in three
    _, one = rare_page(tmp_path)
    assert "Models compared" not in one


def test_dots_have_intervals_of_the_level_of_the_report():
    proba, y = make_overconfident(2, 500)
    widths = []
    for level in (0.5, 0.99):
        report = calibration_report(y, proba, level=level, n_resamples=2)
        (series,) = make_diagram_series_by_model(report)["model"]
        widths.append(series.curve.confidence_high - series.curve.confidence_low)
    assert (widths[1] > 1.5 * widths[0]).all()


@pytest.mark.parametrize("last", [0.999, 1.0])
def test_the_number_of_a_dot_at_the_right_edge_is_inside_the_picture(last):
    p = np.repeat([0.1, 0.5, last], 200)
    y = np.tile([0] * 9 + [1], 60)
    page = draw_diagram([DiagramSeries(reliability_curve(y, p, n_bins=3))], "drawn")
    places = re.findall(r'<text x="([\d.]+)" y="[\d.]+" class="(start|end) bin">', page)
    assert len(places) == 3 and places[-1][1] == "end"
    assert all(kind == "end" or float(x) + 16 < 360 for x, kind in places)


def test_the_page_describes_measures_and_does_not_order_to_compute_them():
    drawn = make_meanings_section({"brier_loss", "smooth_calibration_error"}).picture
    assert "<dd>The mean squared distance between probabilities" in drawn
    assert "<dd>Smooth calibration error" in drawn
