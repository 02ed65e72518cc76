"""The errors and warnings of the package, read off its source.

`messages` finds each call of `invalid_input` and `warn_calibration`; a part of a text
that is filled in at run time is shown as an ellipsis. The text is the sentence of the
message, or the rule after "expected" if the message has the common form.
"""

import ast
from collections import namedtuple
from pathlib import Path

import sklearn_calib

ROOT = Path(sklearn_calib.__file__).parent
GAP = "…"

Message = namedtuple("Message", "kind module text hint")


def messages(root=ROOT):
    """`Message` of every error ("error") and `CalibrationWarning` ("warning"), in file order."""
    found = []
    for path in sorted(root.rglob("*.py")):
        module = path.relative_to(root).with_suffix("").parts[0]
        if module in ("exceptions", "_warnings"):  # these define the functions
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        texts = _assigned(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                message = _message(node, module, texts)
                if message and message not in found:
                    found.append(message)
    return found


KINDS = {
    "invalid_input": "error",
    "invalid_option": "error",
    "invalid_field": "error",
    "warn_calibration": "warning",
}


def _message(call, module, texts):
    name = (
        call.func.attr
        if isinstance(call.func, ast.Attribute)
        else getattr(call.func, "id", "")
    )
    if name == "invalid_combination":
        first, second = (_text(argument, texts) for argument in call.args)
        hint = next(keyword.value for keyword in call.keywords if keyword.arg == "hint")
        return Message(
            "error",
            module,
            f"{first} and {second} cannot be combined",
            _text(hint, texts),
        )
    if name not in KINDS:
        return None
    values = {keyword.arg: keyword.value for keyword in call.keywords}
    text = values.get("sentence", values.get("expected"))
    if text is None or "category" in values:
        return None  # the text is elsewhere, or the category of another package
    hint = _text(values["hint"], texts) if "hint" in values else ""
    text = _text(text, texts)
    return Message(KINDS[name], module, text, hint)


def _assigned(tree):
    """Texts that a name stands for, where it is assigned once."""
    values = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            values.setdefault(node.targets[0].id, []).append(node.value)
    return {
        name: found[0]
        for name, found in values.items()
        if len(found) == 1
        and isinstance(found[0], ast.Constant | ast.JoinedStr | ast.BinOp)
    }


def _text(node, texts):
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        text = "".join(_text(part, texts) for part in node.values)
        return text.replace(2 * GAP, GAP)
    if isinstance(node, ast.BinOp):
        return _text(node.left, texts) + _text(node.right, texts)
    if isinstance(node, ast.IfExp):
        return f"{_text(node.body, texts)} / {_text(node.orelse, texts)}"
    if isinstance(node, ast.Name) and node.id in texts:
        return _text(texts[node.id], {})
    return GAP
