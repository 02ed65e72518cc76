"""Write tests/data/maps and tests/data/pickles: ``python tests/export/store_maps.py``.

The files of a version stay as they are: later versions must read them. Run it for a method that has
none yet; existing files are left alone.
"""

import json
import pickle
import warnings
from pathlib import Path

from export_cases import METHODS, fitted, tabulate
from sklearn.pipeline import make_pipeline

from sklearn_calib import __version__
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.export import from_dict, from_json, simplify, to_dict, to_json
from sklearn_calib.recalibrators import PlattScaling, PriorShift

DATA = Path(__file__).parent.parent / "data"
LARGEST = 20_000  # bytes; larger maps are simplified


def document(method, name):
    found = to_dict(method, **tabulate(name))
    if len(json.dumps(found)) > LARGEST:
        found = to_dict(simplify(found, 1e-2))
    return found


def portable(method):
    """A pickle that numpy 1 reads too."""
    text = pickle.dumps(method, protocol=2)
    return text.replace(b"cnumpy._core.multiarray\n", b"cnumpy.core.multiarray\n")


def read(path):
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


#: Small maps in which every kind of node comes, for the folder of the present schema.
SMALL = {
    ("identity", 2): {},
    ("platt", 2): {"date": "2026-11-23", "columns": {"label": "default", "scores": ["pd"]}},
    ("prior_shift.mean", 2): {},
    ("pipeline.mean", 2): {},
    ("isotonic", 2): {},
    ("isotonic.centred", 2): {},
    ("spline", 2): {},
    ("beta", 3): {},
    ("matrix", 3): {},
    ("ordinal", 3): {},
    ("one_vs_rest.shared", 3): {},
    ("one_vs_one", 3): {},
    ("top_label", 3): {},
    ("multiclass_binning", 3): {},
    ("auto", 2): {},
    ("default", 2): {},
    ("angular", 2): {},
    ("histogram_binning", 3): {},
    ("restricted_polynomial", 2): {},
}
MEANS = {
    "prior_shift.mean": PriorShift(mean=0.2),
    "pipeline.mean": make_pipeline(PlattScaling(), PriorShift(mean=0.2)),
}


def store_present_schema():
    """Documents of the present schema, with what they give."""
    folder = DATA / "maps" / f"schema-{to_dict(fitted('identity', 2, 60))['schema']}"
    folder.mkdir(exist_ok=True)
    expected = read(folder / "expected" / "predictions.json")
    for (name, k), said in SMALL.items():
        path = folder / f"{name}-{k}.json"
        if path.exists():
            continue
        rows, y = make_overconfident(k, 60, random_state=1)
        method = MEANS[name].fit(rows, y) if name in MEANS else fitted(name, k, 60)
        if name == "angular":
            method = simplify(to_dict(method, tabulate=1e-3), 0.05)
        to_json(method, path, **said)
        new = make_overconfident(k, 12, random_state=5)[0]
        expected[path.stem] = from_json(path).predict_proba(new).tolist()
    (folder / "expected").mkdir(exist_ok=True)
    (folder / "expected" / "predictions.json").write_text(json.dumps(expected), encoding="utf-8")


def main():
    maps, pickles = DATA / "maps", DATA / "pickles" / __version__
    predictions = maps / "expected" / "predictions.json"
    for folder in (predictions.parent, pickles):
        folder.mkdir(parents=True, exist_ok=True)
    expected, predicted = read(predictions), read(pickles / "predictions.json")
    for name in METHODS:
        for k in (2, 3):
            path = maps / f"{name}-{k}.json"
            if path.exists():
                continue
            method = fitted(name, k, 200)
            found = document(method, name)
            to_json(found, path)
            rows = make_overconfident(k, 12, random_state=5)[0]
            expected[path.stem] = from_dict(found).predict_proba(rows).tolist()
            (pickles / f"{path.stem}.pickle").write_bytes(portable(method))
            predicted[path.stem] = method.predict_proba(rows).tolist()
    store_present_schema()
    predictions.write_text(json.dumps(expected), encoding="utf-8")
    (pickles / "predictions.json").write_text(json.dumps(predicted), encoding="utf-8")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
