"""Wrong versions of what states uncertainty, each of which must be caught by the test named.

One fragment of the source is changed; the code of the functions that differ is then
that of the changed source, for every importer, and the named test runs and must
fail. Many more mutants, drawn at random, are in ``benchmarks/mutation``.
"""

import gc
import importlib
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FunctionType
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]


class Mutant(NamedTuple):
    module: str  # below sklearn_calib
    right: str  # found exactly once
    wrong: str
    test: str  # below tests
    slow: bool = False  # the test is slow even where it passes


MUTANTS = {
    # -- the mean of few labels
    "a power outside the square": Mutant(
        "_kernels._prediction_powered_mean",
        "(0.0, 1.0), method",
        "(-np.inf, np.inf), method",
        "inference/test_calibrated_mean.py::test_the_best_power",
    ),
    "shares of labels by the normal law whatever their number": Mutant(
        "_kernels._prediction_powered_mean",
        "(ndtri((1 + level) / 2) / t) ** 2",
        "1.0",
        "inference/test_calibrated_mean.py::test_shares_of_labels_against_binomial_tails",
    ),
    "differences of labels that never differ are certain": Mutant(
        "inference._calibrated_mean_result",
        "t**2 / 2 * unseen_square",
        "0.0",
        "inference/test_calibrated_mean.py::test_two_systems",
    ),
    "a cluster that differs counts with all its rows": Mutant(
        "_kernels._prediction_powered_mean",
        "if n_rows is None or not total > 0:",
        "if True:",
        "inference/test_calibrated_mean.py::test_a_difference_takes_no_cluster_for_a_row",
    ),
    # -- many labels
    "no term for the event that a sample lacks": Mutant(
        "_kernels._importance_sampling",
        "ends.append(extra_term + _compute_sum_quantile(extended, tail))",
        "ends.append(_compute_sum_quantile(terms, tail))",
        "test_report_labels.py::test_skewed_ends",
    ),
    "tilted draws that all count once": Mutant(
        "_kernels._importance_sampling",
        "total += ratio[widths >= width * (1 - _WIDTH_TOLERANCE)].sum()",
        "total += (widths >= width * (1 - _WIDTH_TOLERANCE)).sum()",
        "test_report_labels.py::test_tail_of_range",
    ),
    # -- rows in clusters
    "the error of few clusters by sums of squares": Mutant(
        "_kernels._cluster_sums",
        "/ (mass.sum() - mass)",
        "/ mass.sum()",
        "inference/test_clusters.py::test_the_interval_of_a_mean_against_the_definition",
    ),
    "clusters of any sizes have one degree less than clusters": Mutant(
        "_kernels._cluster_sums",
        "np.clip(degrees, 1.0, n - 1)",
        "n - 1",
        "inference/test_clusters.py::test_means_of_clusters_of_unequal_sizes_cover",
    ),
    "clusters whose rows lose their weights": Mutant(
        "inference._clusters",
        "weight * np.maximum(losses - lowest, 0.0))",
        "np.maximum(losses - lowest, 0.0))",
        "inference/test_clusters.py::test_the_interval_of_a_mean_against_the_definition",
    ),
    "a resampled difference of few clusters, too short": Mutant(
        "inference._paired",
        "estimate + inflation * (end - estimate)",
        "end",
        "inference/test_clusters.py::test_resampled_differences_are_made_longer",
    ),
    "null draws that turn rows, not clusters": Mutant(
        "inference._clusters",
        "sums = (self.table.T @ signs.T).T",
        "sums = rng.normal(size=(n_signs, self.squares.size)) * np.sqrt(self.squares.ravel())",
        "inference/test_clusters.py::test_draws_of_clusters",
    ),
    "labels of a cluster drawn one by one": Mutant(
        "inference._clusters",
        "excess / largest_excess, 0.0, 1.0",
        "excess / largest_excess, 0.0, 1e-9",
        "inference/test_votes.py::test_clusters_of_drawn_labels_vary_as_those_of_the_rows",
    ),
    "a soft label drawn as one vote": Mutant(
        "inference._clusters",
        "1, _MAX_SOFT_LABEL_VOTES)",
        "1, 1)",
        "inference/test_votes.py::test_soft_labels_are_drawn_as_votes[False]",
    ),
    "few events by chance make the variance small": Mutant(
        "_kernels._cluster_sums",
        "expected / seen if seen > 0 else 1.0",
        "1.0",
        "inference/test_clusters.py::test_no_events_by_chance_are_no_proof",
    ),
    "Student's law of clusters as if outcomes were normal": Mutant(
        "_kernels._cluster_sums",
        "np.maximum(pairs + tails / 2, 0.0)",
        "pairs",
        "inference/test_clusters.py::test_rare_events_leave_few_degrees_of_freedom",
    ),
    # -- reliability diagrams
    "Clopper-Pearson, lower end": Mutant(
        "_kernels._proportion",
        "rows - events + 1, tail",
        "rows - events, tail",
        "metrics/test_reliability.py::test_bands_of_bins_are_clopper_pearsons",
    ),
    "Clopper-Pearson, upper end": Mutant(
        "_kernels._proportion",
        "np.subtract(rows, events), rows, tail",
        "np.subtract(rows, events), np.subtract(rows, 1), tail",
        "metrics/test_reliability.py::test_bands_of_bins_are_clopper_pearsons",
    ),
    # -- after an alarm of the monitor
    "a region as if one looked once, without the mean likelihood": Mutant(
        "_kernels._log_odds_cells",
        "bound = log + np.log1p(-level)",
        "bound = np.log1p(-level)",
        "monitoring/test_aftermath.py::test_region_by_definition",
    ),
    "one end of the onset at the whole level": Mutant(
        "_kernels._log_odds_cells",
        "outside = (1 - level) / 2",
        "outside = (1 - level) * 4",
        "monitoring/test_aftermath.py::test_onset_by_definition",
    ),
    "a test of the slope that forgets the fitted shift": Mutant(
        "_kernels._log_odds_cells",
        "information[n_fitted_columns:, n_fitted_columns:] - cross.T @ solved",
        "information[n_fitted_columns:, n_fitted_columns:]",
        "monitoring/test_aftermath.py::test_score_test_of_the_slope_by_definition",
    ),
    # -- rating grades
    "Jeffreys' posterior of a flat prior": Mutant(
        "_kernels._grades",
        "betainc(events + 0.5, rows - events + 0.5, probability)",
        "betainc(events + 1.0, rows - events + 1.0, probability)",
        "groups/test_grades.py::test_golden_values_of_one_grade",
    ),
    "P(X > k) for P(X >= k)": Mutant(
        "_kernels._grades",
        "betainc(at_least_one, rows - at_least_one + 1, probability)",
        "betainc(at_least_one + 1, rows - at_least_one, probability)",
        "groups/test_grades.py::test_golden_values_of_one_grade",
    ),
    "the smallest p-value of all grades as if it were the only one": Mutant(
        "_kernels._grades",
        "np.log1p(-below - above).sum()",
        "np.log1p(-below - above).min()",
        "groups/test_grades.py::test_the_joint_p_value_is_of_two_sides_and_all_grades",
    ),
    "all grades together on one side": Mutant(
        "_kernels._grades",
        "2 * np.minimum(above, below)",
        "2 * np.minimum(compute_upper_binomial_p(events, rows, probability), 1.0)",
        "groups/test_grades.py::test_the_joint_p_value_is_of_two_sides_and_all_grades",
    ),
    "most prudent rates of a grade and the better ones": Mutant(
        "_kernels._grades",
        """worse_events = np.cumsum(events[::-1])[::-1]
    worse_rows = np.cumsum(rows[::-1])[::-1]""",
        """worse_events = np.cumsum(events)
    worse_rows = np.cumsum(rows)""",
        "groups/test_grades.py::test_beside_probcal[case0]",
    ),
    "the order against draws of equal numbers of rows": Mutant(
        "_kernels._grades",
        "integer_rows = rows.astype(np.int64)",
        "integer_rows = np.full(len(rows), int(rows.sum()) // len(rows))",
        "groups/test_grades.py::test_order_p_value_is_exact_where_all_tables_can_be_counted",
    ),
    "expected two-bin error of counted rows": Mutant(
        "metrics._two_bin",
        "weight**2 @ (score * (1 - score))",
        "weight.sum() * weight @ (score * (1 - score))",
        "metrics/test_two_bin.py::test_debiasing_subtracts_the_expected_value",
    ),
    "signs of the variational interval know all labels": Mutant(
        "decomposition._variational",
        "earlier_rows = pairs[0][1]",
        "earlier_rows = np.arange(n)",
        "decomposition/test_variational.py::test_terms_of_the_interval_know_earlier_folds_alone",
    ),
    "effective rows are the sum of the weights": Mutant(
        "metrics._reliability",
        "n_effective = mass**2 / squares",
        "n_effective = mass",
        "metrics/test_reliability.py::test_confidence_bands_hold_the_truth[quantile-True]",
    ),
    "bands with one tail of twice the size": Mutant(
        "metrics._reliability",
        "tails = [(1 - level) / 2, (1 + level) / 2]",
        "tails = [1 - level, (1 + level) / 2]",
        "metrics/test_reliability.py::test_both_tails_of_consistency_bands[quantile]",
    ),
    "bootstrap of the isotonic curve ignores the draw": Mutant(
        "metrics._reliability",
        "counts = draw_row_counts(len(score), rng)",
        "counts = np.maximum(draw_row_counts(len(score), rng), 1)",
        "metrics/test_reliability.py::test_confidence_bands_hold_the_truth[isotonic-False]",
        slow=True,
    ),
    "ReliabilityDisplay: error bars halved": Mutant(
        "displays._reliability",
        "high = np.maximum(curve.confidence_high, curve.observed)",
        "high = (np.maximum(curve.confidence_high, curve.observed) + curve.observed) / 2",
        "displays/test_reliability_display.py::test_bands_are_drawn_where_the_curve_has_them"
        "[quantile]",
    ),
    # -- internal validation
    "internal_validation: each group once in every sample": Mutant(
        "inference._refits",
        "drawn_groups = rng.integers(0, len(group_sizes), len(group_sizes))",
        "drawn_groups = np.arange(len(group_sizes))",
        "inference/test_internal_validation.py::test_groups_stay_whole[optimism]",
    ),
    "internal_validation: folds split groups": Mutant(
        "inference._refits",
        "return splitter.split(self.codes, self.codes, self.groups)",
        "return splitter.split(self.codes, self.codes, np.arange(len(self.codes)))",
        "inference/test_internal_validation.py::test_groups_stay_whole[cross_validation]",
    ),
    "internal_validation: fits without weights": Mutant(
        "inference._refits",
        "metadata[name] = self.weight",
        "metadata[name] = np.ones(len(self.codes))",
        "inference/test_internal_validation.py::test_tables_labels_and_weights_come_as_they_are",
    ),
    "internal_validation: measures of samples without weights": Mutant(
        "inference._refits",
        '"sample": lambda weight, count: weight * count',
        '"sample": lambda weight, count: count',
        "inference/test_internal_validation.py::test_weights_by_a_plain_loop",
    ),
    "internal_validation: measures of all rows without weights": Mutant(
        "inference._refits",
        '"original": lambda weight, count: weight',
        '"original": lambda weight, count: np.ones(len(weight))',
        "inference/test_internal_validation.py::test_weights_by_a_plain_loop",
    ),
    "internal_validation: rows left out without weights": Mutant(
        "inference._refits",
        "weight * (count == 0)",
        "1.0 * (count == 0)",
        "inference/test_internal_validation.py::test_weights_by_a_plain_loop",
    ),
    "internal_validation: .632+ knows rows that were drawn once": Mutant(
        "inference._refits",
        "weight * (count == 0)",
        "weight * (count <= 1)",
        "inference/test_internal_validation.py::test_632_plus_by_a_plain_loop",
    ),
    "internal_validation: .632+ without the weight of the overfitting": Mutant(
        "inference._refits",
        "return estimate_632 + shift * 0.368",
        "return estimate_632 + 0 * shift * 0.368",
        "inference/test_internal_validation.py::test_632_plus_by_a_plain_loop",
    ),
    "internal_validation: measures in another order": Mutant(
        "inference._refits",
        "rows = [[*self.measures].index(name) for name in self._batch_names]",
        "rows = [[*self.measures].index(name) for name in self._batch_names][::-1]",
        "inference/test_internal_validation.py::test_options_of_intervals_and_measures",
    ),
    "internal_validation: the same samples whatever random_state": Mutant(
        "inference._internal_validation",
        "rngs = spawn_generators(random_state,",
        "rngs = spawn_generators(0,",
        "inference/test_internal_validation.py::test_each_option_matters[all]",
    ),
    "internal_validation: tails of twice the size": Mutant(
        "inference._internal_validation",
        "(1 - level) / 2,\n            ci,\n",
        "1 - level,\n            ci,\n",
        "inference/test_internal_validation.py::test_optimism_by_a_plain_loop",
    ),
    "internal_validation: one interval for both": Mutant(
        "inference._refits",
        'if ci == "pivot":',
        "if True:",
        "inference/test_internal_validation.py::test_optimism_by_a_plain_loop",
    ),
    "internal_validation: pos_label does not matter": Mutant(
        "inference._internal_validation",
        "positive = classes.tolist().index(pos_label)",
        "positive = len(classes) - 1",
        "inference/test_internal_validation.py::test_pos_label_is_the_event",
    ),
    # -- intervals
    "report: bootstrap tails of twice the size": Mutant(
        "report._table",
        "np.quantile(resampled, [tail, 1 - tail])",
        "np.quantile(resampled, [2 * tail, 1 - 2 * tail])",
        "test_report.py::test_interval_of_a_mean_is_the_textbook_one",
    ),
    "report: a value that chance has too counts as none": Mutant(
        "report._table",
        "np.count_nonzero(null >= value)",
        "np.count_nonzero(null > value)",
        "test_report_verdict.py::test_values_that_chance_has_too_count_as_chance",
    ),
    "report: standard error of a loss with n degrees of freedom": Mutant(
        "report._table",
        "freedom = weight**2 - squares",
        "freedom = weight**2",
        "test_report.py::test_standard_error_of_a_loss_of_a_few_rows",
    ),
    "report: limit of calibrated predictions at the wrong quantile": Mutant(
        "report._table",
        "limit = np.quantile(draws[1], tail)",
        "limit = np.quantile(draws[1], (1 + tail) / 2)",
        "test_report.py::test_calibrated_predictions_stay_below_the_limit_as_often_as_it_says",
        slow=True,
    ),
    "confidence_interval: bootstrap tails of twice the size": Mutant(
        "inference._intervals",
        "np.quantile(values, [(1 - level) / 2, (1 + level) / 2])",
        "np.quantile(values, [1 - level, level])",
        "inference/test_calibration_test.py::test_intervals_of_a_proper_loss",
    ),
    "confidence_interval: inversion at twice the tail": Mutant(
        "inference._intervals",
        "(1 - level) / 2,\n            progress",
        "1 - level,\n            progress",
        "inference/test_calibration_test.py::test_both_ends_of_an_inverted_interval",
        slow=True,
    ),
    "confidence_interval: the estimate is no median": Mutant(
        "inference._intervals",
        "make_is_rejected_function(0.5)",
        "make_is_rejected_function(0.2)",
        "inference/test_inversion.py::test_the_estimate_is_the_median_of_its_law",
        slow=True,
    ),
    "confidence_interval: a debiased measure as the value of infinitely many rows": Mutant(
        "inference._intervals",
        "partial(evaluate_population_value, function, **options)",
        "partial(function.evaluate, **options)",
        "inference/test_inversion.py::test_an_unbiased_estimate_below_zero_has_an_upper_end",
    ),
    "logistic_intervals: half width of another level": Mutant(
        "linear._intervals",
        "norm.ppf((1 + level) / 2)",
        "norm.ppf(level)",
        "recalibrators/test_adaptive.py::test_logistic_intervals_cover",
        slow=True,
    ),
    "AdaptiveCalibration: window of another level": Mutant(
        "recalibrators._adaptive",
        "norm.ppf((1 + level) / 2)",
        "norm.ppf(level)",
        "recalibrators/test_adaptive.py::test_intervals_of_a_regression_on_the_score",
    ),
    "Venn-Abers: ends swapped": Mutant(
        "recalibrators._venn_abers",
        "return self.table_[2 * below + is_fitted_score]",
        "return self.table_[2 * below + is_fitted_score][:, ::-1]",
        "recalibrators/test_venn_abers.py::test_equals_the_definition[all]",
    ),
    # -- decompositions
    "LossDecomposition: standard errors off by the root of 2": Mutant(
        "decomposition._intervals",
        "float(np.sqrt(self.variance))",
        "float(np.sqrt(2 * self.variance))",
        "decomposition/test_intervals.py::test_standard_errors_are_the_spread_of_the_terms[2-log]",
        slow=True,
    ),
    "LossDecomposition: the bias of the fit is added again": Mutant(
        "decomposition._intervals",
        "bias=-float(bias),",
        "bias=float(bias),",
        "decomposition/test_intervals.py::test_the_bias_taken_off_is_that_of_the_terms",
    ),
    "gains of features: those of the recalibrated rows, again": Mutant(
        "decomposition._grouping",
        "corrected = trees.predict_proba(mapped, groups=columns)",
        "corrected = mapped",
        "decomposition/test_gain_of_features.py::test_the_parts_add_up",
    ),
    "gains of features: a loss counts as a gain": Mutant(
        "decomposition._grouping",
        '"grouping": mapped - corrected,',
        '"grouping": corrected - mapped,',
        "decomposition/test_gain_of_features.py::test_the_parts_add_up",
    ),
    "DecompositionDisplay: error bars halved": Mutant(
        "displays._decomposition",
        "x + np.array(ends),",
        "x + np.mean(ends) / 2 + np.array(ends) / 2,",
        "displays/test_other_displays.py::test_decomposition_bars",
    ),
    "refinement_curve: standard errors that are not paired": Mutant(
        "decomposition._curve",
        "difference = losses - best",
        "difference = losses",
        "decomposition/test_curve.py::test_paired_standard_errors_and_the_earliest_stage",
    ),
    "refinement_curve: the latest of the close stages": Mutant(
        "decomposition._curve",
        "int(np.argmax(is_close[: best + 1]))",
        "int(np.flatnonzero(is_close)[-1])",
        "decomposition/test_curve.py::test_the_earliest_stage_within_one_standard_error",
    ),
    # -- tests
    "calibration_test: the observed statistic is not counted": Mutant(
        "inference._monte_carlo",
        "(1 + np.count_nonzero(is_extreme)) / (1 + len(null_distribution))",
        "np.count_nonzero(is_extreme) / len(null_distribution)",
        "inference/test_calibration_test.py::test_pvalue_is_the_rank_among_replicates",
    ),
    "calibration_test: ties do not count": Mutant(
        "inference._monte_carlo",
        "null_distribution >= ranked - 1e-12 * max(1.0, abs(ranked))",
        "null_distribution > ranked + 1e-12 * max(1.0, abs(ranked))",
        "inference/test_calibration_test.py::test_replicates_equal_to_the_statistic_count",
    ),
    "null distribution around the observed labels": Mutant(
        "inference._resampling",
        "cumulate_proba(predictions.proba if law is None else law)",
        "cumulate_proba(np.eye(len(predictions.classes))[predictions.codes] / 2"
        " + predictions.proba / 2)",
        "inference/test_resampling.py::test_the_null_distribution_is_that_of_the_predictions",
    ),
    "bootstrap forgets the weights": Mutant(
        "inference._resampling",
        "with_weight(predictions.weight * counts)",
        "with_weight(counts)",
        "inference/test_resampling.py::test_the_bootstrap_has_the_spread_of_a_mean[True]",
    ),
    "Spiegelhalter: another variance": Mutant(
        "inference._classical",
        "(1 - 2 * p) ** 2 * p * (1 - p)",
        "p * (1 - p)",
        "inference/test_calibration_test.py::test_level_and_power[spiegelhalter]",
    ),
    "Hosmer-Lemeshow: two degrees of freedom too few": Mutant(
        "inference._classical",
        "lost_freedom = 0 if held_out else n_parameters",
        "lost_freedom = n_parameters",
        "inference/test_calibration_test.py::test_hosmer_lemeshow_by_hand",
    ),
    "Cox: one degree of freedom": Mutant(
        "_kernels._classical_tests",
        "stats.chi2.sf(statistic, 2)",
        "stats.chi2.sf(statistic, 1)",
        "inference/test_calibration_test.py::test_level_and_power[cox]",
    ),
    "Kuiper: the law of a bridge's range": Mutant(
        "_kernels._classical_tests",
        "8 * terms.sum()",
        "2 * ((4 * k**2 * x**2 - 1) * np.exp(-2 * k**2 * x**2)).sum()",
        "inference/test_calibration_test.py::test_null_laws",
        slow=True,
    ),
    "lp_calibration_test: another quantile than it says": Mutant(
        "metrics._lp_calibration",
        "float(np.quantile(null_values, 0.95))",
        "float(np.quantile(null_values, 0.85))",
        "metrics/test_lp_calibration.py::test_pvalues_and_quantile_of_calibrated_predictions"
        "[1-plugin]",
    ),
    "lp_calibration_test: p-values halved": Mutant(
        "metrics._lp_calibration",
        "(1 + n_as_large) / (1 + n_resamples)",
        "np.sum(null_values > value) / n_resamples / 2",
        "metrics/test_lp_calibration.py::test_pvalues_and_quantile_of_calibrated_predictions"
        "[1-plugin]",
    ),
    # -- bounds and numbers of rows
    "lp_calibration_bound: loose by 2": Mutant(
        "inference._lp_calibration",
        "value + radius / np.sqrt(n_effective)",
        "value + 2 * radius / np.sqrt(n_effective)",
        "metrics/test_lp_calibration.py::test_bound_is_not_loose",
    ),
    "lp_calibration_bound: all of the confidence in the mean": Mutant(
        "inference._lp_calibration",
        "np.sqrt(2) + 2 * np.sqrt(-np.log(1 - level))",
        "np.sqrt(2) + np.sqrt(-np.log(1 - level))",
        "metrics/test_lp_calibration.py::test_bound_is_not_loose",
    ),
    "MulticlassBinning.error_bound_: loose by 2": Mutant(
        "recalibrators._multiclass_binning",
        "+ alpha + mass_bound",
        "+ 2 * (alpha + mass_bound)",
        "recalibrators/test_multiclass_binning.py::test_split_bound_is_not_loose",
    ),
    "sample size of a tester: too few rows": Mutant(
        "inference._testers",
        "2 + math.sqrt(-2 * math.log(self.delta))",
        "(1 + math.sqrt(2 * math.log(1 / self.delta)))",
        "inference/test_calibration_test.py::test_required_rows",
    ),
    "sample size of binning: half the rows": Mutant(
        "inference._lp_calibration",
        "estimation_rows = 8 / beta**2",
        "estimation_rows = 4 / beta**2",
        "metrics/test_lp_calibration.py::test_required_samples",
    ),
    "sample size of a slope as if the intercept were known": Mutant(
        "inference._sample_size",
        "return float(a / (a * b - ab**2))",
        "return float(1 / b)",
        "inference/test_sample_size.py::test_formulas",
    ),
    "rows of an error: the critical value falls with the rows": Mutant(
        "_kernels._detectable_error",
        "noise, critical / np.sqrt(n))",
        "noise, critical / n)",
        "inference/test_sample_size.py::test_rows_and_errors_are_inverse",
    ),
    "the interval of the largest regret from intervals one by one": Mutant(
        "decisions._regret",
        "difference.find_interval(critical, exact=True)",
        "difference.find_interval(1.96, exact=True)",
        "decisions/test_regret.py::test_intervals_come_from_the_band",
    ),
    # -- weights and ties
    "a score at its threshold is not acted on": Mutant(
        "_kernels._net_benefit",
        'np.searchsorted(thresholds, score, side="right")',
        'np.searchsorted(thresholds, score, side="left")',
        "decisions/test_decision_curve.py::test_a_score_at_a_threshold_is_acted_on",
    ),
    "spline: cells pooled without the weights": Mutant(
        "_kernels._spline",
        "np.add.reduceat(cells.unit_weight * cells.mass, starts, axis=1)",
        "np.add.reduceat(cells.mass, starts, axis=1)",
        "recalibrators/test_spline.py::test_one_cell_of_several_weighs_what_they_weigh",
    ),
    "confusion matrix without the weights": Mutant(
        "_kernels._label_shift",
        "mass = np.bincount(y_encoded, weight, k)",
        "mass = np.bincount(y_encoded, weight := np.ones(len(y_encoded)), k)",
        "recalibrators/test_prior_shift.py::test_weights_of_the_labelled_rows[bbse-soft]",
    ),
    # -- what no test followed: options, the positive class first, ties, blocks
    "a difference of means with the larger effective number of rows": Mutant(
        "inference._calibrated_mean_result",
        "min(first.n_effective, second.n_effective)",
        "max(first.n_effective, second.n_effective)",
        "inference/test_calibrated_mean.py"
        "::test_a_difference_knows_no_more_than_the_system_that_knows_less",
    ),
    "groups: ties with the largest of all groups do not count": Mutant(
        "groups._events",
        "np.searchsorted(sorted_maxima, limits)",
        'np.searchsorted(sorted_maxima, draws.observed_sigma, side="right")',
        "groups/test_group_calibration.py::test_p_values_count_ties[None]",
    ),
    "a difference of decision curves without the prevalence": Mutant(
        "decisions._decision_curve",
        "first_problem.hit, first_problem.weight, table, prevalence",
        "first_problem.hit, first_problem.weight, table",
        "decisions/test_decision_curve.py::test_case_control_of_two_models",
    ),
    "the lower end of the regret at its estimate": Mutant(
        "decisions._regret",
        "float(min(value, low))",
        "float(max(value, low))",
        "decisions/test_regret.py::test_lower_ends_are_below_the_estimates",
    ),
    "a monitor's region is calibrated at .95 whatever the level": Mutant(
        "monitoring._aftermath",
        "is_in_confidence_region(counts, level, 0.0, 1.0)",
        "is_in_confidence_region(counts, 0.95, 0.0, 1.0)",
        "monitoring/test_aftermath.py::test_calibrated_is_said_at_the_level_that_is_asked_for",
    ),
    "groups of a monitor are flagged at .05 whatever alpha": Mutant(
        "monitoring._monitor",
        "e_benjamini_hochberg([*e_values.values()], self.alpha)",
        "e_benjamini_hochberg([*e_values.values()], 0.05)",
        "monitoring/test_monitor.py::test_flagged_groups_by_the_definition_of_e_bh[0.6]",
    ),
    "a variational interval of another norm": Mutant(
        "decomposition._variational",
        "norm,\n        recalibrator,\n        cv,\n        direction,\n    )\n    if len(t)",
        "1.0,\n        recalibrator,\n        cv,\n        direction,\n    )\n    if len(t)",
        "decomposition/test_variational.py::test_the_norm_of_the_interval[2]",
    ),
    "a prediction at the end of its interval is outside": Mutant(
        "report._evidence",
        "reliability_bin.observed_low <= predicted <= reliability_bin.observed_high",
        "reliability_bin.observed_low < predicted < reliability_bin.observed_high",
        "test_report_verdict.py::test_what_lies_at_the_end_of_an_interval_is_inside[0]",
    ),
    "what is tolerable is a share of the rate of the positive class": Mutant(
        "report._verdict",
        "_TOLERABLE_RATE_FRACTION * min(rate, 1 - rate)",
        "_TOLERABLE_RATE_FRACTION * rate",
        "test_report_verdict.py::test_what_is_tolerable_is_a_share_of_the_rarer_outcome[0.996]",
    ),
    "a gain's error of clusters, off by the root of 2": Mutant(
        "report._advice",
        "np.sqrt(2) * error / predictions",
        "1.0 * error / predictions",
        "test_report_clusters.py::test_equal_rows_of_a_cluster_are_one_row",
        slow=True,
    ),
    "the power of a test of clusters, off by the root of 2": Mutant(
        "report._verdict",
        "float(np.mean(test.null_distribution**2) / alone)",
        "float(np.mean(test.null_distribution**2) / alone / 2)",
        "test_report_clusters.py::test_five_equal_rows_inflate_the_variance_by_five",
    ),
    "clusters that go on in another block are forgotten": Mutant(
        "inference._paired",
        "old_mass, old_total = sums.get(name, (0.0, 0.0))",
        "old_mass, old_total = (0.0, 0.0)",
        "inference/test_paired.py::test_a_cluster_that_comes_in_two_blocks_is_one[False]",
    ),
    "the bound of a label's p-value, halved": Mutant(
        "report._label_report",
        "bound = compute_chernoff_p_value(model.predictions) / _BOUND_LEVEL_FRACTION",
        "bound = compute_chernoff_p_value(model.predictions) / _BOUND_LEVEL_FRACTION / 2",
        "test_report_labels.py::test_p_values_below_any_draw_are_those_of_the_bound[80]",
    ),
    # -- the command line
    "advice for two classes fitted on the rows it is judged on": Mutant(
        "summary._resampling",
        "train = np.maximum(self.weight - fold.weight, 0.0).ravel()",
        "train = fold.weight.ravel()",
        "test_cli.py::test_advice_is_never_fitted_on_the_rows_it_is_judged_on[2]",
    ),
    "advice for several classes fitted on the rows it is judged on": Mutant(
        "summary._row_reservoir",
        "seen = np.flatnonzero(kept > 0)",
        "kept = kept + out; seen = np.flatnonzero(kept > 0)",
        "test_cli.py::test_advice_is_never_fitted_on_the_rows_it_is_judged_on[3]",
        slow=True,
    ),
}


@contextmanager
def planted(module, right, wrong):
    """The package with one fragment of a module changed."""
    path = Path(importlib.import_module(f"sklearn_calib.{module}").__file__)
    source = path.read_text(encoding="utf-8")
    assert source.count(right) == 1, (
        f"{right!r} is {source.count(right)} times in {path.name}"
    )
    assert right.count("\n") == wrong.count("\n"), "other lines would look changed too"
    changed = source.replace(right, wrong)
    before, after = codes(source, path), codes(changed, path)
    assert len(before) == len(after), f"{wrong!r} has another number of functions"
    new = {old: now for old, now in zip(before, after, strict=True) if old != now}
    gc.unfreeze()  # what was there before the first test is not shown otherwise
    live = [
        (thing, thing.__code__)
        for thing in gc.get_objects()
        if type(thing)
        is FunctionType  # isinstance would ask what weak proxies stand for
        and thing.__code__.co_filename == str(path)
        and thing.__code__ in new
    ]
    gc.freeze()
    assert live, f"no function of {path.name} has changed"
    try:
        for function, code in live:
            function.__code__ = new[code]
        yield
    finally:
        for function, code in live:
            function.__code__ = code


def codes(source, path):
    """The code of every function of a module, in the order of the text."""
    found, left = [], [compile(source, str(path), "exec", dont_inherit=True)]
    while left:
        code = left.pop()
        found.append(code)
        left += [part for part in code.co_consts if isinstance(part, CodeType)]
    return found


class Outcomes:
    """A plugin of pytest that keeps what tests raised."""

    def __init__(self):
        self.raised = {}

    def pytest_runtest_makereport(self, item, call):
        if call.when == "call" or call.excinfo is not None:
            self.raised[item.nodeid] = call.excinfo and call.excinfo.value


def run(tests):
    """What each of these tests raised, None if it passed; in this process."""
    outcomes = Outcomes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        # options of plugins that are not loaded
        patch.delenv("PYTEST_ADDOPTS", raising=False)
        # the last two collect the garbage of the whole process several times at every
        # call
        unused = (
            "cacheprovider",
            "faulthandler",
            "unraisableexception",
            "threadexception",
        )
        quiet = ["-o", "addopts=", *(f"-pno:{name}" for name in unused), "-qq", "-s"]
        where = ["--rootdir", str(ROOT), "-c", str(ROOT / "setup.cfg")]
        ids = [f"{ROOT}/tests/{test}" for test in tests]
        pytest.main(
            [*quiet, "--tb=no", "--no-summary", *where, *ids], plugins=[outcomes]
        )
    return outcomes.raised


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name, marks=pytest.mark.cross if number else ()
        )  # half a second each
        for number, name in enumerate(MUTANTS)
    ],
)
def test_mutant(name):
    mutant = MUTANTS[name]
    with planted(mutant.module, mutant.right, mutant.wrong):
        raised = run([mutant.test])
    assert len(raised) == 1, f"there is no {mutant.test}"
    (error,) = raised.values()
    assert isinstance(error, AssertionError), f"{mutant.test} lets it pass ({error!r})"


def test_every_fragment_and_every_test_is_there():
    """What the others, which run weekly, change and run."""
    for name, mutant in MUTANTS.items():
        path = Path(importlib.import_module(f"sklearn_calib.{mutant.module}").__file__)
        assert path.read_text(encoding="utf-8").count(mutant.right) == 1, name
        file, _, test = mutant.test.partition("[")[0].partition("::")
        assert f"def {test}(" in (ROOT / "tests" / file).read_text(encoding="utf-8"), (
            name
        )


@pytest.mark.cross  # the tests run in their own files, too
def test_right_code_passes():
    """So that a test that fails when it is run here is seen."""
    tests = sorted({mutant.test for mutant in MUTANTS.values() if not mutant.slow})
    raised = run(tests)
    assert len(raised) == len(tests)
    assert set(raised.values()) == {None}
