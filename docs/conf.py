"""How the site is built: ``make docs``. Nothing is fetched; every warning is an error."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "extensions"))
os.environ.setdefault("OMP_NUM_THREADS", "1")

from likewise import __version__  # noqa: E402

project = "likewise"
author = "the likewise contributors"
copyright = author
release = version = __version__

extensions = [
    "sphinx.ext.autodoc",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "api_pages",
    "files_outside",
    "mathml",
    "one_template",
]
root_doc = "index"
exclude_patterns = [
    "reproduction/[!s]*/*",
    "reproduction/sentiment*/*",
    "reproduction/*/cells",
    "gallery/*",
    "extensions",
    "pictures.py",
    "tables.py",
]
nitpicky = True
default_role = "word"
suppress_warnings = ["config.cache"]  # the gallery's settings hold a function, which cannot be pickled

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 4

autodoc_typehints = "none"  # the Parameters section says it in words
autodoc_preserve_defaults = True
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": "api/backreferences",
    "doc_module": ("likewise",),
    "prefer_full_module": {r"likewise\."},
    "abort_on_example_error": False,
    "only_warn_on_example_error": False,
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "remove_config_comments": True,
    "plot_gallery": "True",
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
    "copyfile_regex": "",
}

html_theme = "pydata_sphinx_theme"
html_math_renderer = "mathml"
html_title = "likewise"
html_static_path = ["_static"]
html_css_files = ["likewise.css"]
html_copy_source = False
html_show_sourcelink = False
html_sidebars = {page: [] for page in ("index", "audit_your_model", "contributing")}
html_theme_options = {
    "show_prev_next": True,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
}
