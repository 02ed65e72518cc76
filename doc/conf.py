"""Sphinx configuration. Everything that lists methods is derived from the registries."""

import importlib.util
import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
# where offered.py states what is public
sys.path[:0] = [
    str(HERE),
    str(HERE.parent / "tests"),
]
os.environ.setdefault("MPLBACKEND", "Agg")

import _api  # noqa: E402
import _bibliography  # noqa: E402
import _derived  # noqa: E402
import _notebooks  # noqa: E402
import _plain  # noqa: E402
import _site  # noqa: E402
from sphinx_gallery.sorting import FileNameSortKey  # noqa: E402

import sklearn_calib  # noqa: E402

project = "sklearn-calib"
author = "the sklearn-calib developers"
copyright = "the sklearn-calib developers"
version = release = sklearn_calib.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "sphinxcontrib.bibtex",
    "matplotlib.sphinxext.plot_directive",
    "sphinx_copybutton",
    "sphinx_design",
    "_guide",
]
exclude_patterns = ["_build", "whats_new/*/*"]
# what search engines take
html_baseurl = os.environ.get("READTHEDOCS_CANONICAL_URL", "")
default_role = "any"
autosummary_generate = True
autodoc_typehints = "none"  # the docstrings name the types
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
nitpicky = False
suppress_warnings = ["config.cache", "ref.any"]

html_theme = "pydata_sphinx_theme"
html_title = "sklearn-calib"
html_logo = "static/logo.svg"
html_favicon = "static/logo.svg"
html_theme_options = {
    "logo": {"text": "sklearn-calib", "alt_text": "sklearn-calib, first page"},
    "show_toc_level": 2,
    # below a part of the reference, the sidebar would list each of its names
    "navigation_depth": 1,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 4,
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    **_site.list_theme_options(html_baseurl, version),
}
toc_object_entries_show_parents = "hide"
html_search_scorer = str(HERE / "static" / "scorer.js")
autosummary_context = {"split_words": _site.split_words}
html_sidebars = {
    page: [] for page in ("index", "install", "what_belongs_here", "cite", "whats_new")
}
# Formulas need no network: one file of MathJax, taken from a Python package, draws them
# as SVG.
MATHJAX = Path(importlib.util.find_spec("sphinx-mathjax-offline").origin).parent
html_static_path = ["static", str(MATHJAX / "static" / "mathjax" / "tex-svg.js")]
mathjax_path = "tex-svg.js"
html_css_files = ["wide.css"]
html_js_files = ["names.js"]
# light or dark as the reader's screen, until told
html_context = {"default_mode": "auto"}
copybutton_prompt_text = r">>> |\.\.\. |\$ "  # not copied, nor what a session prints
copybutton_prompt_is_regexp = True
html_show_sourcelink = False
html_copy_source = False
templates_path = ["templates"]

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_",
    "backreferences_dir": "api/backreferences",
    "doc_module": ("sklearn_calib",),
    "default_thumb_file": str(HERE / "static" / "card.png"),
    "within_subsection_order": FileNameSortKey,
    "abort_on_example_error": True,
    "show_memory": False,
    "write_computation_times": False,  # a page that loads its table from the network
    "capture_repr": ("_repr_html_",),
    "reset_modules": ("matplotlib",),
    "remove_config_comments": True,
}

bibtex_bibfiles = ["references.bib"]
bibtex_reference_style = "author_year"
bibtex_default_style = "plain"
plot_include_source = False
plot_html_show_source_link = False
plot_html_show_formats = False
plot_formats = [("png", 110)]
plot_rcparams = {"font.size": 9, "figure.constrained_layout.use": True}
plot_apply_rcparams = True

_derived.write(HERE)


def _only_ours(app, what, name, thing, skip, options):
    """Leave scikit-learn's and numpy's methods to their own documentation."""
    thing = getattr(thing, "fget", None) or thing
    home = getattr(thing, "__module__", None) or ""
    described = type(thing).__name__ in ("getset_descriptor", "member_descriptor")
    foreign = (callable(thing) or described) and not home.startswith("sklearn_calib")
    return True if foreign or name.endswith("_request") else None


def setup(app):
    _notebooks.connect(app)
    _plain.connect(app)
    _site.connect(app)
    app.connect("autodoc-skip-member", _only_ours)
    app.connect("autodoc-process-docstring", _bibliography.link_sources, priority=400)
    # after numpydoc
    app.connect("autodoc-process-docstring", _api.add_fields, priority=600)
