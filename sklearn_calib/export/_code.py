"""Maps as source text of C, JavaScript and Python."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from .._argument_checks import check_choice
from ..exceptions import invalid_input
from ._document import Kind, MapDocument, to_document
from ._languages import LANGUAGES, Language
from ._lower import make_program
from ._program import (
    CONDITION_OPERATIONS,
    LEAF_OPERATIONS,
    Expr,
    Program,
    count_uses,
    iter_expressions,
)

# One line nests at most this many operations.
_MAX_NESTED_OPERATIONS = 20
# Compilers take minutes for more operations.
MAX_CODE_OPERATIONS = 200_000

CodeLanguage = Literal["c", "javascript", "python"]


def to_code(
    fitted: Any,
    language: CodeLanguage = "c",
    name: str = "calibrate",
    *,
    input: Kind | None = None,
    tabulate: float | None = None,
) -> str:
    """Write a fitted map as a function in C, JavaScript or Python that needs nothing else.

    Parameters
    ----------
    fitted : fitted recalibrator, Pipeline of them, ExportedMap or dict
        As in `to_dict`.
    language : {"c", "javascript", "python"}, default="c"
        C99, which calls exp, expm1 and log of the C library; JavaScript for browsers
        and Node.js; Python that needs its standard library only.
    name : str, default="calibrate"
        The name of the function; the names of its tables begin with it. It is an ASCII
        identifier and not a reserved word of the language.
    input : {"proba", "logits"}, default=None
        The kind of scores that the function takes: see `to_dict`.
    tabulate : float in (0, 0.1], default=None
        As in `to_dict`, for methods without a finite form.

    Returns
    -------
    code : str
        * C: ``void calibrate(const double *p, double *out)``, with k numbers each. It
          allocates nothing, keeps no state, and `out` may be `p`. Compile without
          ``-ffast-math``.
        * JavaScript: ``calibrate(p, out)`` writes into the array `out`, a new one by
          default, and returns it; exported if ``module`` exists. As a file
          ``map.cjs`` node finds it by ``require`` and by ``import { calibrate } from
          "./map.cjs"``.
        * Python: ``calibrate(p)`` returns a list of k floats.

        The text begins with a comment: the document of `to_dict` without the map, as
        JSON on one line, with its five check rows. It is the same text for the same
        map.

    Raises
    ------
    ValueError
        A name that is not an identifier, an unknown language, a map that cannot be
        exported, or one of more than 200,000 operations.

    Notes
    -----
    A row is one number for each class, in the order of the labels. Rows are divided by
    their sums, as `canonical_proba` does. The function cannot raise an error: a row
    with a number outside [0, 1], a sum that is farther than 1e-6 from 1, a NaN or an
    infinite logit gives NaN for all classes. Check the scores before, or the results
    after.

    Results are those of `predict_proba` within 1e-12. Methods that round scores to 36
    significant bits (isotonic and the like) may differ more in about 1 row of 1e5. The
    score of such a row is, up to its last digit, half-way between two rounded scores,
    so that another logarithm than numpy's rounds it to the other one, 1.5e-11 away.
    Probabilities are distinguished down to 5e-324, both near 0 and near 1.

    Cost of a row: O(k) for most methods, a table of m entries takes log2(m)
    comparisons, a matrix k^2 multiplications.

    Examples
    --------
    >>> from sklearn_calib.export import to_code
    >>> from sklearn_calib.recalibrators import PlattScaling
    >>> fitted = PlattScaling().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    >>> code = to_code(fitted, "python")
    >>> namespace = {}
    >>> exec(code, namespace)  # your own export; never code from elsewhere
    >>> bool(abs(namespace["calibrate"]([0.7, 0.3])[1] - fitted.predict_proba([0.3])[0, 1]) < 1e-12)
    True
    """
    check_choice("a language", language, LANGUAGES, "Choose a language")
    rules = LANGUAGES[language]
    _check_name(name, rules)
    document = to_document(fitted, input=input, tabulate=tabulate)
    program = make_program(document)
    count = sum(1 for _ in iter_expressions([program.valid, *program.outputs]))
    if count > MAX_CODE_OPERATIONS:
        raise invalid_input(
            expected=f"a map of at most {MAX_CODE_OPERATIONS} operations",
            got=f"{count}",
            hint="Use to_json or to_onnx, or a method with fewer parameters",
        )
    return _Printer(rules, name, program).write_file(document)


def _check_name(name, language):
    """Raise an error if a function cannot have this name in a language."""
    good = isinstance(name, str) and name.isascii() and name.isidentifier()
    if (
        not good
        or len(name) > 60
        or name.startswith("_")
        or name in language.reserved_names
    ):
        raise invalid_input(
            expected=(
                "a name of ASCII letters, digits and underscores, at most 60, that "
                f"begins with a letter and is not a keyword of {language.title}"
            ),
            got=repr(name)[:80],
            hint="Pass another name",
        )


class _Printer:
    """Prints one program: a line for each expression that is used twice, and tables."""

    def __init__(self, language: Language, name: str, program: Program) -> None:
        self.language = language
        self.name = name
        self.program = program
        self._tables: dict[bytes, tuple[str, np.ndarray]] = {}
        self._texts: dict[int, str] = {}
        self._depth: dict[int, int] = {}
        self._helpers: set[str] = set()
        self._n_lines = 0

    def write_file(self, document: MapDocument) -> str:
        """Return the whole file."""
        program = self.program
        language = self.language
        self._uses = count_uses([program.valid, *program.outputs])
        # The check comes first, and what it has computed is not computed again for the
        # results.
        check = self._write_lines_and_store_texts([program.valid])
        body = self._write_lines_and_store_texts(program.outputs)
        valid = self._texts[id(program.valid)]
        results = [self._texts[id(expr)] for expr in program.outputs]
        tables = [
            language.write_table(name, values) for name, values in self._tables.values()
        ]
        helpers = [
            language.helpers[expr] for expr in language.helpers if expr in self._helpers
        ]
        parts = [
            language.write_head(document.json_without_map, self.name, program.n_inputs)
        ]
        parts += [helper.replace("NAME", self.name) for helper in helpers] + tables
        parts.append(
            language.write_function(
                self.name,
                program.n_inputs,
                check,
                valid,
                body,
                results,
            )
        )
        return "\n".join(parts)

    def _write_lines_and_store_texts(self, roots: Sequence[Expr]) -> list[str]:
        """Write the lines that assign what is searched, repeated or deeply nested."""
        lines = []
        for expr in iter_expressions(roots):
            if id(expr) in self._texts:
                continue
            text = self._write_operation(expr)
            depth = 1 + max((self._depth[id(arg)] for arg in expr.args), default=-1)
            is_search = expr.op == "search"
            is_leaf = expr.op in LEAF_OPERATIONS
            is_repeated = self._uses[id(expr)] > 1
            is_deep = depth > _MAX_NESTED_OPERATIONS
            if is_search or (not is_leaf and (is_repeated or is_deep)):
                self._n_lines += 1
                name = f"t{self._n_lines}"
                depth = 0
                whole = is_search or expr.op in CONDITION_OPERATIONS
                lines.append(self.language.write_assignment(name, text, whole))
                text = name
            self._texts[id(expr)] = text
            self._depth[id(expr)] = depth
        return lines

    def _write_operation(self, expr: Expr) -> str:
        """Write an expression in terms of the texts of its arguments."""
        args = [self._texts[id(arg)] for arg in expr.args]
        data = expr.data
        if expr.op == "number":
            return f"({data!r})" if repr(data).startswith("-") else repr(data)
        if expr.op == "input":
            return f"x{data}"
        if expr.op in self.language.helpers:
            self._helpers.add(expr.op)
        if isinstance(data, np.ndarray):
            args = [self._name_table(data), str(len(data)), *args]
        return (
            self.language.operations[expr.op].format(*args).replace("NAME", self.name)
        )

    def _name_table(self, values: np.ndarray) -> str:
        new = f"{self.name}_table_{len(self._tables) + 1}"
        return self._tables.setdefault(values.tobytes(), (new, values))[0]
