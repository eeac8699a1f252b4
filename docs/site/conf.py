"""Sphinx's configuration of the site; see :mod:`build`."""

from __future__ import annotations

import os
import sys
import tomllib
from importlib.resources import files
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT)]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

project = PROJECT["name"]
author = "The asyncfl_lite authors"
copyright = author
version = release = PROJECT["version"]
root_doc = "index"
exclude_patterns = ["docs/pictures"]
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "names",
    "symbols",
    "terms",
    "places",
    "breaks",
]

# Notebooks as they were saved: nothing is executed.
nb_execution_mode = "off"
nb_merge_streams = True
nb_render_markdown_format = "gfm"  # outputs may hold tables
nb_number_source_lines = False
nb_code_prompt_show = "Show {type}"
nb_code_prompt_hide = "Hide {type}"
myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "attrs_block", "attrs_inline", "colon_fence"]
myst_heading_anchors = 4
myst_dmath_allow_labels = False
myst_links_external_new_tab = False
suppress_warnings = ["myst.header", "mystnb.unknown_mime_type", "ref.python"]

# One file of MathJax beside the pages: it draws formulas as SVG, needs no fonts, and asks for nothing.
html_static_path = ["static"]
mathjax_path = "mathjax.js"
MATHJAX = files("sphinx-mathjax-offline") / "static/mathjax/tex-svg-full.js"
mathjax3_config = {"options": {"enableMenu": False}, "svg": {"fontCache": "global"}}

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
autodoc_inherit_docstrings = False
toc_object_entries = False  # else every page copies thousands of names into its contents
autodoc_use_type_comments = False  # takes a third of the build's time, and there are none
python_use_unqualified_type_names = True
add_module_names = False
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

html_baseurl = os.environ.get("SITE_ADDRESS", "")  # where the site is published, for the pictures of shared links
html_theme = "sphinx_book_theme"
html_title = "asyncfl_lite"
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_favicon = "static/icon.svg"
html_copy_source = True
html_sourcelink_suffix = ""
html_show_sourcelink = False
html_last_updated_fmt = None
html_use_index = False
html_domain_indices = False
html_context = {"default_mode": "auto"}
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_navbar_depth": 1,
    "max_navbar_depth": 1,
    "use_fullscreen_button": False,
    "path_to_docs": "",
    "navbar_persistent": [],
    "repository_branch": "main",
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "extra_footer": "Made from the saved notebooks and the code. These pages load nothing from elsewhere.",
}


def setup(app):
    """Take the address of the repository from ``pyproject.toml`` or from ``-D repository=…``."""
    app.add_config_value("repository", PROJECT.get("urls", {}).get("Repository", ""), "env")
