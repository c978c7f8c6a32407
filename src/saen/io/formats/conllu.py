"""Documents from CoNLL-U, the format of Universal Dependencies and of most parsers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from saen._util.lazy import import_extra
from saen._util.strings import plural
from saen.data.documents import Documents, Word
from saen.errors import FileError, InputError
from saen.io.formats.format import Format
from saen.io.options import ReadOptions, WordColumn
from saen.io.parsing.records import BadGraphs, check_id
from saen.io.parsing.text_files import decoded, read_bytes

COLUMNS = ("form", "lemma", "upos")
SPLITS = ("auto", "newdoc", "sentence")


def read_conllu(
    source: str | os.PathLike[str],
    *,
    word: WordColumn = "form",
    lowercase: bool = True,
    split: Literal["auto", "newdoc", "sentence"] = "auto",
    target: str | None = "target",
    partial_targets: bool = False,
    name: str | None = None,
) -> Documents:
    """Read documents from a CoNLL-U file (or from a string that contains its lines).

    Dependencies come from the columns HEAD and DEPREL, from head to dependent. Multiword tokens
    (ids such as `3-4`) and empty nodes (`3.1`) are skipped: the words they stand for remain.
    Classes are strings.

    Parameters
    ----------
    source : str | os.PathLike[str]
        A file, or a string that contains its lines.
    word : WordColumn, default='form'
        The column to read as the word: its `form`, its `lemma` or its part of speech (`upos`).
    lowercase : bool, default=True
        Whether to convert forms and lemmas to lower case.
    split : Literal['auto', 'newdoc', 'sentence'], default='auto'
        Where a document starts: at every comment `# newdoc` (a file without any is one document),
        or at every `sentence`; `auto` is `newdoc` if there are such comments, else `sentence`.
    target : str | None, default='target'
        The key of the comment with the class of a document, such as `# target = sports`, at its
        first sentence (`# label = …` is an alias). Either all documents have it or none. None: read
        no targets.
    partial_targets : bool, default=False
        Whether some documents may have an empty target.
    name : str | None, default=None
        The name of the dataset. None: that of the file.

    Raises
    ------
    FileError
        With the line for an invalid file.
    MissingExtraError
        If the package conllu is not installed.

    Examples
    --------
    >>> lines = '''# newdoc
    ... # target = news
    ... 1	Dogs	dog	NOUN	_	_	2	nsubj	_	_
    ... 2	bite	bite	VERB	_	_	0	root	_	_
    ... 3	men	man	NOUN	_	_	2	obj	_	_
    ... '''
    >>> documents = read_conllu(lines)
    >>> documents
    Documents(1 document, 1 sentence, 3 words; 1 class)
    >>> documents.words.tolist(), documents.sentences.edge_labels.tolist()
    (['dogs', 'bite', 'men'], ['nsubj', 'obj'])
    """
    for key, value, choices in (("word", word, COLUMNS), ("split", split, SPLITS)):
        if value not in choices:
            raise InputError(f"{key} must be one of {', '.join(choices)}, not {value!r}")
    is_text = isinstance(source, str) and "\n" in source
    path = Path("text" if is_text else source)
    text = str(source) if is_text else decoded(read_bytes(path), path)
    blocks = list(_blocks(text.split("\n"), path))
    if not blocks:
        raise FileError("no sentences", path=path)
    starts = _document_starts(blocks, split)
    sentences = [block.words(word, lowercase) for block in blocks]
    if all(text == "_" for sentence in sentences for text, _, _ in sentence) and word != "form":
        raise FileError(f"no word has a {word}", path=path)
    ends = [*starts[1:], len(blocks)]
    return Documents.from_sentences(
        [sentences[start:end] for start, end in zip(starts, ends, strict=True)],
        targets=None
        if target is None
        else _targets([blocks[start] for start in starts], target, partial_targets),
        ids=_ids([blocks[start] for start in starts]),
        name=("" if is_text else path.stem) if name is None else name,
    )


@dataclass
class _Block:
    """One sentence: its comments, and its tokens with the line of each."""

    path: Path
    first: int
    comments: dict[str, str | None] = field(default_factory=dict)
    tokens: list[tuple[int, dict[str, Any]]] = field(default_factory=list)

    def error(self, message: str, line: int) -> FileError:
        return FileError(message, path=self.path, line=line)

    def words(self, column: WordColumn, lowercase: bool) -> list[Word]:
        """The words with their heads counted from 0."""
        # The ids of ranges and of empty nodes are tuples.
        tokens = [(row, token) for row, token in self.tokens if not isinstance(token["id"], tuple)]
        if not tokens:
            raise self.error("a sentence without words", self.first)
        change: Callable[[str], str] = str.lower if lowercase and column != "upos" else str
        out: list[Word] = []
        for place, (row, token) in enumerate(tokens):
            if token["id"] != place + 1:
                raise self.error(f"the id of a word is {token['id']}, expected {place + 1}", row)
            if "deprel" not in token:
                raise self.error(f"{plural(len(token), 'column')}, expected 10", row)
            head = token["head"]
            if head is None:
                raise self.error(f"word {place + 1} has no head: the text is not parsed", row)
            if not 0 <= head <= len(tokens) or head == place + 1:
                raise self.error(
                    f"the head of word {place + 1} is {head}, expected 0 or another word of the "
                    f"sentence ({plural(len(tokens), 'word')})",
                    row,
                )
            out.append((change(token[column]), head - 1 if head else None, token["deprel"]))
        return out


def _blocks(lines: list[str], path: Path) -> Iterator[_Block]:
    """The sentences of the file: lines between blank ones."""
    parser = import_extra("conllu.parser", "conllu", extra="text")
    converted = {key: parser.DEFAULT_FIELD_PARSERS[key] for key in ("id", "head")}
    block: _Block | None = None
    for number, line in enumerate(lines, start=1):
        stripped = line.strip()
        if not stripped:
            if block is not None:
                yield block
            block = None
            continue
        if block is None:
            block = _Block(path, number)
        if stripped.startswith("#"):
            block.comments.update(parser.parse_comment_line(stripped))
            continue
        try:
            token = parser.parse_line(stripped, parser.DEFAULT_FIELDS, converted)
        except parser.ParseException as error:
            raise block.error(f"invalid CoNLL-U: {str(error).rstrip('.')}", number) from None
        block.tokens.append((number, token))
    if block is not None:
        yield block


def _document_starts(blocks: list[_Block], split: str) -> list[int]:
    """The index of the first sentence of every document."""
    marked = [
        number
        for number, block in enumerate(blocks)
        if any(key == "newdoc" or key.startswith("newdoc ") for key in block.comments)
    ]
    if split == "sentence" or (split == "auto" and not marked):
        return list(range(len(blocks)))
    # Sentences before the first comment are a document as well.
    return marked if marked[:1] == [0] else [0, *marked]


def _targets(firsts: list[_Block], key: str, partial: bool) -> list[Any] | None:
    """The target of every document, from the comments of its first sentence."""
    if key == "target" and not any(key in block.comments for block in firsts):
        key = "label"
    targets = [block.comments.get(key) for block in firsts]
    if not any(targets):
        return None
    if partial:
        return [value or "" for value in targets]
    for document, (value, block) in enumerate(zip(targets, firsts, strict=True)):
        if value is None:
            raise block.error(
                f"document {document} has no comment '# {key} = …', but others have one "
                "(pass target=None to read no targets)",
                block.first,
            )
    return targets


def _ids(firsts: list[_Block]) -> list[str] | None:
    """The ids of documents, from `# newdoc id = …` or `# sent_id = …`, if all have one."""
    keys = ("newdoc id", "sent_id")
    named = [[block.comments.get(key) for block in firsts] for key in keys]
    ids = next(([str(v) for v in values] for values in named if all(values)), None)
    for block, value in zip(firsts, ids or [], strict=False):
        try:
            check_id(value)
        except InputError as error:
            raise block.error(str(error), block.first) from None
    return ids


def _read(path: Path, options: ReadOptions, _: BadGraphs) -> Documents:
    word: Any = options.choice("word")
    target, partial = options.target or "target", options.partial_targets
    return read_conllu(path, word=word, target=target, partial_targets=partial)


CONLLU = Format("conllu", "CoNLL-U", (".conllu",), "documents", ("target", "word"), _read)
