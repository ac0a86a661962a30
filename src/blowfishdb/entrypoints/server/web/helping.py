"""Help: the documentation of this very version as pages, and the words in a line each. Open to everyone."""

from __future__ import annotations

import re
from functools import cache
from html import escape
from pathlib import Path
from typing import Final

from fastapi import Request, Response

from blowfishdb.core.errors import NotFound
from blowfishdb.entrypoints.server.access import PageVisitor
from blowfishdb.entrypoints.server.routing import Router
from blowfishdb.entrypoints.server.web.frame import render

router: Final = Router(include_in_schema=False)

PAGES: Final = {
    "curator": "tutorials/curator.md",
    "analyst": "tutorials/analyst.md",
    "auditor": "tutorials/auditor.md",
    "questions": "questions.md",
    "accuracy": "accuracy.md",
    "policy-files": "policy-files.md",
    "constraints": "constraints.md",
    "changing-a-policy": "changing-a-policy.md",
    "sources": "sources.md",
    "books": "books.md",
    "command-line": "command-line.md",
    "api": "api.md",
}
"""What is shown, by the last part of its address; the words stand on the first page."""
_WORDS: Final = "glossary.md"
_LINK: Final = re.compile(r'<a href="([^"]*)">')
_FIRST: Final = re.compile(r"\A\s*<h1>(.*?)</h1>", re.DOTALL)


@router.get("/help")
def help_page(request: Request, caller: PageVisitor) -> Response:
    """The words, and where to read on."""
    _, words = _shown(_WORDS)
    pages = [(name, _shown(file)[0]) for name, file in PAGES.items()]
    return render(request, "help.html", caller=caller, pages=pages, title="Help", body=words, here_is=None)


@router.get("/help/{page}")
def one_page(request: Request, page: str, caller: PageVisitor) -> Response:
    """One document."""
    if page not in PAGES:
        raise NotFound("There is no such page of help.", fixes=("/help",))
    title, body = _shown(PAGES[page])
    pages = [(name, _shown(file)[0]) for name, file in PAGES.items()]
    return render(request, "help.html", caller=caller, pages=pages, title=title, body=body, here_is=page)


@cache
def folder() -> Path:
    """Where the documentation is: inside the package once it is installed, beside the source before."""
    inside = Path(__file__).with_name("docs")
    return inside if inside.is_dir() else Path(__file__).parents[5] / "docs"


@cache
def _shown(file: str) -> tuple[str, str]:
    """The title of a document, and the rest of it as HTML. Nothing in it is passed on as it is."""
    from markdown_it import MarkdownIt

    made = MarkdownIt("commonmark", {"html": False}).enable("table").render(_text(file))
    title = _FIRST.match(made)
    body = made[title.end() :] if title else made
    body = body.replace(
        "<table>", '<div class="scroll" tabindex="0" role="region" aria-label="Table"><table>'
    )
    body = body.replace("</table>", "</table></div>").replace("<pre>", '<pre tabindex="0">')
    body = re.sub(r"<img[^>]*>", "", body)
    words = re.sub(r"<[^>]+>", "", title.group(1)) if title else file
    return words, _LINK.sub(lambda found: _led(found.group(1), file), body)


def _text(file: str) -> str:
    path = folder() / file
    if not path.is_file():
        raise NotFound("The documentation is not installed here.")
    return path.read_text(encoding="utf-8")


def _led(target: str, file: str) -> str:
    """A link to another page of help leads there; one to a file that is not shown leads nowhere."""
    if target.startswith(("http://127.0.0.1", "#")):
        return f'<a href="{escape(target, quote=True)}">'
    name, _, mark = target.partition("#")
    wanted = ((Path(file).parent / name).as_posix()).replace("tutorials/../", "")
    known = {path: page for page, path in PAGES.items()} | {_WORDS: ""}
    if wanted not in known:
        return '<a class="elsewhere">'
    address = f"/help/{known[wanted]}".rstrip("/")
    return f'<a href="{address}#{escape(mark, quote=True)}">' if mark else f'<a href="{address}">'
