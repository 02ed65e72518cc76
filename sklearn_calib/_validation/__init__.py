"""Checks what users pass: scores, labels and weights become clean numeric arrays.

It may import `_show` and the small modules of the package.
Start reading with `read_proba` in `_scores.py`.
"""

from .._simplex_array import SimplexArray, log_proba
from ._arrays import (
    check_names_differ,
    collect_lazy_frame,
    is_missing,
    iter_named_columns,
    read_array,
    read_numbers,
    to_numpy_dates,
    to_object_array,
)
from ._column_order import (
    COLUMN_ORDER_HINT,
    MIN_PERMUTED_LEAD,
    RankCounts,
    align_columns,
    are_ranked_well,
    check_column_owner,
    check_same_index,
    count_ranked_pairs,
    describe_doubtful_order,
    find_columns,
    find_likely_order,
    find_positive_index,
    get_column_names,
    is_single_column,
    orient_single_column,
    place_columns,
    reorder_columns,
    suggest_column_owner,
    warn_column_order,
)
from ._device import (
    DeviceScores,
    read_device_scores,
)
from ._label_tables import (
    BINARY_CLASSES,
    LabelScores,
    find_known_rows,
    get_label_names,
    read_label_scores,
    read_label_table,
    validate_label_tables,
)
from ._labels import (
    ALL_CLASSES_HINT,
    canonical_labels,
    check_column_labels,
    check_two_or_more_classes,
    get_category_order,
    get_survival_hint,
    has_unsorted_classes,
    is_label_table,
    order_scale_columns,
    read_labels,
)
from ._rounded import (
    FLOAT32_SUM_TOLERANCE,
    get_sum_tolerance,
)
from ._scores import (
    MAX_ABS_LOGIT,
    add_first_class_column,
    canonical_logits,
    canonical_proba,
    check_same_length,
    read_proba,
    validate_proba,
)
from ._soft_labels import (
    LabelVotes,
    SoftLabelRows,
    check_votes,
    count_votes,
    validate_soft_labels,
)
from ._weights import (
    canonical_weight,
    check_weights,
    get_rows_per_weight,
    read_raw_weight,
    read_weight_and_unit,
)

__all__ = [
    "canonical_proba",
]


def __dir__() -> list[str]:
    return __all__
