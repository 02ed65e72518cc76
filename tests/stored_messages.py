"""Messages of all public calls with values that they reject, as they were last looked at.

The calls and the values are those of `test_hostile_options` and `test_refusals`, so a
new function, argument or case comes by itself. ``python tests/stored_messages.py``
writes the messages to `tests/data/stored_messages.json` after an intended change and
prints those that are new: read them as a user would. What a message must contain is in
the other tests; this file finds unintended changes of any of its words.
"""

import copy
import json
import os
import re
import sys
import tempfile
import warnings
import zlib
from pathlib import Path

from test_hostile_options import CALLS, HOSTILE
from test_refusals import REFUSED

from sklearn_calib.exceptions import InvalidInputError

FILE = Path(__file__).parent / "data" / "stored_messages.json"
#: Of every argument, how many of the values are tried.
PER_ARGUMENT = 6
REFUSALS = "test_refusals"


def list_cases():
    """{name: {title: function}} of all calls."""
    cases = {}
    for name, (run, given, arguments) in CALLS.items():
        cases[name] = {}
        for argument in arguments:
            for number in pick_values(f"{name} {argument}"):
                cases[name][f"{argument}, {number}"] = (run, given, argument, number)
    cases[REFUSALS] = {
        title: (call, {}, None, None) for title, (call, _) in REFUSED.items()
    }
    return cases


def pick_values(words):
    """Numbers of some values, others for every argument."""
    start = zlib.crc32(words.encode())
    return [(start + 37 * i) % len(HOSTILE) for i in range(PER_ARGUMENT)]


def message_of(run, given, argument, number):
    """The whole message of an error, or None if there is none of ours."""
    given = copy.deepcopy(given)
    if argument is not None:
        given[argument] = copy.deepcopy(HOSTILE[number])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            run(**given)
        except InvalidInputError as error:
            return shorten_message(str(error))
        except Exception:
            return None
    return None


def shorten_message(text):
    """Return a message without addresses of objects and runs of one character."""
    text = re.sub(r"0x[0-9a-fA-F]+", "0x", text)
    return re.sub(r"(.)\1{40,}", r"\1...", text, flags=re.DOTALL)


def read_messages():
    """{name: {title: message or None}} as stored; each message is stored once."""
    stored = json.loads(FILE.read_text(encoding="utf-8"))
    texts = [*stored["messages"], None]
    return {
        name: {title: texts[number] for title, number in titles.items()}
        for name, titles in stored["calls"].items()
    }


def write_messages(names):
    """Store the messages of all calls, or of those functions and classes that are named."""
    before = read_messages() if FILE.exists() else {}
    known = {text for titles in before.values() for text in titles.values()}
    texts, calls = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, cases in list_cases().items():
            calls[name] = {}
            for title, case in cases.items():
                message = before.get(name, {}).get(title)
                if message is None or not names or name in names:
                    message = message_of(*case)
                if message is None:
                    calls[name][title] = -1
                    continue
                if message not in known and message not in texts:
                    print(ascii(message))
                calls[name][title] = texts.setdefault(message, len(texts))
    stored = {"messages": [*texts], "calls": calls}
    text = json.dumps(stored, indent=0, ensure_ascii=True)
    FILE.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    write_messages(sys.argv[1:])
