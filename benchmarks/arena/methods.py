"""The methods that compete: every registered one, and CalArena's list from probmetrics."""

import warnings

from custom_calibrators import CUSTOM_CALIBRATORS

BASE = "identity"  # no recalibration
# rows in time, ordered classes, other rates
ELSEWHERE = (
    "online",
    "ordinal",
    "prior_shift",
)
OURS = {name.partition("-")[2]: factory for name, factory in CUSTOM_CALIBRATORS.items()}
OURS = {name: factory for name, factory in OURS.items() if name not in ELSEWHERE}


def theirs():
    """{name: (factory, "both", "two" or "several" classes)} as in CalArena's run_benchmark.py.

    A method whose package is not installed is skipped, and said to be.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            from probmetrics import calibrators as c
        except ImportError as error:
            print(f"skipped probmetrics: {error}")
            return {}

    def rest(factory):
        return lambda: c.MulticlassOneVsRestCalibrator(factory())

    uniform = lambda: c.BinaryHistogramBinningCalibrator(strategy="uniform")  # noqa: E731
    quantile = lambda: c.BinaryHistogramBinningCalibrator(strategy="quantile")  # noqa: E731
    found = {
        "Hist-uniform": (uniform, rest(uniform)),
        "Hist-quantile": (quantile, rest(quantile)),
        "Scaling-Binning": (c.BinaryPlattBinnerCalibrator, None),
        "BBQ": (c.NetcalBBQCalibrator, c.NetcalBBQCalibrator),
        "Isotonic": (lambda: c.SklearnCalibrator(method="isotonic", cv="prefit"),) * 2,
        "CIR": (
            c.CenteredIsotonicRegressionCalibrator,
            rest(c.CenteredIsotonicRegressionCalibrator),
        ),
        "Venn-Abers": (c.BinaryVennAbersCalibrator, c.VennAbersCalibrator),
        "TS": (c.TemperatureScalingCalibrator,) * 2,
        "ETS": (c.ETSCalibrator,) * 2,
        "Platt-probs": (
            lambda: c.SklearnCalibrator(method="sigmoid", cv="prefit"),
            None,
        ),
        "Platt-logits": (lambda: c.BinaryLogisticCalibrator(type="affine"), None),
        "Quadratic": (lambda: c.BinaryLogisticCalibrator(type="quadratic"), None),
        "Beta": (c.BetacalCalibrator, None),
        "Spline": (c.MLISplineCalibrator,) * 2,
        "CDF-Spline": (c.CDFSplineCalibrator, None),
        "VS": (None, c.VectorScalingCalibrator),
        "SVS": (None, c.SVSCalibrator),
        "MS": (None, c.MatrixScalingCalibrator),
        "SMS": (None, c.SMSCalibrator),
        "Dirichlet": (
            None,
            lambda: c.DirichletCalibrator(n_cv=0, reg_lambda=1e-3, reg_mu=1e-3),
        ),
        "Kernel": (c.KernelCalibrator,) * 2,
        "XGBoost": (c.XGBoostCalibrator,) * 2,
        "LightGBM": (c.LightGBMCalibrator,) * 2,
        "CatBoost": (c.CatBoostCalibrator,) * 2,
    }
    kept = {}
    for name, (two, several) in found.items():
        try:
            (two or several)()
        except ImportError as error:
            print(f"skipped {name} of probmetrics: {error}")
            continue
        kept[f"{name} (probmetrics)"] = (two, several)
    return kept


def competitors():
    """{name: (factory for two classes or None, factory for several classes or None)}."""
    return {name: (factory, factory) for name, factory in OURS.items()} | theirs()
