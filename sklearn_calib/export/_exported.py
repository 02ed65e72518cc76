"""A map that was read: a recalibrator that needs no fit."""

import sys
from typing import Any

from .. import meta
from .._typing import AnyArray, ArrayLike, Self
from ..canonical import canonical_labels, canonical_proba, check_same_length, soft_rows
from ..exceptions import refuse
from ..recalibrators import Capabilities, Recalibrator, all_recalibrators
from ._describe import description
from ._document import read_document
from ._nodes import takes_absent
from ._tree import read_nodes


class ExportedMap(Recalibrator):
    """A map read from a document: it predicts with numpy alone, without the estimator.

    It needs no fit and stands wherever a fitted recalibrator does: in a pipeline, a
    `CalibratedModel`, a display, a measure's ``recalibrator=``. ``fit`` checks that rows and labels
    are those of the map and changes nothing.

    Parameters
    ----------
    document : dict
        What `to_dict` returned. `from_dict` checks it and gives an instance.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels of the document.
    n_features_in_ : int
        The number of classes.

    Raises
    ------
    ValueError
        At the first use, a document that is damaged, see `from_dict`.

    Notes
    -----
    Probabilities and `canonical_proba` of logits are both taken, whatever the "input" of the
    document, which says what the scores of a program in another language are. While scikit-learn
    dispatches to the array API, tensors are mapped on their device where all nodes are arithmetic
    (the tag ``array_api_support`` of what `from_dict` gave says so: temperature, vector, matrix,
    the logistic family, offsets). Otherwise they are copied to the host, and the result is an array
    of numpy.

    Examples
    --------
    >>> from sklearn_calib.export import ExportedMap, to_dict
    >>> from sklearn_calib.recalibrators import PlattScaling
    >>> fitted = PlattScaling().fit([0.1, 0.4, 0.6, 0.9], ["no", "no", "yes", "yes"])
    >>> exported = ExportedMap(to_dict(fitted))
    >>> bool((exported.predict_proba([0.3]) == fitted.predict_proba([0.3])).all())
    True
    >>> exported.predict([0.2, 0.95]).tolist()
    ['no', 'yes']
    """

    capabilities = Capabilities(multiclass="native", cost="O(n), nothing is learned")
    _parameter_constraints: dict = {"document": [dict]}  # noqa: RUF012

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        given = self.document if isinstance(self.document, dict) else {}
        said = given.get("estimator", {})
        name = f"{said.get('name', 'unknown')!r}{', edited' * ('edited' in said)}"
        return f"<ExportedMap of {name}, {len(given.get('classes', []))} classes>"

    def _ready(self, found=None):
        """Keep the nodes, which are otherwise read at each use; `found` is the document, read."""
        found = found or read_document(self.document)
        self.classes_, self.n_features_in_ = found.classes, len(found.classes)
        self._root = found.root
        return self

    def __getstate__(self) -> dict[str, Any]:
        """The document alone: whoever loads it reads and checks it."""
        follows = ("classes_", "n_features_in_", "_root")
        return {k: v for k, v in super().__getstate__().items() if k not in follows}

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = "_root" in vars(self) and self._maps_tensors()
        return tags

    def __getattr__(self, name: str) -> Any:
        if name in ("classes_", "n_features_in_", "_root") and "document" in vars(self):
            self._ready()
            return vars(self)[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        *,
        soft_labels: bool = False,
    ) -> Self:
        """Check that rows and labels are those of the map; nothing is learned.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_classes), (n_samples, 1) or (n_samples,)
            Probabilities.
        y : array-like of shape (n_samples,)
            Labels, all of them classes of the map.
        sample_weight : array-like of shape (n_samples,), default=None
            Not used.
        classes : array-like of shape (n_classes,), default=None
            If given, they must be those of the map, in the same order.
        soft_labels : bool, default=False
            Whether `y` holds shares of these classes, as `Recalibrator.fit` takes them.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            Columns or labels that the map does not know, and a damaged document.
        """
        where = "ExportedMap.fit"
        self._ready()
        if classes is not None:
            given, _ = canonical_labels(classes, classes=classes, _where=where)
            if given.tolist() != self.classes_.tolist():
                refuse(
                    where,
                    f"the classes of the map, {self.classes_.tolist()}",
                    f"{given.tolist()}",
                    "Pass labels and columns in the order of classes_",
                )
        proba = canonical_proba(X, n_classes=len(self.classes_), _where=where)
        if soft_labels:
            soft_rows(y, sample_weight, self.classes_, n_rows=len(proba), where=where)  # type: ignore[arg-type]
            return self
        _, codes = canonical_labels(y, classes=self.classes_, _where=where)  # type: ignore[arg-type]
        check_same_length(codes, proba, where)
        return self

    def describe(self) -> str:
        """What the map is, in sentences: for a file of evidence, or before a signature.

        Returns
        -------
        text : str
            One line each for the method with its parameters and the version, the rows of the fit
            with the (weighted) number of each class, names of columns and a date where
            they were given, the mean probability before and after, what an offset does to
            slope, intercept and mean, and the SHA-256 of the map. Control characters in labels and
            names are written out.

        Raises
        ------
        ValueError
            A document that is damaged, see `from_dict`.

        Examples
        --------
        >>> from sklearn_calib.export import from_dict, to_dict
        >>> from sklearn_calib.recalibrators import PriorShift
        >>> shift = PriorShift(mean=0.3).fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
        >>> text = from_dict(to_dict(shift, date="2026-11-23")).describe()
        >>> from textwrap import fill
        >>> print(*(fill(line) for line in text.splitlines()[1:5]), sep=" ")
        It was fitted to 4 rows: 2 of '0' (0.5 of all), 2 of '1' (0.5 of all).
        Date: 2026-11-23.
        The mean probability of '1' on these rows is 0.5 as given and 0.3 by the map; observed is
        0.5, so observed / expected goes from 1 to 1.667.
        The map adds -1.2715 to the log-odds of '1': the odds are multiplied by 0.2804. The order of
        the rows stays, and every measure of ranking.
        """
        return description(read_document(self.document))

    def _maps_tensors(self):
        return self._is_arithmetic()

    def _fit(self, proba, codes, weight):
        raise NotImplementedError  # `fit` is its own

    def _check_absent(self, proba, where):
        if not takes_absent(self._root):
            super()._check_absent(proba, where)

    def _predict_proba(self, proba: Any) -> AnyArray:
        return self._root(proba)

    def _nodes(self) -> dict[str, Any]:
        return self._root.tree()

    def _kind_of_scores(self) -> Any:
        return self.document["input"]

    def _value_of(self, tree, rows):
        return read_nodes(tree, 2)(rows)


def _types_beside(cls):
    """Names of the types that the file of a class defines."""
    module = cls.__module__
    return [
        f"{module}.{value.__qualname__}"
        for value in vars(sys.modules[module]).values()
        if isinstance(value, type) and value.__module__ == module
    ]


_MODELS = [value for name in meta.__all__ if isinstance(value := getattr(meta, name), type)]
_OWN = (*all_recalibrators().values(), ExportedMap, *_MODELS, meta.CalibratedPair)

#: For ``skops.io.load(file, trusted=skops_trusted)``: recalibrators and whole models, and what they
#: are made of. Classifiers inside that are not scikit-learn's have types of their own.
skops_trusted: list[str] = sorted({name for cls in _OWN for name in _types_beside(cls)})
