"""Names that somebody else chose, on every surface."""

import html
import io
import re
import shutil
import subprocess
import warnings

import numpy as np
import pytest
from cases import run_every_case

from sklearn_calib._show import (
    MarkedCell,
    Section,
    Table,
    escape_html,
    escape_legend_label,
    escape_mathtext,
    iter_terminal_renderables,
    make_printable,
    quote_for_shell,
    quote_text,
    render_html,
    wrap_for_notebook,
)
from sklearn_calib._show._html import render_html_table
from sklearn_calib._show._names import format_row_numbers
from sklearn_calib._show._text import render_text_table
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.displays import (
    CalibratingFunctionDisplay,
    DecompositionDisplay,
    ReliabilityDisplay,
)
from sklearn_calib.report import _pictures, calibration_report
from sklearn_calib.report._sections import make_sections

NAMES = [
    "$a_{$",
    "$x$",
    "\\$",
    "a$b",
    "tab\t",
    "\x1b[1m",
    "[/b]",
    "<i>",
    '"',
    "{0}",
    "_hidden",
]


def test_plain():
    assert make_printable("a\x1b[1m\n\u202eb") == r"a\x1b[1m\n\u202eb"
    assert make_printable("\udcff") == r"\udcff"
    assert make_printable("é 名 😀 👨\u200d👩") == "é 名 😀 👨\u200d👩"
    assert make_printable("abc" * 100, 9) == "abc...abc"
    assert (
        make_printable("abcdefghi", 9) == "abcdefghi"
        and len(make_printable("x" * 99, 10)) == 10
    )
    assert make_printable("x" * 999, None) == "x" * 999
    assert make_printable(3) == "3" and quote_text("a\nb") == r"'a\nb'"


def test_first_rows_in_words():
    assert (
        format_row_numbers([3]) == "row 3"
        and format_row_numbers([3, 7]) == "rows 3 and 7"
    )
    assert format_row_numbers(range(5)) == "rows 0, 1, 2, 3 and 4"
    assert format_row_numbers(range(6)) == "rows 0, 1, 2, 3, 4 and 1 more"


def test_numbers_are_aligned_on_the_right():
    table = Table(["name", "value"], [["a", "1"], ["bcdef", "10"]])
    assert render_text_table(table) == ["name   value", "a          1", "bcdef     10"]


def test_in_page():
    assert (
        escape_html("<a href=\"x\" id='y'>&")
        == "&lt;a href=&quot;x&quot; id=&#x27;y&#x27;&gt;&amp;"
    )


@pytest.mark.parametrize(
    "name",
    [
        "$a_{$",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("_hidden", *NAMES[1:-1])
        ),
    ],
)
def test_pictures_show_names_as_they_are(name):
    plt = pytest.importorskip("matplotlib.pyplot")
    proba, y = make_overconfident(2, 60)
    displays = [
        ReliabilityDisplay.from_predictions(y, {name: proba, "other": proba}),
        DecompositionDisplay.from_predictions(y, {name: proba}),
        CalibratingFunctionDisplay(
            np.array([0.0, 1.0]), {name: np.array([0.0, 1.0])}
        ).plot(),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for display in displays:
            display.figure_.canvas.draw()
    legend = [text.get_text() for text in displays[0].axes_[0].get_legend().get_texts()]
    assert legend == [escape_legend_label(name), "other"], "a name is missing"
    titles = (
        displays[2].axes_[0].get_title(),
        displays[1].ax_.get_yticklabels()[0].get_text(),
    )
    assert titles == (escape_mathtext(name),) * 2
    for display in displays:
        plt.close(display.figure_)


@pytest.mark.slow
def test_labels_are_shown_as_they_are():
    plt = pytest.importorskip("matplotlib.pyplot")
    proba, y = make_overconfident(3, 90)
    labels = np.array(["$a", "b$", "<c>\n"])
    display = ReliabilityDisplay.from_predictions(
        labels[y], proba, multiclass="classwise"
    )
    display.figure_.canvas.draw()
    assert {axes.get_title() for axes in display.axes_} == {
        r"class \$a", r"class b\$", r"class <c>\n",
    }  # fmt: skip
    plt.close(display.figure_)


@pytest.mark.slow
@run_every_case("name", [*NAMES, 7, ("a", 1), None])
def test_reports_show_names_as_they_are(name):
    proba, y = make_overconfident(2, 60)
    report = calibration_report(
        y, {name: proba}, measures=["brier_loss"], n_resamples=2, labels=[0, 1]
    )
    assert f"accuracy of {make_printable(name)}:" in str(report) and "\x1b" not in str(
        report
    )
    assert f"<bdi>{html.escape(make_printable(name))}</bdi>" in report._repr_html_()


def test_words_of_a_shell(tmp_path):
    """What bash makes of them is what was meant."""
    words = ["plain", "two words", "it's", "\x1b[31m it's \\ \u200e", "=1+1", ""]
    # a file whose name is not a UTF-8
    words += [
        "\udcffname.csv",
        "a\xa0b\x85c",
        "\U000e0001 d",
    ]
    line = " ".join(map(quote_for_shell, words))
    assert line.isprintable()
    bash = shutil.which("bash")
    if bash is not None:
        code = ["-c", f"printf '%s\\0' {line}"]
        done = subprocess.run(
            [bash, *code], capture_output=True, env={"LC_ALL": "C.UTF-8"}
        )
        assert done.stdout.decode(errors="surrogateescape").split("\0")[:-1] == words


def shown(sections, width):
    """What a terminal of this width shows, without styles."""
    console = pytest.importorskip("rich.console").Console(
        file=io.StringIO(), width=width
    )
    for thing in iter_terminal_renderables(sections, width):
        console.print(thing, soft_wrap=isinstance(thing, str), highlight=False)
    return console.file.getvalue()


def test_terminals_of_any_width():
    """A narrow one leaves spare columns out and breaks headings; code is never broken."""
    rows = [
        ["a", "[b]x[/b]", MarkedCell("0.5", "best"), "spare"],
        ["c", "d", MarkedCell("0.7"), "spare"],
    ]
    table = Table(
        ("model", "name", "a long heading", "more"),
        rows,
        n_name_columns=2,
        hidden_if_narrow=(3,),
    )
    code = "pip install " + 9 * "something-with-a-name "
    below = [
        Section(name="\x1b", notes=["below"]),
        Section("none", formats="html text", notes=["x"]),
    ]
    section = Section(
        "Title", "", ["[red] :smile:"], ["one", "two"], [table], code=code
    )
    section = section._replace(notes=["note"], parts=below)
    wide, narrow = shown([section], 90), shown([section], 24)
    for text in (wide, narrow):
        assert text.startswith("Title\n[red] :smile:\n\none\ntwo\n\na\n┏━")
        assert "│ [b]x[/b] │ " in text and text.count("* best\n\nc\n┏━") == 1
        assert text.endswith(f"┘\nnote\n\n    {code}\n\n\\x1b\nbelow\n")
    assert (
        "┃ a long heading ┃  more ┃\n" in wide
        and "│          * 0.5 │ spare │\n" in wide
    )
    assert "┃  a long ┃\n┃ name     ┃ heading ┃\n" in narrow and "spare" not in narrow


def test_marks_of_a_terminal():
    """What stands out is bold; nothing is coloured."""
    rows = [["c", MarkedCell("d", "beyond"), "e"]]
    (boxes,) = iter_terminal_renderables(
        [Section(tables=[Table(("a", "b", "f"), rows)])], 80
    )
    assert [str(text.style) for each in boxes.columns for text in each.cells] == [
        "",
        "bold",
        "",
    ]


def test_an_empty_column_fits_into_a_narrow_terminal():
    table = Table(
        ("a long name", "a long heading", "b"), [["c", "", "d"], ["e", "", "f"]]
    )
    (boxes,) = iter_terminal_renderables([Section(tables=[table])], 20)
    assert [str(column.header) for column in boxes.columns][1:] == [
        "a long\nheading",
        "b",
    ]


def test_only_pages_draw_pictures(monkeypatch):
    proba, y = make_overconfident(3, 90)
    report = calibration_report(y, proba, n_resamples=2)
    monkeypatch.setattr(_pictures, "arrange_figures", lambda *rows: "<b>drawn</b>")
    sections = make_sections(report, _pictures.make_diagram_series_by_model(report))
    assert render_html(sections).count("<b>drawn</b>") == 2
    assert "<b>" not in str(report) + report.to_markdown() + shown(sections, 80)
    monkeypatch.setattr(_pictures, "arrange_figures", lambda *rows: 1 / 0)
    assert str(report) and report.to_markdown()


def test_tables_of_a_notebook_scroll_and_have_no_empty_heading():
    table = Table(header=["", "value"], rows=[["a", "1"]])
    text = wrap_for_notebook(render_html_table(table))
    assert '<thead><tr><td></td><th scope="col">value</th></tr></thead>' in text
    style = text[text.index("<style>") : text.index("</style>")]
    assert ".sklearn-calib .wide { overflow-x: auto; }" in style
    assert '<div class="wide"><table' in text
    # nothing is cut
    assert "@media print { .sklearn-calib .wide { overflow: visible; }" in style


def test_a_name_of_several_rows_is_said_once_and_columns_of_names_are_on_the_left():
    rows = [
        ["model <1>", "brier_loss", "0.2"],
        ["model <1>", "a_measure_with_many_parts", "0.3"],
    ]
    table = Table(
        ["model", "measure", "value"],
        [*rows, ["b", "c", "7.1 % (2 % to 9 %)"]],
        n_name_columns=2,
    )
    text = render_html_table(table)
    assert text.count("model &lt;1&gt;") == 1
    assert (
        '<tr><th scope="rowgroup" rowspan="2"><bdi>model &lt;1&gt;</bdi></th><td class'
        in text
    )
    assert (
        '<tr><td class="text">a_<wbr>measure_<wbr>with_<wbr>many_<wbr>parts</td><td>0.3</td></tr>'
        in text
    )
    assert '<th scope="row"><bdi>b</bdi></th>' in text and text.count("<tbody>") == 2
    assert "7.1&nbsp;% (2&nbsp;% to 9&nbsp;%)" in text and "brier_loss" in text
    assert '<th scope="col" class="text">measure</th><th scope="col">value</th>' in text
    small = render_html_table(Table(["name", "p"], [["a", "1.5e-14"]]))
    assert '<td><span class="unsplit">1.5e-14</span></td>' in small
    # no name of several rows
    apart = render_html_table(Table(["name", "p"], [["a", "1"], ["a", "2"]]))
    assert (
        apart.count('<th scope="row"><bdi>a</bdi>') == 2 and apart.count("<tbody>") == 1
    )


@pytest.mark.parametrize("level", [2, 3])
def test_headings_of_parts_are_one_level_deeper(level):
    """Parts of a section without a heading are on its own level."""
    inner = Section(title="c", sentences=["d"])
    parts = [Section(title="b", parts=[inner]), Section(parts=[inner])]
    found = render_html([Section(title="a", parts=parts)], level)
    headings = re.findall(r"<h(\d)>(\w)</h\1>", found)
    expected = [(0, "a"), (1, "b"), (2, "c"), (1, "c")]
    assert headings == [(str(level + deeper), name) for deeper, name in expected]
