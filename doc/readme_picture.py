"""The picture and the figures at the top of the README: ``python doc/readme_picture.py``.

Naive Bayes on the handwritten digits that scikit-learn brings, as in ``sklearn-calib
demo``, with the dots and bands of a report.
"""

from pathlib import Path
from typing import Any

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from sklearn_calib.metrics import log_loss, reliability_curve
from sklearn_calib.recalibrators import get_recalibrator
from sklearn_calib.report._svg import LARGE, DiagramSeries, draw_diagram
from sklearn_calib.report._written import DARK, DIAGRAM, LIGHT

PICTURE = Path(__file__).parent / "static" / "before_and_after.svg"
_STYLE = f"""
svg {{{LIGHT}
}}
@media (prefers-color-scheme: dark) {{ svg {{{DARK}
}} }}
{DIAGRAM}.sheet {{ fill: var(--page); }}
.title {{ fill: var(--text); font: 600 15px system-ui, sans-serif; }}
.note {{ fill: var(--muted); font: 12px system-ui, sans-serif; }}
"""


def naive_bayes() -> dict[str, tuple[Any, Any]]:
    """Its probabilities of the rows to calibrate on and of the test rows, with their labels."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(
        X, y, test_size=0.4, stratify=y, random_state=0
    )
    X, X_calib, y, y_calib = train_test_split(
        X, y, test_size=0.5, stratify=y, random_state=0
    )
    model = GaussianNB(var_smoothing=1e-3).fit(X, y)
    parts = {"calibrate": (X_calib, y_calib), "test": (X_test, y_test)}
    return {name: (model.predict_proba(X), y) for name, (X, y) in parts.items()}


def predictions() -> dict[str, Any]:
    """The labels of the test rows as "y", and their probabilities by title."""
    parts = naive_bayes()
    before, y = parts["test"]
    after = get_recalibrator("auto").fit(*parts["calibrate"]).predict_proba(before)
    return {"y": y, "naive Bayes": before, 'recalibrated ("auto")': after}


def figures(y: Any, proba: Any) -> dict[str, float]:
    """What the README says about one set of predictions."""
    sure = proba.max(axis=1) > 0.99
    right = proba.argmax(axis=1) == y
    return {
        "rows": len(y),
        "sure": int(sure.sum()),
        "wrong": int((sure & ~right).sum()),
        "accuracy": float(right.mean()),
        "log_loss": log_loss(y, proba),
    }


def picture(y: Any, proba: dict[str, Any]) -> str:
    """Both reliability diagrams side by side; light or dark as the reader's screen."""
    parts, width = [], LARGE.width + 20
    for number, (title, values) in enumerate(proba.items()):
        (curve,) = reliability_curve(y, values, n_bins=10)
        found = figures(y, values)
        said = f"above 99 %: {found['sure']} rows, {found['wrong']} wrong"
        (steps,) = reliability_curve(y, values, strategy="isotonic", n_resamples=0)
        left = 10 + number * width
        parts.append(
            f'<text class="title" x="{left + LARGE.left}" y="26">{title}</text>\n'
            f'<text class="note" x="{left + LARGE.left}" y="44">'
            f"{said}; log loss {found['log_loss']:.2f}</text>\n"
            f'<svg x="{left}" y="50" width="{LARGE.width}" height="{LARGE.height}">'
            f"{draw_diagram([DiagramSeries(curve, steps, number)], title)}</svg>"
        )
    width, height = 20 + 2 * width, LARGE.height + 60
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}">\n<style>{_STYLE}</style>\n'
        f'<rect class="sheet" width="{width}" height="{height}" rx="8"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


if __name__ == "__main__":
    found = predictions()
    y = found.pop("y")
    PICTURE.write_text(picture(y, found), encoding="utf-8")
    for name, proba in found.items():
        print(name, figures(y, proba))
