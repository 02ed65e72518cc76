"""The picture of each display: its class's example, run."""

import doctest
import inspect
from functools import partial

from sklearn_calib import displays


def draw_example(name):
    """Run the example of a class, which leaves its figure open."""
    text = inspect.getdoc(getattr(displays, name))
    names = {}
    for example in doctest.DocTestParser().get_examples(text):
        exec(example.source, names)


# the directive calls a function of the name that it is given
for _name in displays.__all__:
    globals()[_name] = partial(draw_example, _name)
