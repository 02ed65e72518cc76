"""The errors and warnings of the package, read off its source.

`messages` finds each call of `refuse` and `caution`; a part of a text that is filled in at run time
is shown as an ellipsis.
"""

import ast
from collections import namedtuple
from pathlib import Path

import sklearn_calib

ROOT = Path(sklearn_calib.__file__).parent
GAP = "…"

Message = namedtuple("Message", "kind module rule cure")


def messages(root=ROOT):
    """`Message` of every error ("error") and `CalibrationWarning` ("warning"), in file order."""
    found = []
    for path in sorted(root.rglob("*.py")):
        module = path.relative_to(root).with_suffix("").parts[0]
        if module == "exceptions":  # where the functions themselves are
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        texts = _assigned(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                message = _message(node, module, texts)
                if message and message not in found:
                    found.append(message)
    return found


def _message(call, module, texts):
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name == "refuse" or name == "caution":
        names = ("where", "rule", "got", "cure")
        if module == "_cli" and name == "refuse":  # no function was called there
            names = names[1:]
        values = dict(zip(names, call.args, strict=False))
        values.update({keyword.arg: keyword.value for keyword in call.keywords})
        if any(isinstance(argument, ast.Starred) for argument in call.args):
            return None  # the words are where the tuple is made
        if name == "caution" and len(call.args) > len(values):
            return None  # of a category of another package
        kind = "error" if name == "refuse" else "warning"
        return Message(kind, module, _text(values["rule"], texts), _text(values["cure"], texts))
    return None


def _assigned(tree):
    """Texts that a name stands for, where it is assigned once."""
    values = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            values.setdefault(node.targets[0].id, []).append(node.value)
    return {
        name: found[0]
        for name, found in values.items()
        if len(found) == 1 and isinstance(found[0], ast.Constant | ast.JoinedStr | ast.BinOp)
    }


def _text(node, texts):
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part, texts) for part in node.values)
    if isinstance(node, ast.BinOp):
        return _text(node.left, texts) + _text(node.right, texts)
    if isinstance(node, ast.IfExp):
        return f"{_text(node.body, texts)} / {_text(node.orelse, texts)}"
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("setting", "named"):
        return _words(node, texts)
    if isinstance(node, ast.Name) and node.id in texts:
        return _text(texts[node.id], {})
    return GAP


def _words(call, texts):
    """What `exceptions.setting` and `exceptions.named` say of an argument."""
    words = next((keyword.value for keyword in call.keywords if keyword.arg == "words"), None)
    if words is not None or len(call.args) > 2:
        return _text(call.args[2] if words is None else words, texts)
    name = _text(call.args[0], texts)
    if call.func.id == "named":
        return name
    return f"{name}={repr(ast.literal_eval(call.args[1])) if len(call.args) > 1 else ''}"
