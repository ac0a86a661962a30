"""What the documentation site needs beside Markdown: its order, its links, and reference pages from the code.

Run by mkdocs (see mkdocs.yml). The reference is made of the texts that tests hold the code to
(tests/surface/texts), of docstrings, and of the schema of policy files, so it says what this version does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import ConfigurationError
from mkdocs.structure.files import File, Files

import blowfishdb as bf

DOCS = Path(__file__).parent
ROOT = DOCS.parent
TEXTS = ROOT / "tests" / "surface" / "texts"
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s]+)(#[^)]*)?\)")
_ITEM = re.compile(r"^(?:[-*]|\d+\.) ")


# --- order ------------------------------------------------------------------------------------------


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Folders in the navigation become their pages; pages that are named nowhere come last."""
    named: set[str] = set()
    config.nav = list(_opened(config.nav or [], named))
    everything = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    if more := sorted(everything - named):
        config.nav.append({"More": more})
    return config


def _opened(entries: list[Any], named: set[str]) -> Iterator[Any]:
    for entry in entries:
        if isinstance(entry, dict):
            ((title, inside),) = entry.items()
            if isinstance(inside, list):
                yield {title: list(_opened(inside, named))}
            else:
                _note(inside, named)
                yield entry
        elif entry.endswith("/"):
            pages = sorted(str(path.relative_to(DOCS)) for path in (DOCS / entry).glob("*.md"))
            for page in pages:
                _note(page, named)
            yield from pages
        else:
            _note(entry, named)
            yield entry


def _note(page: str, named: set[str]) -> None:
    if page in named:
        raise ConfigurationError(f"{page} stands twice in the navigation of mkdocs.yml.")
    named.add(page)


# --- links and lists --------------------------------------------------------------------------------


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Files of the repository that are no pages keep their name and lose their link: the site has no code."""
    here = DOCS / Path(page.file.src_uri).parent
    return "\n".join(_spaced(_LINK.sub(lambda link: _within(link, here), markdown).split("\n")))


def _within(link: re.Match[str], here: Path) -> str:
    target = (here / link[2]).resolve()
    if "://" in link[2] or link[2].startswith("mailto:") or not target.exists():
        return link[0]
    return link[0] if target.is_file() and target.is_relative_to(DOCS) else link[1]


def _spaced(lines: list[str]) -> Iterator[str]:
    """An empty line before a list that follows a paragraph at once, which this parser needs to see it."""
    fenced, before = False, ""
    for line in lines:
        if line.lstrip().startswith("```"):
            fenced = not fenced
        starts = not fenced and _ITEM.match(line) and before.strip()
        if starts and not _ITEM.match(before) and not before.startswith(" "):
            yield ""
        yield line
        before = line


# --- reference --------------------------------------------------------------------------------------


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The pages that are made of the code."""
    made = {
        "python": python_page(),
        "commands": blocks_page("Every command", "What `--help` says.", "commands.txt", "# "),
        "routes": blocks_page("Every route", "Routes and schemas of the interface.", "routes.txt", ""),
        "policy": policy_page(),
        "errors": errors_page(),
    }
    for name, text in made.items():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    return files


def python_page() -> str:
    """Public names, each with the first paragraph of its docstring, what it takes and what it has."""
    lines = [
        "# Python",
        "",
        "Every public name. What is promised stays, and names are added, never renamed.",
        "",
    ]
    for block in (TEXTS / "names.txt").read_text(encoding="utf-8").strip().split("\n\n"):
        if block.startswith("# "):
            lines += ["", f"#{block}", ""]
            continue
        name = re.split(r"[\s(:]", block.removeprefix("class "), maxsplit=1)[0]
        lines += [f"### `{name}`", "", *_first_paragraph(name), "```python", block, "```", ""]
    return "\n".join(lines)


def _first_paragraph(name: str) -> list[str]:
    if not name.startswith("bf."):
        return []
    value: Any = bf
    for part in name.split(".")[1:]:
        value = getattr(value, part)
    written = vars(type(value) if not callable(value) else value).get("__doc__") or ""
    return [escape(" ".join(written.strip().split("\n\n")[0].split()), quote=False), ""] if written else []


def blocks_page(title: str, words: str, name: str, heading: str) -> str:
    """Texts that tests compare with the code, one block after the other."""
    lines = [f"# {title}", "", words, ""]
    for block in (TEXTS / name).read_text(encoding="utf-8").strip().split("\n\n"):
        first, _, rest = block.partition("\n")
        lines += [f"## `{first.removeprefix(heading)[:100]}`", "", "```text", rest or first, "```", ""]
    return "\n".join(lines)


def policy_page() -> str:
    """The keys of a policy file, from its JSON Schema."""
    schema = json.loads((ROOT / "src/blowfishdb/language/policy_schema.json").read_text(encoding="utf-8"))
    lines = [
        "# Keys of a policy file",
        "",
        schema["description"],
        "",
        "| key | what it says | values |",
        "|---|---|---|",
    ]
    lines += _keys(schema["properties"], "")
    for name, part in schema["$defs"].items():
        rows = [
            row
            for form in part.get("oneOf", part.get("anyOf", [part]))
            for row in _keys(form.get("properties", {}), "")
        ]
        if rows:
            lines += [
                "",
                f"## {name}",
                "",
                "| key | what it says | values |",
                "|---|---|---|",
                *dict.fromkeys(rows),
            ]
    return "\n".join([*lines, "", "[What each of them means](../policy-files.md)."])


def _keys(properties: dict[str, Any], prefix: str) -> list[str]:
    rows = []
    for name, part in properties.items():
        values = part.get("enum") or ([part["const"]] if "const" in part else [])
        said = ", ".join(f"`{value}`" for value in values) or str(part.get("$ref", "")).rpartition("/")[2]
        rows.append(f"| `{prefix}{name}` | {part.get('description', '')} | {said} |")
        rows += _keys(part.get("properties", {}), f"{prefix}{name} / ")
    return rows


def errors_page() -> str:
    """The error tree: what each means, its HTTP status and its exit code."""
    from blowfishdb.core import errors
    from blowfishdb.entrypoints.cli.session import exit_code
    from blowfishdb.entrypoints.server.problems import status_of

    lines = [
        "# Errors",
        "",
        "Every message says what happened, why, and what to try, and never contains a value from the data.",
        "Unless it says otherwise, nothing was charged.",
        "",
        "| error | is a kind of | what it means | HTTP | exit code |",
        "|---|---|---|---|---|",
    ]

    def walk(kind: type[errors.BlowfishError], above: str) -> None:
        sample = kind.__new__(kind)
        words = " ".join((kind.__doc__ or "").strip().split("\n\n")[0].split())
        codes = f"{status_of(sample)} | {exit_code(sample)}"
        lines.append(f"| `{kind.__name__}` | {above} | {words} | {codes} |")
        for below in sorted(kind.__subclasses__(), key=lambda each: each.__name__):
            if below.__module__ == errors.__name__:
                walk(below, kind.__name__)

    walk(errors.BlowfishError, "Exception")
    return "\n".join(lines)
