"""What other packages call the methods, for suggestions in error messages."""

from collections.abc import Collection

from .._spelling import suggest_name

#: Other name -> (name here, where it is called so).
ELSEWHERE = {
    "sigmoid": ("platt", "scikit-learn's method='sigmoid'"),
    "logistic": ("platt", "logistic calibration of one score"),
    "logistic_calibration": ("platt", "netcal's LogisticCalibration"),
    "temperature_scaling": ("temperature", "temperature scaling"),
    "ts": ("temperature", "temperature scaling"),
    "ts_mix": ("temperature", "probmetrics' temperature scaling"),
    "histogram": ("histogram_binning", "histogram binning"),
    "binning": ("histogram_binning", "histogram binning"),
    "isotonic_regression": ("isotonic", "netcal's IsotonicRegression"),
    "beta_calibration": ("beta", "netcal's BetaCalibration"),
    "near_isotonic_regression": ("near_isotonic", "netcal's NearIsotonicRegression"),
    "ivap": ("venn_abers", "the inductive Venn-Abers predictor"),
    "svs": ("structured_vector", "probmetrics' SVS"),
    "sms": ("structured_matrix", "probmetrics' SMS"),
    "rpr": ("restricted_polynomial", "restricted polynomial regression"),
    "elite": ("trend_filtering_ensemble", "ELiTE, the ensemble of linear trend estimates"),
    "none": ("identity", "scores left as they are"),
    "bins": ("n_bins", "netcal's bins="),
}


def suggestion(name: str, names: Collection[str], prefix: str = "") -> str | None:
    """What to write for a name that is not among `names`; None where nothing is near."""
    plain = _plain(str(name))
    same = {_plain(other): found for other, found in ELSEWHERE.items()}.get(plain)
    if same and same[0] in names:
        return f"Write {prefix}{same[0]!r}, the same as {same[1]}"
    return suggest_name(name, names, "", prefix) or None


def _plain(name):
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")
