"""Words for messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A parenthesis that suggests the nearest known word, or nothing.

    >>> did_you_mean("degre", ["node", "degree"])
    ' (did you mean degree?)'
    """
    folded = {candidate.casefold(): candidate for candidate in known}
    near = get_close_matches(word.casefold(), folded, n=1, cutoff=0.5)
    return f" (did you mean {folded[near[0]]}?)" if near else ""


def plural(count: int, one: str, many: str | None = None) -> str:
    """A count with its noun.

    >>> plural(1, "class", "classes"), plural(1200, "graph")
    ('1 class', '1,200 graphs')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def boolean_text(value: object) -> str:
    """True and false as in JSON, whatever file they are from.

    >>> boolean_text(True), boolean_text(False)
    ('true', 'false')
    """
    return "true" if value else "false"


def some_of(words: Sequence[str], most: int = 8) -> str:
    """Words as a list, the first ones if there are many.

    >>> some_of(["a", "b"]), some_of(["a", "b", "c"], most=2)
    ('a, b', 'a, b and 1 more')
    """
    shown = ", ".join(words[:most])
    return shown + (f" and {len(words) - most:,} more" if len(words) > most else "")


def first_duplicate(words: Iterable[str]) -> str | None:
    """The first word that has been there before.

    >>> first_duplicate(["a", "b", "b", "a"])
    'b'
    """
    seen: set[str] = set()
    for word in words:
        if word in seen:
            return word
        seen.add(word)
    return None


def human_bytes(size: float) -> str:
    """A size for people.

    >>> human_bytes(134_057_626)
    '134.1 MB'
    """
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1000
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"


_HIDDEN = {
    code: f"⟨U+{code:04X}⟩"
    for code in (
        *(code for code in range(32) if chr(code) not in "\t\n\r"),
        *range(0x7F, 0xA0),
        *(0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)),
    )
}


def visible(text: str) -> str:
    """The text with the numbers of control characters and of those that change its direction.

    >>> visible("a\\u202eb")
    'a⟨U+202E⟩b'
    """
    return text.translate(_HIDDEN)


def short_label(value: Any, longest: int = 12) -> str:
    """A label as short text on one line, without what cannot be printed.

    >>> short_label(("two\\nlines", 7)), short_label("electroencephalography")
    ('two lines,7', 'electroence…')
    """
    text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
    text = "".join(c if c.isprintable() else "·" for c in " ".join(text.split()))
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
