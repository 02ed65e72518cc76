import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog
from scipy.special import expit

from sklearn_calib._kernels import _distance
from sklearn_calib._kernels._distance import (
    DistanceProgram,
    bound_grid_excess,
    compute_upper_and_lower_distance,
    find_distance_distribution_and_prices,
    make_distance_program_on_scores,
)
from sklearn_calib.metrics import (
    lower_distance_interval,
    lower_distance_to_calibration,
    smooth_calibration_error,
)


def transport(grid, v, y, w):
    """The coupling of lemma 18: mass from every row to every grid point."""
    n, m = len(v), len(grid)
    cost = np.abs(grid[:, None] - v).ravel()
    marginals = sparse.kron(np.ones((1, m)), sparse.eye(n))
    imbalance = np.where(y == 1, 1 - grid[:, None], -grid[:, None])
    calibrated = sparse.block_diag([sparse.coo_matrix(row) for row in imbalance])
    solved = linprog(
        cost,
        A_eq=sparse.vstack([marginals, calibrated]),
        b_eq=np.concatenate([w, np.zeros(m)]),
        bounds=(0, None),
    )
    return solved.fun


def cases(count):
    rng = np.random.default_rng(0)
    for i in range(count):
        n = rng.integers(1, 25)
        v = np.round(rng.random(n), 2 if i % 2 else 1)
        y = (rng.random(n) < rng.choice([v, rng.random(n)])).astype(int)
        w = rng.random(n) if i % 3 else np.ones(n)
        yield v, y, w / w.sum()


@pytest.mark.slow
def test_equals_the_transport_program():
    for v, y, w in cases(120):
        grid = np.unique(
            np.concatenate([[0, 1], np.random.default_rng(1).random(9), v])
        )
        place = np.searchsorted(grid, v)
        ones, zeros = (
            np.bincount(place, w * y, len(grid)),
            np.bincount(place, w * (1 - y), len(grid)),
        )
        value, law, _ = find_distance_distribution_and_prices(
            DistanceProgram(grid, ones, zeros, 0.0)
        )
        assert value == pytest.approx(transport(grid, v, y, w), abs=1e-9)
        assert law.sum() == pytest.approx(1, abs=1e-6)
        assert law @ grid == pytest.approx(w @ y, abs=1e-6)  # calibrated on the whole


@pytest.mark.slow
def test_equals_the_least_cost_flow():
    """Lemma 18 as a network: rows send mass to grid points; the two labels are coupled there.

    With the law of u given, each label is a transport problem: networkx must find its
    cost.
    """
    networkx = pytest.importorskip("networkx")
    for v, y, w in list(cases(12)):
        grid = np.linspace(0, 1, 11)
        counts = np.maximum(1, np.round(w * 400)).astype(int)
        w = counts / counts.sum()
        place = np.rint(v * 10).astype(int)
        ones, zeros = np.bincount(place, w * y, 11), np.bincount(place, w * (1 - y), 11)
        value, law, _ = find_distance_distribution_and_prices(
            DistanceProgram(grid, ones, zeros, 0.0)
        )
        flow_cost = 0.0
        for have, want in ((ones, law * grid), (zeros, law * (1 - grid))):
            have = np.round(have * 1e7).astype(int)
            want = np.round(want * 1e7).astype(int)
            want[np.argmax(want)] += have.sum() - want.sum()
            graph = networkx.DiGraph()
            for k in range(11):
                graph.add_node(k, demand=int(want[k] - have[k]))
            # a bound: networkx 3.0 takes large free flows for infinite
            all_mass = int(have.sum())
            for k in range(10):
                graph.add_edge(k, k + 1, weight=1, capacity=all_mass)
                graph.add_edge(k + 1, k, weight=1, capacity=all_mass)
            flow_cost += networkx.min_cost_flow_cost(graph) / 1e8
        assert flow_cost == pytest.approx(value, abs=2e-6)


def test_the_gap_of_the_solution_is_what_it_says():
    """Prices that obey every constraint, on the laws where programs are hard to solve."""
    rng = np.random.default_rng(0)
    for scale in (1.0, 1e-6):
        for share in (0.5, 1e-3, 1e-12):
            for n in (3, 400):
                v = np.sort(rng.random(n)) * scale
                mass = rng.dirichlet(np.full(n, 0.2))
                program = make_distance_program_on_scores(
                    v, mass * share, mass * (1 - share)
                )
                value, law, (x, z) = find_distance_distribution_and_prices(program)
                grid = program.grid
                assert (np.abs(np.diff([x, z])) <= np.diff(grid) + 1e-12).all()
                assert (grid * x + (1 - grid) * z <= 1e-12).all()
                flow = [law * grid - program.ones, law * (1 - grid) - program.zeros]
                primal = np.abs(np.cumsum(flow, axis=1)[:, :-1]) @ np.diff(grid)
                assert primal.sum() == pytest.approx(value, rel=1e-8, abs=1e-11)


def test_the_grid_and_what_it_costs():
    """Ones at 0.2 and zeros at 0.8: all move to 1/2, and half the square of the gap is lost."""
    ones, zeros = np.array([0, 0.5, 0, 0]), np.array([0, 0, 0.5, 0])
    program = DistanceProgram(np.array([0, 0.2, 0.8, 1]), ones, zeros, 0.0)
    found = find_distance_distribution_and_prices(program)
    assert found.value == pytest.approx(0.48, abs=1e-9)
    assert bound_grid_excess(program, found) == pytest.approx(0.18, abs=1e-6)
    grid = np.arange(11) / 10
    at = [0.5 * (np.arange(11) == k) for k in (2, 8)]
    assert find_distance_distribution_and_prices(
        DistanceProgram(grid, *at, 0.0)
    ).value == pytest.approx(0.3, abs=1e-9)
    assert lower_distance_to_calibration([1, 0], [0.2, 0.8]) == pytest.approx(
        0.3, abs=1e-9
    )


@pytest.mark.slow
def test_the_default_is_within_its_bound_of_a_fine_grid():
    from hypothesis import given, settings, strategies as st

    laws = {
        "uniform": lambda rng, n: rng.random(n),
        "rare": lambda rng, n: rng.beta(0.1, 20, n),
        "atoms": lambda rng, n: np.where(
            rng.random(n) < 0.5, rng.integers(1, 10, n) / 10, rng.random(n)
        ),
        "rates": lambda rng, n: np.minimum(1e-4 * np.exp(rng.normal(size=n)), 1),
        "certain": lambda rng, n: np.clip(rng.normal(0.5, 0.7, n), 0, 1),
    }

    @settings(max_examples=40, deadline=None)
    @given(st.sampled_from(sorted(laws)), st.integers(1, 1200), st.integers(0, 10**6))
    def check(law, n, seed):
        rng = np.random.default_rng(seed)
        v = laws[law](rng, n)
        y = (rng.random(n) < rng.choice([v, 1 - v, v**2])).astype(int)
        w = rng.gamma(1.0, size=n)
        fine, fine_bound = lower_distance_interval(
            y, v, resolution=2e-4, labels=[0, 1], sample_weight=w
        )
        value, bound = lower_distance_interval(y, v, labels=[0, 1], sample_weight=w)
        assert abs(value - fine) <= bound + fine_bound + 1e-9
        if n <= 160:  # nothing is pooled, and a grid can only raise the optimum
            assert bound <= 1 / 64**2 / 2 + 1e-9
            assert fine - fine_bound <= value + 1e-9

    check()


@pytest.mark.parametrize("scale", [1.0, 1e-6])
def test_pooling_to_160_cells_changes_little(scale):
    """The cells' means keep the first order: errors far below the mean change of a prediction."""
    rng = np.random.default_rng(0)
    v = scale * rng.beta(2, 5, 100_000)
    y = (rng.random(len(v)) < np.minimum(v * 1.5, 1)).astype(int)
    if scale < 1:
        y[:3] = 1
    mass = np.full(len(v), 1 / len(v))
    order = np.argsort(v)
    program = make_distance_program_on_scores(
        v[order], (mass * y)[order], (mass * (1 - y))[order]
    )
    assert program.mean_move < 2e-3 * scale
    value = find_distance_distribution_and_prices(program).value
    fine = np.unique(np.r_[np.arange(4097) / 4096 * scale, np.linspace(scale, 1, 513)])
    place = np.rint(v / scale * 4096).astype(int)
    sums = [np.bincount(place, part, len(fine)) for part in (mass * y, mass * (1 - y))]
    assert value == pytest.approx(
        find_distance_distribution_and_prices(DistanceProgram(fine, *sums, 0.0)).value,
        abs=3e-6 * scale,
    )


def test_close_and_equal_scores_are_one_point():
    v = np.array([0.3, 0.1 + 0.2, 0.5, 0.5 - 1e-16, 5e-324, 0.0])
    y = np.array([1, 0, 0, 1, 0, 1])
    value = lower_distance_to_calibration(y, v)
    assert value == pytest.approx(
        lower_distance_to_calibration(y, np.round(v, 9)), abs=1e-9
    )


@pytest.mark.slow
def test_rounded_is_certified():
    for v, y, w in cases(40):
        upper, lower = compute_upper_and_lower_distance(
            v, w * y, w * (1 - y), 50, 0.005
        )
        exact = transport(np.linspace(0, 1, 51), v, y, w)
        assert lower - 1e-9 <= exact <= upper + 1e-9
        assert upper - lower <= 0.005
        assert upper - exact <= 0.005


def test_both_methods_and_the_bound():
    rng = np.random.default_rng(0)
    v = rng.random(300)
    y = (rng.random(300) < v**2).astype(int)
    fine, fine_bound = lower_distance_interval(y, v, resolution=1e-4)
    assert fine_bound <= 1.5e-4
    for options in (
        {},
        {"resolution": 0.02},
        {"method": "rounded", "resolution": 0.01},
    ):
        value, bound = lower_distance_interval(y, v, **options)
        assert abs(value - fine) <= bound + fine_bound
        if "method" in options:
            assert value >= fine - fine_bound


def test_relation_to_the_smooth_calibration_error():
    """Theorem 7.3 of Blasiok et al. (2023)."""
    from hypothesis import given, settings, strategies as st

    @settings(max_examples=60, deadline=None)
    @given(st.integers(1, 200), st.integers(0, 10**6), st.sampled_from([0.2, 1.0, 4.0]))
    def check(n, seed, shape):
        rng = np.random.default_rng(seed)
        v = rng.beta(shape, shape, n)
        y = (rng.random(n) < rng.choice([v, 1 - v, v**2])).astype(int)
        smooth = smooth_calibration_error(y, v, labels=[0, 1])
        value, bound = lower_distance_interval(y, v, labels=[0, 1], resolution=0.005)
        assert smooth / 2 - bound <= value <= 2 * smooth + bound

    check()


def test_counts_of_equal_predictions():
    rng = np.random.default_rng(0)
    v = rng.integers(0, 21, 3000) / 20
    y = (rng.random(3000) < v**2).astype(int)
    levels, code = np.unique(v, return_inverse=True)
    ones, total = np.bincount(code, y), np.bincount(code)
    pooled = lower_distance_to_calibration(
        np.repeat([1, 0], len(levels)),
        np.tile(levels, 2),
        sample_weight=np.concatenate([ones, total - ones]),
    )
    assert pooled == pytest.approx(lower_distance_to_calibration(y, v), abs=1e-12)


def test_extremes():
    assert lower_distance_to_calibration([0, 1], [0.0, 1.0]) == pytest.approx(
        0, abs=1e-11
    )
    assert lower_distance_to_calibration([0, 1], [1.0, 0.0]) == pytest.approx(
        0.5, abs=1e-8
    )
    assert lower_distance_to_calibration([1], [0.3], labels=[0, 1]) == pytest.approx(
        0.7, abs=1e-15
    )
    assert lower_distance_to_calibration([0], [0.3], labels=[0, 1]) == pytest.approx(
        0.3, abs=1e-15
    )


@pytest.mark.parametrize(
    "options, message",
    [
        (
            {"method": "flow"},
            "expected method among linear_program, rounded, got 'flow'",
        ),
        ({"resolution": 0}, "expected a resolution from 1e-6 to 1, got 0"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        lower_distance_to_calibration([0, 1], [0.2, 0.4], **options)


def test_exactly_calibrated_predictions():
    """Nothing has to move, prices are far from unique, and slacks of atoms vanish."""
    for seed in range(150):
        rng = np.random.default_rng(seed)
        n = int(rng.choice([1, 2, 3, 20, 300]))
        v = np.unique(rng.choice([1.0, 1e-6]) * rng.random(n))
        mass = rng.dirichlet(np.full(len(v), rng.choice([0.05, 0.3, 3.0])))
        found = find_distance_distribution_and_prices(
            make_distance_program_on_scores(v, mass * v, mass * (1 - v))
        )
        assert found.value <= 1e-10
        assert found.distribution @ make_distance_program_on_scores(
            v, mass, 0 * mass
        ).grid == pytest.approx(mass @ v, abs=1e-6)


def test_blocked_steps_are_centred():
    """200 labels for which Mehrotra's steps crawl, and end 2e-3 of the value away."""
    z = np.random.default_rng([119, 200, 7, 778]).normal(size=200) * 1.5 - 0.5
    drawn = int("40100010200042300861381e11fa10464a5544bdbffbfffff", 16)
    y = np.array([int(digit) for digit in f"{drawn:0200b}"])
    program = make_distance_program_on_scores(np.sort(expit(z)), y / 200, (1 - y) / 200)
    masses = np.stack([program.ones, program.zeros])
    prices, law = _distance._find_prices_and_distribution_if_solved(
        program.grid, masses
    )
    value = _distance._compute_move_cost(program, law)
    assert value == pytest.approx((masses * prices).sum(), abs=1e-9)
    assert value == pytest.approx(
        _distance._compute_move_cost(
            program,
            _distance._find_prices_and_distribution_by_highs(program.grid, masses)[1],
        )
    )


@pytest.mark.parametrize("stalls", [[True, False], [True, True]])
def test_where_the_interior_point_stalls(stalls, monkeypatch):
    """The mirrored program and HiGHS give the same value, law and bound."""
    score = np.sort(np.random.default_rng(0).random(150))
    ones = np.where(np.random.default_rng(1).random(150) < score**2, 1 / 150, 0.0)
    program = make_distance_program_on_scores(score, ones, 1 / 150 - ones)
    expected = find_distance_distribution_and_prices(program)
    solve = _distance._find_prices_and_distribution_if_solved
    answers = iter(stalls)
    monkeypatch.setattr(
        _distance,
        "_find_prices_and_distribution_if_solved",
        lambda *given: None if next(answers) else solve(*given),
    )
    found = find_distance_distribution_and_prices(program)
    assert next(answers, "all were asked") == "all were asked"
    assert found.value == pytest.approx(expected.value, abs=1e-9)
    assert (
        masses := np.stack([program.ones, program.zeros])
    ).shape == found.prices.shape
    assert (masses * found.prices).sum() == pytest.approx(expected.value, abs=1e-9)
    assert (
        bound_grid_excess(program, found) < bound_grid_excess(program, expected) + 1e-4
    )
