"""Write tests/data/maps and tests/data/pickles: ``python tests/export/store_maps.py``.

The files of a version stay as they are: later versions must read them. Run it for a method that has
none yet; existing files are left alone.
"""

import json
import pickle
import warnings
from pathlib import Path

from export_cases import METHODS, fitted, tabulate

from sklearn_calib import __version__
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.export import from_dict, simplify, to_dict, to_json

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
    return json.loads(path.read_text()) if path.exists() else {}


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
    predictions.write_text(json.dumps(expected))
    (pickles / "predictions.json").write_text(json.dumps(predicted))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
