"""Each page as plain text beside it, and ``llms.txt``, which lists them for programs that read.

The form is that of llmstxt.org: a title, a sentence, and lists of links with what is
behind them.
"""

from docutils import nodes
from docutils.io import StringOutput
from sphinx.builders.text import TextBuilder
from sphinx.writers.text import TextTranslator, TextWriter

SECTIONS = {
    "user_guide/": "User guide",
    "extending/": "Methods, measures and nodes of your own",
    "auto_examples/": "Examples",
    "api/": "Functions and classes",
    "": "Other pages",
}
LONGEST = 200  # characters of what is said of a page


class Translator(TextTranslator):
    """Nodes of other extensions, such as cards, are what they contain."""

    def unknown_visit(self, node):
        """Nothing begins."""

    def unknown_departure(self, node):
        """Nothing ends."""


def connect(app):
    app.connect("build-finished", write)


def write(app, error):
    """All pages of a finished build in HTML."""
    if error or app.builder.name != "html":
        return
    builder, listed = (
        TextBuilder(app, app.env),
        {name: [] for name in SECTIONS.values()},
    )
    builder.init()
    for name in sorted(app.env.found_docs):
        tree = app.env.get_and_resolve_doctree(name, builder, tags=builder.tags)
        path = app.outdir / f"{name}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(as_text(builder, tree), encoding="utf-8")
        section = next(
            title for start, title in SECTIONS.items() if name.startswith(start)
        )
        title = app.env.titles[name].astext()
        listed[section].append(f"- [{title}]({name}.txt): {first_sentence(tree)}")
    parts = [
        f"# {app.config.project}",
        "> Probability calibration in Python for scikit-learn.",
    ]
    parts += [
        f"## {title}\n\n" + "\n".join(lines) for title, lines in listed.items() if lines
    ]
    (app.outdir / "llms.txt").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def as_text(builder, tree):
    """A page as text of 100 columns."""
    writer = TextWriter(builder)
    builder.create_translator = lambda document, given: Translator(document, given)
    writer.write(tree, StringOutput(encoding="unicode"))
    return writer.output


def first_sentence(tree):
    """What the first paragraph begins with."""
    paragraphs = (one.astext() for one in tree.findall(nodes.paragraph))
    text = " ".join(next((one for one in paragraphs if one.strip()), "").split())
    text = text.partition(". ")[0].rstrip(".") + "."
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
