"""How Sphinx makes the site: `make docs`."""

from __future__ import annotations

import builtins
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import registries

import fewlabels

HERE = Path(__file__).parent
_PROJECT = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]

project = "fewlabels"
author = _PROJECT["authors"][0]["name"]
copyright = author
version = release = fewlabels.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["README.md"]
default_role = "code"  # in docstrings one backtick is code, as in Markdown
suppress_warnings = ["config.cache"]  # the order of the gallery is a function

html_theme = "furo"
html_title = f"fewlabels {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"source_view_link": "", "source_edit_link": ""}

myst_heading_anchors = 4
myst_enable_extensions = ["deflist", "colon_fence"]

autodoc_typehints = "none"  # the docstrings say them
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True


def say_which(gallery: Any, name: str) -> None:
    """Give a script of the gallery its `__file__`, which it has wherever else it is run."""
    builtins.__file__ = str(HERE.parent / "examples" / Path(name).name)  # type: ignore[attr-defined]


def drawn(block: Any, names: dict[str, Any], gallery: Any) -> str:
    """Save what a block ends with where that is a figure that pyplot does not know."""
    from matplotlib.figure import Figure
    from sphinx_gallery.scrapers import figure_rst

    figure = names["example_globals"].get("___")
    if not isinstance(figure, Figure) or hasattr(figure, "number"):
        return ""
    path = next(names["image_path_iterator"])
    figure.savefig(path, dpi=150)
    names["example_globals"]["___"] = None
    return str(figure_rst([path], gallery["src_dir"]))


sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"(make_\w+|\w+_recipe|compare_methods|conftest|test_\w+)\.py$",
    "within_subsection_order": "FileNameSortKey",
    "capture_repr": ("_repr_html_",),
    "download_all_examples": False,
    "write_computation_times": False,
    "min_reported_time": 10_000,
    "show_signature": False,
    "image_scrapers": ("matplotlib", drawn),
    # Notebooks have no `__file__`; they run in the folder above the examples.
    "first_notebook_cell": "__file__ = 'examples/notebook'  # beside the data",
    "abort_on_example_error": True,
    "reset_modules": ("matplotlib", say_which),
    "copyfile_regex": r".*\.(csv)",
}


def fill(app: Any, name: str, source: list[str]) -> None:
    """Put in what the registries know, and mend links that leave docs/."""
    source[0] = registries.filled(source[0], name.count("/"))


def foreign(app: Any, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what scikit-learn adds to estimators: routing of arguments that ours have not."""
    return True if re.search(r"set_\w+_request$|get_metadata_routing$", name) else None


def setup(app: Any) -> None:
    """Register what this file adds."""
    app.connect("autodoc-skip-member", foreign)
    app.connect("source-read", fill)
