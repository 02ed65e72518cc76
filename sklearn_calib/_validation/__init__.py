"""Checks what users pass: scores, labels and weights become clean numeric arrays.

It may import `_show` and the small modules of the package.
Start reading with `read_proba` in `_scores.py`.
"""

from .._simplex_array import SimplexArray, log_proba
from ._arrays import (
    check_names_differ,
    collect_lazy_frame,
    convert_dates_to_numpy_if_any,
    convert_list_to_object_array,
    is_missing_or_infinite,
    iter_named_columns,
    read_array,
    read_numeric_array,
)
from ._column_order import (
    COLUMN_ORDER_HINT,
    MIN_PERMUTED_ACCURACY_GAIN,
    OrderedPairAndRowCounts,
    align_columns,
    are_ranked_well,
    check_and_get_common_index,
    count_correctly_ranked_pairs,
    describe_doubtful_order,
    find_columns_if_names_match,
    find_likely_class_by_column,
    find_positive_index_or_second,
    get_given_column_names,
    get_proba_with_single_column_at_class,
    is_single_column,
    place_columns,
    raise_if_single_column_class_unclear,
    reorder_columns_if_names_match,
    suggest_single_column_class,
    warn_column_order,
)
from ._device import DeviceScores, read_device_scores
from ._label_tables import (
    BINARY_CLASSES,
    MultilabelScorePairs,
    find_known_rows,
    get_label_names,
    read_label_names_proba_and_table,
    read_label_scores,
    read_label_table,
)
from ._labels import (
    ALL_CLASSES_HINT,
    canonical_labels,
    check_column_labels,
    check_two_or_more_classes,
    get_present_ordered_categories,
    get_survival_hint,
    has_unsorted_classes,
    is_label_table,
    order_scale_columns,
    read_labels,
)
from ._rounded import FLOAT32_SUM_TOLERANCE, get_sum_tolerance
from ._scores import (
    MAX_ABS_LOGIT,
    add_first_class_column_if_single,
    canonical_proba,
    check_same_length,
    read_logits_by_class,
    read_proba,
    read_proba_keeping_single_column,
)
from ._soft_labels import (
    LabelSharesAndVoteCounts,
    WeightedRowsFromSoftLabels,
    check_vote_kinds,
    read_shares_or_votes,
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
