"""The reference: `ExportedMap`."""

from sklearn_calib.export import from_dict


def predict(document, rows):
    return from_dict(document).predict_proba(rows)
