"""Write the picture and the figures of the README: ``python doc/front_page.py``.

The example is naive Bayes on the handwritten digits that scikit-learn brings, with the
split of the quick start and of ``sklearn-calib demo``. All other figures come from the
committed tables in ``benchmarks``. The command draws the picture, replaces the text of
the README between the two marks and the output of its quick start, and writes the
badges and the preview card.
"""

import contextlib
import csv
import io
import re
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from sklearn_calib import CalibratedModel
from sklearn_calib.metrics import log_loss, reliability_curve
from sklearn_calib.report._svg import LARGE_FRAME, DiagramSeries, draw_diagram
from sklearn_calib.report._written_report import (
    DARK_COLOURS_CSS,
    DIAGRAM_CSS,
    LIGHT_COLOURS_CSS,
)

HERE = Path(__file__).parent
README = HERE.parent / "README.md"
BENCHMARKS = HERE.parent / "benchmarks"
PICTURE = HERE / "static" / "before_and_after.svg"
BEGIN = "<!-- written by doc/front_page.py -->\n"
END = "<!-- until here -->\n"
OURS = 'CalibratedModel(nb, "{}")'
#: An excess counts as at most so many per cent: a mean should not rest on one task.
LARGEST_EXCESS = 50.0
#: A method harms a task if it raises the log loss by more than this share.
HARM = 0.01
_STYLE = f"""
svg {{{LIGHT_COLOURS_CSS}
}}
@media (prefers-color-scheme: dark) {{ svg {{{DARK_COLOURS_CSS}
}} }}
{DIAGRAM_CSS}.sheet {{ fill: var(--page); }}
.title {{ fill: var(--text); font: 600 15px system-ui, sans-serif; }}
.note {{ fill: var(--muted); font: 12px system-ui, sans-serif; }}
"""


def split_digits() -> dict[str, tuple[Any, Any]]:
    """Return features and labels of the rows to train on, to calibrate on and to test."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(
        X, y, test_size=0.4, stratify=y, random_state=0
    )
    X, X_cal, y, y_cal = train_test_split(
        X, y, test_size=0.5, stratify=y, random_state=0
    )
    return {"train": (X, y), "calibrate": (X_cal, y_cal), "test": (X_test, y_test)}


def fit_naive_bayes() -> GaussianNB:
    """Return the model that is recalibrated."""
    return GaussianNB(var_smoothing=1e-3).fit(*split_digits()["train"])


def predict_digits() -> dict[str, Any]:
    """Return the probabilities of the test rows, by the name in the table."""
    parts = split_digits()
    nb = fit_naive_bayes()
    models: dict[str, Any] = {"naive Bayes": nb}
    for method in ("sigmoid", "isotonic", "temperature"):
        name = f'CalibratedClassifierCV(nb, method="{method}")'
        models[name] = CalibratedClassifierCV(FrozenEstimator(nb), method=method)
    for method in ("default", "auto"):
        models[OURS.format(method)] = CalibratedModel(FrozenEstimator(nb), method)
    for model in list(models.values())[1:]:
        model.fit(*parts["calibrate"])
    X, _ = parts["test"]
    return {name: model.predict_proba(X) for name, model in models.items()}


def measure(y: Any, proba: Any) -> dict[str, float]:
    """Return what the README states about one set of predictions."""
    sure = proba.max(axis=1) > 0.99
    right = proba.argmax(axis=1) == y
    return {
        "rows": len(y),
        "sure": int(sure.sum()),
        "wrong": int((sure & ~right).sum()),
        "accuracy": float(right.mean()),
        "log_loss": log_loss(y, proba),
    }


def select_pictured(found: dict[str, Any]) -> dict[str, Any]:
    """Return the predictions in the picture, by title."""
    return {
        "naive Bayes": found["naive Bayes"],
        "recalibrated": found[OURS.format("default")],
    }


# -- the tables --------------------------------------------------------------------


def read_table(name: str) -> list[dict[str, str]]:
    """Return the rows of a committed table."""
    with open(BENCHMARKS / name, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def read_arena() -> dict[str, dict[str, np.ndarray]]:
    """Return log losses of the arena's tasks: {classes: {method: losses}}.

    Only methods that were measured on every task with so many classes are included.
    """
    keys = ("source", "data set", "model", "n", "draw", "k")
    packages = {
        tuple(row[key] for key in keys): row for row in read_table("arena/packages.csv")
    }
    tasks: dict[tuple[str, ...], dict[str, str]] = {}
    for row in read_table("arena/log_loss.csv"):
        task = tuple(row[key] for key in keys)
        tasks[task] = row | packages[task]
    found: dict[str, dict[str, np.ndarray]] = {}
    for classes in ("two", "several"):
        rows = [
            row for row in tasks.values() if (row["k"] == "2") == (classes == "two")
        ]
        methods = [m for m in rows[0] if m not in (*keys, "machine")]
        found[classes] = {
            method: np.array([float(row[method]) for row in rows])
            for method in methods
            if all(row.get(method) for row in rows)
        }
        found[classes]["rows"] = np.array([int(row["n"]) for row in rows])
    return found


def summarize_method(losses: dict[str, np.ndarray], method: str) -> tuple[float, float]:
    """Return excess over the best method of each task, and harm, both in per cent."""
    best = np.min([v for name, v in losses.items() if name != "rows"], axis=0)
    excess = np.minimum(100 * (losses[method] / best - 1), LARGEST_EXCESS)
    harmed = losses[method] > (1 + HARM) * losses["identity"]
    return float(excess.mean()), float(100 * harmed.mean())


def list_packages(arena: dict[str, dict[str, np.ndarray]]) -> list[list[str]]:
    """Return rows of the table of packages.

    Other packages are represented by their method with the smallest excess, which is
    chosen by the same tasks, for two and for several classes separately.
    """
    rows = []
    for method in ("auto", "default"):
        cells = [f'`"{method}"`']
        for losses in arena.values():
            cells.append(_write_method("", *summarize_method(losses, method)))
        rows.append(cells)
    for package in ("probmetrics", "probcal", "netcal", "scikit-learn"):
        cells = [package]
        for losses in arena.values():
            found = [
                (summarize_method(losses, name), name)
                for name in losses
                if name.endswith(f"({package})")
            ]
            if not found:
                cells.append("not offered")
                continue
            (excess, harm), name = min(found)
            cells.append(_write_method(name.partition(" (")[0], excess, harm))
        rows.append(cells)
    cells = ["no recalibration"]
    for losses in arena.values():
        cells.append(_write_method("", *summarize_method(losses, "identity")))
    return [*rows, cells]


def _write_method(name, excess, harm):
    stated = f"{excess:.1f} %, {harm:.0f} %"
    return f"{stated} ({name})" if name else stated


def count_lost_tasks(
    arena: dict[str, dict[str, np.ndarray]],
) -> tuple[int, int, int]:
    """Return the tasks on which a method of another package beats "auto".

    Returns
    -------
    lost, tasks, methods : int
        The number of these tasks, of all tasks, and of the methods of other packages.
    """
    lost = tasks = 0
    methods = set()
    for losses in arena.values():
        others = {name: each for name, each in losses.items() if name.endswith(")")}
        methods |= {*others}
        best = np.min([*others.values()], axis=0)
        lost += int((best < losses["auto"]).sum())
        tasks += len(best)
    return lost, tasks, len(methods)


def list_slower_cases() -> dict[str, tuple[int, int, float]]:
    """Return {peer: (timed cases in which it is faster, cases, largest factor)}."""
    found: dict[str, tuple[int, int, float]] = {}
    for row in read_table("peers/results.csv"):
        if not row["ratio"]:
            continue
        faster, cases, factor = found.get(row["peer"], (0, 0, 1.0))
        # below 1.1 it is not distinguished from equal times
        slower = 1 / float(row["ratio"])
        faster += slower > 1.1
        found[row["peer"]] = (faster, cases + 1, max(factor, slower))
    return found


def read_latency() -> dict[str, dict[str, float]]:
    """Return microseconds of one call of `predict_proba` for two classes, by model."""
    return {
        row["model"]: {"one": float(row["us_1"]), "batch": float(row["us_10000"])}
        for row in read_table("scale/one_row.csv")
        if row["classes"] == "2" and row["us_1"]
    }


def write_table(header: list[str], rows: list[list[str]]) -> str:
    """Return a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def write_block(found: dict[str, Any]) -> str:
    """Return the text between the marks, for predictions of the test rows."""
    arena = read_arena()
    parts = [*describe_example(found), *describe_arena(arena), *describe_losses(arena)]
    return "\n".join(parts) + "\n"


def describe_example(found: dict[str, Any]) -> list[str]:
    """Return what becomes of the model in the picture, and the first table."""
    y = split_digits()["test"][1]
    n_calibration = len(split_digits()["calibrate"][1])
    figures = {name: measure(y, proba) for name, proba in found.items()}
    before, after = figures["naive Bayes"], figures[OURS.format("default")]
    text = wrap(
        f"Naive Bayes is over 99 % sure of its answer in {before['sure']} of "
        f"{before['rows']} test images of handwritten digits, and wrong in "
        f"{before['wrong']} of them. Recalibrated on {n_calibration} other images it is "
        f"that sure in {after['sure']}, and wrong in {after['wrong'] or 'none'}. The log "
        f"loss falls from {before['log_loss']:.2f} to {after['log_loss']:.2f}."
    )
    rows = [
        [
            name if name == "naive Bayes" else f"`{name}`",
            f"{each['log_loss']:.2f}",
            f"{each['accuracy']:.3f}",
            f"{each['sure']}, {each['wrong']}",
        ]
        for name, each in figures.items()
    ]
    header = [
        "the same model, the same images",
        "log loss",
        "accuracy",
        "over 99 % sure, wrong",
    ]
    return [text, write_table(header, rows)]


def describe_arena(arena: dict[str, dict[str, np.ndarray]]) -> list[str]:
    """Return the table of packages with its explanation, and the time of one row."""
    n_two, n_several = (len(losses["rows"]) for losses in arena.values())
    text = wrap(
        f"On {n_two + n_several} tasks of a [comparison](benchmarks/arena/README.md), by "
        "which nothing in this package was chosen. Excess: by how much the log loss is "
        "above that of the best method of each task, mean. Harm: the share of tasks on "
        "which the log loss is more than 1 % above that of no recalibration. Other "
        "packages: their best method, chosen afterwards."
    )
    header = [
        "excess, harm",
        f"two classes ({n_two} tasks)",
        f"several classes ({n_several})",
    ]
    us = {name: f"{time['one']:.0f}" for name, time in read_latency().items()}
    latency = wrap(
        f"One row through `predict_proba`: {us['the classifier']} µs for a logistic "
        f'regression, {us["default"]} with `"default"`, {us["auto"]} with `"auto"`, '
        f"{us['scikit-learn, sigmoid']} with scikit-learn's sigmoid."
    )
    return [text, write_table(header, list_packages(arena)), latency]


def describe_losses(arena: dict[str, dict[str, np.ndarray]]) -> list[str]:
    """Return the cases in which something else is better."""
    lost, tasks, methods = count_lost_tasks(arena)
    several = arena["several"]
    few = {name: each[several["rows"] < 1000] for name, each in several.items()}
    harm = {
        method: f"{summarize_method(few, method)[1]:.0f} %"
        for method in ("default", "auto")
    }
    ms = {name: f"{us['batch'] / 1000:.1f} ms" for name, us in read_latency().items()}
    slower = ", ".join(
        f"{peer} ({faster} of {cases}, {factor:.1f} times)"
        for peer, (faster, cases, factor) in list_slower_cases().items()
        if faster
    )
    items = [
        f"On {lost} of the {tasks} tasks at least one of {methods} methods of other "
        'packages has a lower log loss than `"auto"`.',
        "With several classes and fewer than 1000 rows the default harms "
        f'{harm["default"]} of the tasks, `"auto"` {harm["auto"]}.',
        f"10,000 rows in one call: {ms['default']} by the default, "
        f"{ms['scikit-learn, sigmoid']} by scikit-learn's sigmoid.",
        "Calls that are [faster elsewhere](benchmarks/README.md), at most by this factor: "
        f"{slower}.",
    ]
    return ["Where it loses:\n", "".join(wrap(f"* {item}", "  ") for item in items)]


def wrap(text: str, indent: str = "") -> str:
    """Return a paragraph in lines as long as those of the README."""
    lines = textwrap.wrap(
        text,
        140,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines) + "\n"


def replace_block(readme: str, block: str) -> str:
    """Return the README with another text between the marks."""
    before, rest = readme.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}{block}{END}{after}"


def replace_output(readme: str) -> str:
    """Return the README with what its quick start prints now, long lines cut."""
    (code,) = re.findall(r"```python\n(.*?)```", readme, re.S)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    lines = [
        line if len(line) <= 90 else textwrap.shorten(line, 80, placeholder=" ...")
        for line in printed.getvalue().splitlines()
    ]
    output = "\n".join(["```text", *lines, "```"])
    return re.sub(r"```text\n.*?```", lambda _: output, readme, flags=re.S)


# -- the picture and the badges ----------------------------------------------------


def draw_picture(y: Any, proba: dict[str, Any]) -> str:
    """Return both reliability diagrams side by side; light or dark as the reader's screen."""
    parts = []
    width = LARGE_FRAME.width + 20
    for number, (title, values) in enumerate(proba.items()):
        (curve,) = reliability_curve(y, values, n_bins=10)
        found = measure(y, values)
        note = f"above 99 %: {found['sure']} rows, {found['wrong']} wrong"
        (steps,) = reliability_curve(y, values, strategy="isotonic", n_resamples=0)
        series = DiagramSeries(curve, steps, number)
        diagram = draw_diagram([series], title, number_bins=False)
        left = 10 + number * width
        parts.append(
            f'<text class="title" x="{left + LARGE_FRAME.left}" y="26">{title}</text>\n'
            f'<text class="note" x="{left + LARGE_FRAME.left}" y="44">'
            f"{note}; log loss {found['log_loss']:.2f}</text>\n"
            f'<svg x="{left}" y="50" width="{LARGE_FRAME.width}" height="{LARGE_FRAME.height}">'
            f"{diagram}</svg>"
        )
    width = 20 + 2 * width
    height = LARGE_FRAME.height + 60
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}">\n<style>{_STYLE}</style>\n'
        f'<rect class="sheet" width="{width}" height="{height}" rx="8"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def draw_card(y: Any, proba: dict[str, Any], path: Path) -> None:
    """Write the picture that is shown beside a link to the pages, 1200 x 630."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(12, 6.3), dpi=100)
    for ax, (title, values) in zip(axes, proba.items(), strict=True):
        (curve,) = reliability_curve(y, values, n_bins=10)
        ax.plot([0, 1], [0, 1], "--", color="0.5")
        ax.plot(curve.predicted, curve.observed, "o-", color="#1f5f99", ms=12, lw=3)
        loss = measure(y, values)["log_loss"]
        ax.set_title(f"{title}: log loss {loss:.2f}", fontsize=22)
        ax.set(xlim=(0, 1.02), ylim=(0, 1.02), xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
        ax.tick_params(labelsize=18)
        ax.set_aspect("equal")
    figure.suptitle(
        "sklearn-calib: probability calibration", fontsize=26, weight="bold"
    )
    figure.tight_layout()
    figure.savefig(path, metadata={"Software": None})
    plt.close(figure)


def list_badges() -> dict[str, tuple[str, str]]:
    """Return the badges from what the project's description declares: {file: (left, right)}."""
    text = (HERE.parent / "pyproject.toml").read_text(encoding="utf-8")
    licence = re.search(r'(?m)^license = "(.+)"', text)[1]
    versions = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', text)
    oldest = re.search(r'"scikit-learn>=([\d.]+)"', text)[1]
    return {
        "badge_licence": ("licence", licence),
        "badge_python": ("Python", f"{versions[0]} to {versions[-1]}"),
        "badge_scikit_learn": ("scikit-learn", f"{oldest} or later"),
    }


def draw_badge(left: str, right: str) -> str:
    """Return a badge as SVG."""
    widths = [10 + round(6.6 * len(text)) for text in (left, right)]
    width = sum(widths)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" '
        f'aria-label="{left}: {right}">\n'
        f'<clipPath id="c"><rect width="{width}" height="20" rx="3"/></clipPath>\n'
        f'<g clip-path="url(#c)"><rect width="{width}" height="20" fill="#1f5f99"/>'
        f'<rect width="{widths[0]}" height="20" fill="#444"/></g>\n'
        '<g fill="#fff" font-family="Verdana, DejaVu Sans, sans-serif" font-size="11" '
        'text-anchor="middle">\n'
        f'<text x="{widths[0] / 2}" y="14">{left}</text>'
        f'<text x="{widths[0] + widths[1] / 2}" y="14">{right}</text></g>\n</svg>\n'
    )


def main() -> None:
    """Write all files."""
    found = predict_digits()
    y = split_digits()["test"][1]
    picture = draw_picture(y, select_pictured(found))
    PICTURE.write_text(picture, encoding="utf-8")
    draw_card(y, select_pictured(found), HERE / "static" / "card.png")
    for name, words in list_badges().items():
        badge = HERE / "static" / f"{name}.svg"
        badge.write_text(draw_badge(*words), encoding="utf-8")
    block = write_block(found)
    readme = replace_block(README.read_text(encoding="utf-8"), block)
    README.write_text(replace_output(readme), encoding="utf-8")
    print(block)


if __name__ == "__main__":
    main()
