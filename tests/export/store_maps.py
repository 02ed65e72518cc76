"""Write tests/data/maps: ``python tests/export/store_maps.py``.

From the first release on the files stay as they are: later versions must read them. Run
it for a method that has none yet; existing files are left alone.
"""

import json
import warnings
from pathlib import Path

from export_cases import METHODS, fitted, tabulate
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from sklearn_calib.datasets import make_overconfident
from sklearn_calib.export import from_json, simplify, to_dict, to_json
from sklearn_calib.recalibrators import PlattScaling, PriorShift

DATA = Path(__file__).parent.parent / "data"
LARGEST = 20_000  # bytes; larger maps are simplified


#: Maps that methods with their defaults do not have.
MEANS = {
    "prior_shift.mean": PriorShift(mean=0.2),
    "pipeline.mean": make_pipeline(PlattScaling(), PriorShift(mean=0.2)),
}
#: A default that gives a weight to scores with short tails, unlike on 200 rows.
SQUEEZED, SQUEEZED_ROWS = "default.squeezed", 300
#: What the user states of a map.
SAID = {
    "platt-2": {"date": "2026-11-23", "columns": {"label": "default", "scores": ["pd"]}}
}


def fit_copy_to_labels_unless_constant(name, k):
    if name == SQUEEZED:
        return fitted("default", k, SQUEEZED_ROWS)
    if name in MEANS:
        return clone(MEANS[name]).fit(*make_overconfident(k, 200, random_state=1))
    return fitted(name, k, 200)


def write_document(name, k, path):
    found = to_dict(
        fit_copy_to_labels_unless_constant(name, k),
        **tabulate(name),
        **SAID.get(path.stem, {}),
    )
    if len(json.dumps(found)) > LARGEST:
        found = to_dict(simplify(found, 1e-2))
    to_json(found, path)


def main():
    maps = DATA / "maps"
    predictions = maps / "expected" / "predictions.json"
    predictions.parent.mkdir(parents=True, exist_ok=True)
    expected = {}
    if predictions.exists():
        expected = json.loads(predictions.read_text(encoding="utf-8"))
    cases = [(name, k) for name in METHODS for k in (2, 3)]
    cases += [(name, 2) for name in (*MEANS, SQUEEZED)]
    for name, k in cases:
        path = maps / f"{name}-{k}.json"
        if path.exists():
            continue
        write_document(name, k, path)
        rows = make_overconfident(k, 12, random_state=5)[0]
        expected[path.stem] = from_json(path).predict_proba(rows).tolist()
    predictions.write_text(json.dumps(expected), encoding="utf-8")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
