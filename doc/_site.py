"""What a hosted site has in addition: versions, a link to the source, preview cards.

The addresses are those of ``release/addresses.json``. They are only used if the build
has an address of its own (``READTHEDOCS_CANONICAL_URL``), because they lead nowhere
before the first release.
"""

import json
import re
from pathlib import Path

ADDRESSES = Path(__file__).parent / "release" / "addresses.json"
SWITCHER = "_static/switcher.json"


def list_theme_options(address, version):
    """Return the options of the theme that need an address."""
    if not address:
        return {}
    source = json.loads(ADDRESSES.read_text(encoding="utf-8"))["source"]
    return {
        "navbar_end": ["version-switcher", "theme-switcher", "navbar-icon-links"],
        "switcher": {"json_url": f"{address}{SWITCHER}", "version_match": version},
        "check_switcher": False,
        "icon_links": [
            {"name": "Source", "url": source, "icon": "fa-brands fa-github"},
        ],
    }


def split_words(name):
    """Return the words of a class as people search them: "temperature scaling"."""
    return re.sub("(?<=[a-z])(?=[A-Z])", " ", name).lower()


def add_card(app, doctree):
    """Add what social networks and messengers show of a link to the page."""
    # the other functions are tested without it
    from docutils import nodes

    title = next(doctree.findall(nodes.title), None)
    found = {
        node["name"]: node["content"]
        for node in doctree.findall(nodes.meta)
        if node.get("name")
    }
    card = {
        "og:type": "website",
        "og:site_name": app.config.project,
        "og:title": app.config.project if title is None else title.astext(),
        "og:description": found.get("description", ""),
    }
    address = app.config.html_baseurl
    if address:
        card["og:url"] = f"{address}{app.env.docname}.html"
        card["og:image"] = f"{address}_static/card.png"
        card["twitter:card"] = "summary_large_image"
    for name, content in card.items():
        if content:
            doctree.insert(0, nodes.meta("", property=name, content=content))


def add_examples(app, docname, source):
    """Add the examples of the gallery in which a class or function is used to its page."""
    folder, _, name = docname.rpartition("/")
    file = Path(app.srcdir) / "api" / "backreferences" / "backreferences_all.json"
    if folder != "api/generated" or not file.exists():
        return
    known = json.loads(file.read_text(encoding="utf-8"))
    used = [each for each in known if each == name or each.startswith(f"{name}.")]
    if used:
        heading = f"Examples using {name.rpartition('.')[2]}"
        lines = [heading, "-" * len(heading), "", ".. minigallery::", ""]
        lines += [f"   {each}" for each in used]
        source[0] += "\n\n" + "\n".join(lines) + "\n"


def share_sidebars(app, page, template, context, doctree):
    """Write the sidebar of the reference once for all names of one sub-package.

    The theme would resolve the entries of all names for the page of each of them. The
    names are not shown (`navigation_depth`), so the sidebars of their pages are equal.
    """
    if not page.startswith("api/generated/"):
        return
    parents = tuple(
        parent
        for parent, children in app.env.toctree_includes.items()
        if page in children
    )
    write_sidebar = context["generate_toctree_html"]
    if not hasattr(app.builder, "sidebars"):
        app.builder.sidebars = {}
    sidebars = app.builder.sidebars

    def write_once(kind, **options):
        key = (parents, kind, *sorted(options.items()))
        if key not in sidebars:
            sidebars[key] = write_sidebar(kind, **options)
        return sidebars[key]

    context["generate_toctree_html"] = write_once


def write_switcher(app, error):
    """Write the list of versions, which is read from the default one."""
    if error or app.builder.name != "html" or not app.config.html_baseurl:
        return
    documentation = json.loads(ADDRESSES.read_text(encoding="utf-8"))["documentation"]
    folder = documentation.removesuffix("/page")
    versions = [
        {"name": "stable", "version": "stable", "url": f"{folder}/en/stable/"},
        {
            "name": f"latest ({app.config.version})",
            "version": app.config.version,
            "url": f"{folder}/en/latest/",
        },
    ]
    text = json.dumps(versions, indent=1) + "\n"
    (app.outdir / SWITCHER).write_text(text, encoding="utf-8")


def connect(app):
    # after the description of the page was added
    app.connect("doctree-read", add_card, priority=950)
    app.connect("source-read", add_examples)
    # after the theme has added its functions
    app.connect("html-page-context", share_sidebars, priority=900)
    app.connect("build-finished", write_switcher)
