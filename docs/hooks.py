"""mkdocs hooks and a griffe extension: files outside docs/, and doctests as code blocks.

mkdocs.yml names this file twice: under `hooks`, and as an extension of griffe, which reads the
docstrings.
"""

import re
from pathlib import Path
from typing import Any

from griffe import Extension, Object
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

_OUTSIDE = re.compile(r"\]\(\.\./([^)#]+)")
_DOCTEST = re.compile(r"^>>> .*(?:\n.*\S.*)*", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files outside docs/ that pages link to, such as ../examples/threads.py."""
    root = Path(config.config_file_path).parent
    pages = [file for file in files.documentation_pages() if "/" not in file.src_uri]
    linked = {path for page in pages for path in _OUTSIDE.findall(page.content_string)}
    for path in sorted(linked | {"CHANGELOG.md"}):
        files.append(File.generated(config, path, abs_src_path=str(root / path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Rewrite links to these files to their place in the site; give wide tables more room."""
    if page.file.src_uri.startswith("results/"):
        page.meta["hide"] = ["toc"]
    return markdown if "/" in page.file.src_uri else _OUTSIDE.sub(r"](\1", markdown)


class Doctests(Extension):
    """Fence the doctests of docstrings, which Markdown would render as block quotes."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = _DOCTEST.sub(
                lambda match: f"```pycon\n{match[0]}\n```", obj.docstring.value
            )
