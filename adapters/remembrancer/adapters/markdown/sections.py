"""Cutting a Markdown text at its headings.

A CommonMark parser decides what a heading is, so ``# not one`` inside a code fence, a list or a
quotation isn't.  The sections' texts are the document's own lines, not a rendering of them.
"""

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

HEADING_CHARACTERS_MAX = 1_000
"""Longer ones are cut in the heading's path; the text keeps them whole."""

_FENCE = re.compile(r"---[ \t]*")
_FENCE_END = re.compile(r"(---|\.\.\.)[ \t]*")
_KEY = re.compile(r"[A-Za-z_][\w .-]{0,100}:(\s|$)")


def markdown_sections(text: str) -> list[tuple[tuple[str, ...], str, int]]:
    r"""Return (headings, text, first line) of each section, in order; lines count from 1.

    ``text`` has ``\n`` line ends.  YAML front matter is no section: it describes the document
    to other programs.
    """
    lines = text.split("\n")
    skipped = _front_matter_lines(lines)
    body = lines[skipped:]
    sections: list[tuple[tuple[str, ...], str, int]] = []
    path: list[tuple[int, str]] = []
    start = 0
    for line, level, heading in [*_headings("\n".join(body)), (len(body), 0, "")]:
        sections.append((tuple(name for _, name in path), _trimmed(body[start:line]), start))
        path = [(above, name) for above, name in path if above < level] + [(level, heading)]
        start = line
    return [(headings, own, skipped + line + 1) for headings, own, line in sections if own]


def _headings(text: str) -> list[tuple[int, int, str]]:
    """Return (line from 0, level, plain text) of each heading of the document itself."""
    tokens = _block_parser().parse(text)
    return [
        (token.map[0], int(token.tag[1:]), _plain(tokens[place + 1]))
        for place, token in enumerate(tokens)
        if token.type == "heading_open" and token.level == 0 and token.map is not None
    ]


@cache
def _block_parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # noqa: PLC0415 -- 30 ms: only when documents are read

    # Inside paragraphs nothing matters here, and it is most of the work.
    return MarkdownIt("commonmark").disable("inline")


def _plain(inline: "Token") -> str:
    """Return a heading's words without emphasis marks, links and line breaks."""
    content = inline.content[:HEADING_CHARACTERS_MAX]
    [parsed] = _inline_parser().parseInline(content)
    words = "".join(
        " " if token.type in {"softbreak", "hardbreak"} else token.content
        for token in parsed.children or ()
        if token.type != "html_inline"
    )
    return " ".join(words.split())


@cache
def _inline_parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # noqa: PLC0415 -- as above

    return MarkdownIt("commonmark")


def _front_matter_lines(lines: list[str]) -> int:
    """Return how many lines YAML front matter takes at the top, 0 where there is none.

    A rule (``---``) may open a text too: only a key in the next line makes it front matter.
    """
    opens = len(lines) > 1 and _FENCE.fullmatch(lines[0]) and _KEY.match(lines[1])
    ends = (place for place, line in enumerate(lines) if place and _FENCE_END.fullmatch(line))
    return next(ends, -1) + 1 if opens else 0


def _trimmed(lines: list[str]) -> str:
    text = "\n".join(lines).strip("\n")
    return text.rstrip() if text.strip() else ""
