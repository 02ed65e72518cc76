"""How C, JavaScript and Python write operations, tables and functions."""

import keyword
import textwrap
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

ARITHMETIC_TEMPLATES = {
    "add": "({} + {})",
    "sub": "({} - {})",
    "mul": "({} * {})",
    "div": "({} / {})",
    "neg": "(-{})",
    "less": "({} < {})",
    "at_most": "({} <= {})",
}


def _make_call_templates(form, *names):
    """Return operations that call a function, whose name is formatted with `form`."""
    binary_functions = ("min", "max")
    return {
        name: form.format(name) + ("({}, {})" if name in binary_functions else "({})")
        for name in names
    }


_COMMON_TEMPLATES = ARITHMETIC_TEMPLATES | {"lookup": "{0}[{2}]"}
_C_STYLE_TEMPLATES = _COMMON_TEMPLATES | {
    "and": "({} && {})",
    "where": "({} ? {} : {})",
}

_C_KEYWORDS_TEXT = """
    auto break case char const continue default do double else enum extern float for goto if
    inline int long register restrict return short signed sizeof static struct switch typedef
    union unsigned void volatile while bool true false nullptr constexpr typeof asm alignas
    alignof class delete new namespace operator template this throw try catch using virtual public
    private protected friend export explicit mutable typename main p out
"""
_RESERVED_C_FUNCTIONS_TEXT = """
    exp expm1 log floor fabs abs sin cos tan sqrt pow ceil round trunc j0 j1 jn y0 y1 yn gamma
    lgamma tgamma erf erfc hypot cbrt fma fmin fmax rint nan signgam exp2 log2 log10 log1p NAN
    INFINITY
"""
_JS_KEYWORDS_TEXT = """
    arguments await break case catch class const continue debugger default delete do else enum
    eval export extends false finally for function if implements import in instanceof interface
    let new null package private protected public return static super switch this throw true try
    typeof undefined var void while with yield Math NaN Array Float64Array module Infinity p out
"""


@dataclass(frozen=True)
class Language:
    """What the printer of programs needs to know of a language.

    `operations` are templates; those with a table get its name, its length and the
    argument. Some need the helper of their name, in which NAME stands for that of the
    function.
    """

    title: str
    operations: dict[str, str]
    helpers: dict[str, str]
    reserved_names: frozenset[str]
    write_head: Callable[[str, str, int], str]
    write_table: Callable[[str, np.ndarray], str]
    write_assignment: Callable[[str, str, bool], str]
    write_function: Callable[[str, int, list[str], str, list[str], list[str]], str]


def _write_numbers(values):
    return textwrap.fill(
        ", ".join(map(repr, values.tolist())),
        99,
        initial_indent="    ",
        subsequent_indent="    ",
        break_on_hyphens=False,
    )


def _write_body(lines, indent="    "):
    return "".join(f"{indent}{line}\n" for line in lines)


# -- C ----------------------------------------------------------------------------------------

_C_HELPERS = {
    "search": """\
/* The number of edges <= x, of n >= 1 increasing ones. */
static int NAME_search(const double *edges, int n, double x) {
    const double *base = edges;
    while (n > 1) {
        const int half = n / 2;
        base += base[half - 1] <= x ? half : 0;
        n -= half;
    }
    return (int)(base - edges) + (*base <= x);
}
""",
    "min": "static double NAME_min(double a, double b) { return a < b ? a : b; }\n",
    "max": "static double NAME_max(double a, double b) { return a > b ? a : b; }\n",
    "chebyshev": """\
/* The sum of c[j] T_j(z), by Clenshaw's recurrence. */
static double NAME_chebyshev(const double *c, int n, double z) {
    double b1 = 0.0, b2 = 0.0;
    for (int j = n - 1; j > 0; j--) {
        const double b0 = c[j] + 2.0 * z * b1 - b2;
        b2 = b1;
        b1 = b0;
    }
    return c[0] + z * b1 - b2;
}
""",
}


def _write_c_head(head, name, k):
    about = (
        f"{name}: {k} scores in, the probabilities of {k} classes out; see its comment."
    )
    return f"/* {about}\n{head}\n*/\n#include <math.h>\n"


def _write_c_function(name, k, check, valid, body, results):
    inputs = [f"const double x{i} = p[{i}];" for i in range(k)]
    invalid = [f"if (!{valid}) {{", f"    for (int i = 0; i < {k}; i++) out[i] = NAN;"]
    invalid += ["    return;", "}"]
    final = [f"out[{i}] = {text};" for i, text in enumerate(results)]
    return (
        f"/* p and out have {k} numbers and may be the same; NaN for a row that is not valid. */\n"
        f"void {name}(const double *p, double *out) {{\n"
        f"{_write_body([*inputs, *check, *invalid, *body, *final])}}}\n"
    )


_C_LANGUAGE = Language(
    "C",
    _C_STYLE_TEMPLATES
    | _make_call_templates("{}", "floor", "exp", "expm1", "log")
    | _make_call_templates("NAME_{}", "min", "max")
    | {
        "abs": "fabs({})",
        "search": "NAME_search({}, {}, {})",
        "chebyshev": "NAME_chebyshev({}, {}, {})",
    },
    _C_HELPERS,
    frozenset(_C_KEYWORDS_TEXT.split()) | frozenset(_RESERVED_C_FUNCTIONS_TEXT.split()),
    _write_c_head,
    lambda name, v: (
        f"static const double {name}[{len(v)}] = {{\n{_write_numbers(v)}\n}};\n"
    ),
    lambda name, text, whole: f"const {'int' if whole else 'double'} {name} = {text};",
    _write_c_function,
)


# -- JavaScript -------------------------------------------------------------------------------

_JS_HELPERS = {
    "search": """\
// The number of edges <= x, of increasing ones.
function NAME_search(edges, x) {
  let low = 0, high = edges.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (x < edges[middle]) high = middle; else low = middle + 1;
  }
  return low;
}
""",
    "chebyshev": """\
// The sum of c[j] T_j(z), by Clenshaw's recurrence.
function NAME_chebyshev(c, z) {
  let b1 = 0, b2 = 0;
  for (let j = c.length - 1; j > 0; j--) [b1, b2] = [c[j] + 2 * z * b1 - b2, b1];
  return c[0] + z * b1 - b2;
}
""",
}


def _write_js_function(name, k, check, valid, body, results):
    """Write a function in JavaScript from its lines."""
    inputs = [f"const x{i} = p[{i}];" for i in range(k)]
    final = [f"out[{i}] = {text};" for i, text in enumerate(results)]
    invalid = [f"if (!{valid}) {{", f"  for (let i = 0; i < {k}; i++) out[i] = NaN;"]
    invalid += ["  return out;", "}"]
    lines = [*inputs, *check, *invalid, *body, *final, "return out;"]
    return (
        f"// p and out have {k} numbers and may be the same; NaN for a row that is not valid.\n"
        f"function {name}(p, out = new Array({k})) {{\n{_write_body(lines, '  ')}}}\n\n"
        f'if (typeof module !== "undefined") module.exports = {{ {name} }};\n'
    )


_JAVASCRIPT_LANGUAGE = Language(
    "JavaScript",
    _C_STYLE_TEMPLATES
    | _make_call_templates(
        "Math.{}",
        "abs",
        "floor",
        "exp",
        "expm1",
        "log",
        "min",
        "max",
    )
    | {"search": "NAME_search({0}, {2})", "chebyshev": "NAME_chebyshev({0}, {2})"},
    _JS_HELPERS,
    frozenset(_JS_KEYWORDS_TEXT.split()),
    lambda head, name, k: (
        f"/* {name}: {k} scores in, the probabilities of {k} classes out.\n{head}\n*/\n"
        '"use strict";\n'
    ),
    lambda name, v: f"const {name} = new Float64Array([\n{_write_numbers(v)}\n]);\n",
    lambda name, text, whole: f"const {name} = {text};",
    _write_js_function,
)


# -- Python -----------------------------------------------------------------------------------

_PY_HELPERS = {
    "chebyshev": '''\

def NAME_chebyshev(c, z):
    """The sum of c[j] T_j(z), by Clenshaw's recurrence."""
    b1 = b2 = 0.0
    for one in c[:0:-1]:
        b1, b2 = one + 2.0 * z * b1 - b2, b1
    return c[0] + z * b1 - b2

'''
}


def _write_py_function(name, k, check, valid, body, results):
    inputs = [f"x{i} = float(p[{i}])" for i in range(k)]
    invalid = [f"if not {valid}:", f"    return [math.nan] * {k}"]
    final = ["return [", *(f"    {text}," for text in results), "]"]
    return (
        f"\ndef {name}(p):\n"
        f'    """The {k} probabilities for {k} scores; NaN for a row that is not valid."""\n'
        f"{_write_body([*inputs, *check, *invalid, *body, *final])}"
    )


_PYTHON_LANGUAGE = Language(
    "Python",
    _COMMON_TEMPLATES
    | _make_call_templates("math.{}", "floor", "exp", "expm1", "log")
    | _make_call_templates("{}", "abs", "min", "max")
    | {
        "and": "({} and {})",
        "where": "({1} if {0} else {2})",
        "search": "bisect_right({0}, {2})",
        "chebyshev": "NAME_chebyshev({0}, {2})",
    },
    _PY_HELPERS,
    frozenset({*keyword.kwlist, *keyword.softkwlist})
    | frozenset({"math", "bisect_right", "abs", "min", "max", "float", "p"}),
    lambda head, name, k: (
        f"# {name}: {k} scores in, the probabilities of {k} classes out.\n# {head}\n"
        "import math\nfrom bisect import bisect_right\n"
    ),
    lambda name, v: f"{name} = (\n{_write_numbers(v)},\n)\n",
    lambda name, text, whole: f"{name} = {text}",
    _write_py_function,
)

LANGUAGES = {
    "c": _C_LANGUAGE,
    "javascript": _JAVASCRIPT_LANGUAGE,
    "python": _PYTHON_LANGUAGE,
}
