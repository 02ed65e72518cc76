"""One test of many cases fails with each case that is wrong."""

import pytest
from cases import check_every_case, name_value, run_every_case


def check_order(low, high):
    if high == 0:
        pytest.skip("there is nothing below 0")
    assert low < high, f"{low} is not below {high}"


def test_all_that_fail_are_named_with_their_values():
    cases = {
        "right": {"low": 1, "high": 2},
        "equal": {"low": 3, "high": 3},
        "skipped": {"low": 1, "high": 0},
        "another type": {"low": 1, "high": "2"},
        "turned": {"low": 5, "high": 4},
    }
    with pytest.raises(AssertionError) as caught:
        check_every_case(cases, check_order)
    first, *others = str(caught.value).splitlines()
    assert first == "3 of 5 cases fail:"
    found = [line for line in others if line.startswith("[")]
    assert found[0].startswith("[equal] AssertionError: 3 is not below 3")
    assert found[1].startswith("[another type] TypeError: '<' not supported")
    assert found[2].startswith("[turned] AssertionError: 5 is not below 4")
    assert len(found) == 3 and "3 is not below 3" in str(caught.value.__cause__)


def test_an_error_that_did_not_come_is_a_failure_too():
    def check_refusal(value):
        with pytest.raises(ValueError):
            int(value)

    check_every_case({"a": {"value": "a"}}, check_refusal)
    with pytest.raises(AssertionError, match=r"1 of 2 cases fail:\n\[1\] Failed: DID"):
        check_every_case({"a": {"value": "a"}, "1": {"value": "1"}}, check_refusal)


def test_skipped_only_if_all_cases_are():
    skipped = {"low": 1, "high": 0}
    check_every_case({"a": skipped, "b": {"low": 1, "high": 2}}, check_order)
    with pytest.raises(pytest.skip.Exception, match="nothing below"):
        check_every_case({"a": skipped, "b": skipped}, check_order)


def test_a_case_with_marks_remains_a_test_of_its_own():
    slow = pytest.param(3, 4, marks=pytest.mark.slow)
    decorated = run_every_case("low, high", [(1, 2), slow, (2, 3), (1, 2)])(check_order)
    (mark,) = decorated.pytestmark
    argument, tests = mark.args
    assert argument == "cases_of_low"
    together, alone = tests
    assert [*together.values[0]] == ["1-2", "2-3", "1-2, 3"]
    assert alone.id == "3-4" and [one.name for one in alone.marks] == ["slow"]
    assert alone.values[0] == {"3-4": {"low": 3, "high": 4}}
    decorated(cases_of_low=together.values[0])
    with pytest.raises(AssertionError, match="1 of 1 cases fail"):
        decorated(cases_of_low={"wrong": {"low": 2, "high": 1}})


def test_crosses():
    seen = []

    def note_pair(number, word):
        seen.append((number, word))

    inner = run_every_case("word", ["a", "b"], ids=str.upper)(note_pair)
    crossed = run_every_case("number", [1, 2])(inner)
    chosen = {mark.args[0]: mark.args[1][0].values[0] for mark in crossed.pytestmark}
    assert [*chosen["cases_of_word"]] == ["A", "B"]
    crossed(**chosen)
    assert seen == [(1, "a"), (1, "b"), (2, "a"), (2, "b")]


def test_a_test_has_cases():
    with pytest.raises(ValueError, match=r"expected cases of \['name'\], got none"):
        run_every_case("name", [])


def test_names():
    assert [name_value(one) for one in (int, "int", 3)] == ["int", "int", "3"]
