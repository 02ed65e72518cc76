"""Reports of many kinds, for a browser to open: of 2, 10 and 100 classes, groups, any names."""

from pathlib import Path

import numpy as np

from sklearn_calib.datasets import make_overconfident
from sklearn_calib.groups import group_calibration
from sklearn_calib.inference import validation_summary
from sklearn_calib.report import calibration_report

HOSTILE = [
    '"><script>document.title="run"</script>',
    "<img src=http://example.com/x.png onerror=alert(1)>",
    "</title></style><b>",
    "w" * 500,
    "\u202eabc שלום \x1b[1m",
    "a\nb {0} %s $x_{$ ]]>",
]


def write(folder: Path) -> list[Path]:
    """Write them below a folder; the paths."""
    pages = [Path(r.to_html(folder / f"{name}.html")) for name, r in _reports().items()]
    for name, text in _results().items():
        pages.append(folder / f"{name}.html")
        pages[-1].write_text(text, encoding="utf-8")
    return pages


def _reports():
    options = {"n_resamples": 4, "check_columns": False}
    found = {}
    for n_classes in (2, 10, 100):
        proba, y = make_overconfident(n_classes, 1500)
        softer = proba**0.7 / (proba**0.7).sum(axis=1, keepdims=True)
        models = {"raw": proba, "softer": softer} if n_classes > 2 else proba
        labels = np.arange(n_classes)
        found[f"classes_{n_classes}"] = calibration_report(
            y, models, labels=labels, **options
        )
    found["classes_2"].advise()
    proba, y = make_overconfident(2, 600)
    groups = {"region": np.array(["north", "south"])[y], "age": np.arange(600) % 4}
    found["groups"] = calibration_report(y, proba, by=groups, **options)
    proba, y = make_overconfident(len(HOSTILE), 600)
    names, models = np.array(HOSTILE), {name: proba for name in HOSTILE[:3]}
    groups = {HOSTILE[0]: names[np.arange(600) % len(names)], HOSTILE[3]: names[y]}
    found["hostile_names"] = calibration_report(
        names[y], models, labels=HOSTILE, source=HOSTILE[0], by=groups, **options
    )
    return found


def _results():
    """What a notebook shows of results, as pages: with hostile names of groups."""
    proba, y = make_overconfident(2, 600)
    groups = np.array(HOSTILE)[np.arange(600) % len(HOSTILE)]
    shown = {
        "result_of_groups": group_calibration(
            y, proba, {HOSTILE[0]: groups}, n_resamples=19
        ),
        "result_of_validation": validation_summary(y, proba, n_resamples=19),
    }
    frame = (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>{0}</title></head>'
        "<body><main><h1>{0}</h1>{1}</main></body></html>"
    )
    return {
        name: frame.format(name, found._repr_html_()) for name, found in shown.items()
    }
