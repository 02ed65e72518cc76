"""Names of the types of arguments and results; heavy packages are not imported for them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NewType, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from numpy.typing import ArrayLike as ArrayLike
    from pandas import DataFrame as DataFrame
    from typing_extensions import Self as Self  # type checkers include it
else:
    Axes = Self = Any
    # Signatures show this text.
    DataFrame = "pd.DataFrame"
    # The type of numpy has 270 letters for each parameter in `help`.
    ArrayLike = NewType("ArrayLike", object)
    ArrayLike.__module__ = "numpy.typing"

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.intp]
AnyArray: TypeAlias = NDArray[Any]

#: Any object with the methods that its documentation names, of any package.
Estimator: TypeAlias = Any
#: The inputs of a classifier: an array, a sparse matrix or a table, as the classifier
#: takes them.
Features: TypeAlias = Any
#: The name of a recalibrator, or an instance of one.
RecalibratorLike: TypeAlias = str | Estimator

RandomStateLike: TypeAlias = int | np.random.Generator | np.random.RandomState | None


class Splitter(Protocol):
    """The interface of ``KFold`` and other splitters."""

    def split(self, X: Any, y: Any = ..., groups: Any = ...) -> Iterator[Any]: ...


CV: TypeAlias = int | Splitter | Iterable[Any] | None

Multiclass: TypeAlias = Literal["auto", "confidence", "top_label", "classwise"]
Multilabel: TypeAlias = Literal["macro", "micro"] | None
Bands: TypeAlias = Literal["auto", "both", "consistency", "confidence", "none"]
PictureScale: TypeAlias = Literal["auto", "linear", "logit"]
Strategy: TypeAlias = Literal["quantile", "uniform"]
CurveStrategy: TypeAlias = Literal[
    "quantile", "uniform", "isotonic", "polynomial", "loess", "spline"
]
NumberOfBins: TypeAlias = int | Literal["cube_root", "sweep"]
Link: TypeAlias = Literal["logit", "probit", "clipped_relu"] | Callable[[Any], Any]
#: One axes of Matplotlib, or one per panel.
AxesLike: TypeAlias = Axes | Sequence[Axes] | AnyArray
#: Called from time to time with the number of finished parts and of all.
Progress: TypeAlias = Callable[[int, int], object]

#: For type checkers a decorator returns a function of the same type.
Function = TypeVar("Function", bound=Callable[..., Any])

__all__ = [
    "CV",
    "AnyArray",
    "ArrayLike",
    "Axes",
    "AxesLike",
    "CurveStrategy",
    "DataFrame",
    "Estimator",
    "Features",
    "FloatArray",
    "Function",
    "IntArray",
    "Link",
    "Multiclass",
    "NumberOfBins",
    "Progress",
    "RandomStateLike",
    "RecalibratorLike",
    "Self",
    "Splitter",
    "Strategy",
]
