"""mkdocs hooks and a griffe extension: files outside docs/, and what the source does not show.

mkdocs.yml names this file twice: under `hooks`, and as an extension of griffe, which reads the
docstrings.
"""

import inspect
import re
from pathlib import Path
from pkgutil import resolve_name
from textwrap import indent
from typing import Any

from griffe import Attribute, Class, Extension, Function, Object
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

_OUTSIDE = re.compile(r"\]\(\.\./([^)#]+)")
_DOCTEST = re.compile(r"^>>> ", re.MULTILINE)


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


def _with_learned(text: str, cls: Class) -> str:
    """A docstring with the attributes that `fit` sets, whose names end in `_`."""
    entries = [
        f"{name} : {getattr(each, 'annotation', None) or each.returns}\n"  # fields, or properties
        + indent(each.docstring.value.partition("\n\n")[0], "    ")
        for name, each in cls.all_members.items()
        if re.fullmatch("[a-z].*_", name) and each.docstring is not None
    ]
    listed = "\n".join(["Attributes", "----------", *entries])
    above, examples, code = text.partition("\n\nExamples\n")
    return f"{above}\n\n{listed}{examples}{code}"


class Reference(Extension):
    """What static analysis of the source does not see."""

    def on_class(self, *, cls: Class, **_: Any) -> None:
        """Docstrings of estimators list their parameters once they are imported."""
        if any(str(each.value) == "documented" for each in cls.decorators):
            assert cls.docstring is not None
            text = inspect.cleandoc(resolve_name(cls.path).__doc__)
            cls.docstring.value = _with_learned(text, cls)

    def on_attribute_instance(self, *, attr: Attribute, **_: Any) -> None:
        """Signatures show the default of `parameter(default, …)`, and no constraints."""
        if str(attr.value).startswith("parameter("):
            owner, name = attr.path.rsplit(".", 1)
            attr.value = repr(resolve_name(owner).__dataclass_fields__[name].default)

    def on_function_instance(self, *, func: Function, **_: Any) -> None:
        """Signatures show the values of constants."""
        for each in func.parameters:
            if re.fullmatch(r"[A-Z][A-Z_]+", str(each.default)):
                each.default = repr(
                    inspect.signature(resolve_name(func.path)).parameters[each.name].default
                )

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Doctests are a section of examples: Markdown would render them as block quotes."""
        if obj.docstring is not None and "Examples\n--------\n" not in obj.docstring.value:
            obj.docstring.value = _DOCTEST.sub("Examples\n--------\n>>> ", obj.docstring.value, 1)
