"""The JSON Schema of policy files, and what it finds wrong in the words of a person who writes one.

YAML as a person writes it: every scalar is the text that was typed, and every part knows its line.

Nothing is resolved: ``no`` is the word, not False, and ``007`` keeps its zeros; what a text means is for the
column to say. Anchors, tags, doubled keys and deep nesting are refused: a file is never larger than it looks.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, final

from blowfishdb.core.errors import InvalidInput

if TYPE_CHECKING:
    from jsonschema import ValidationError
    from yaml.events import Event


MOST_CHARACTERS = 4_000_000
DEEPEST = 8

Path = tuple[str | int, ...]


@final
@dataclass(frozen=True)
class Document:
    """Mappings, lists and texts, and the line of each entry by its path."""

    content: Any
    lines: dict[Path, int]

    def where(self, path: Path) -> str:
        """``"Line 7, columns › salary"``, or as much of it as is known."""
        known = path
        while known and known not in self.lines:
            known = known[:-1]
        steps = " › ".join(f"entry {step + 1}" if isinstance(step, int) else step for step in path)
        line = self.lines.get(known)
        return ", ".join(part for part in (f"Line {line}" if line else "", steps) if part)


def read_yaml(text: str) -> Document:
    """One document; anything that is not plain nested text is refused with its line."""
    import yaml

    if len(text) > MOST_CHARACTERS:
        raise InvalidInput(f"The file is longer than {MOST_CHARACTERS:,} characters.")
    try:
        loader = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
        reader = _Reader(yaml.parse(text, Loader=loader), {})
        return Document(reader.document(), reader.lines)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise InvalidInput(f"Line {line}: this cannot be read as YAML ({error.problem}).") from None
    except yaml.YAMLError:
        raise InvalidInput("The file holds characters that YAML does not allow.") from None


@final
@dataclass(frozen=True)
class _Reader:
    events: Iterator[Event]
    lines: dict[Path, int]

    def document(self) -> Any:
        from yaml import events

        content: Any = None
        count = 0
        for event in self.events:
            if isinstance(event, events.DocumentStartEvent):
                count += 1
                if count > 1:
                    raise InvalidInput(f"Line {_line(event)}: a second document begins; write one per file.")
                content = self._value(next(self.events), ())
        return content

    def _value(self, event: Event, path: Path) -> Any:
        from yaml import events

        self.lines.setdefault(path, _line(event))
        if isinstance(event, events.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise InvalidInput(f"Line {_line(event)}: anchors and aliases (& and *) are not used here.")
        if getattr(event, "tag", None) is not None:
            raise InvalidInput(f"Line {_line(event)}: tags (!) are not used here.")
        if len(path) > DEEPEST:
            raise InvalidInput(f"Line {_line(event)}: this is nested too deeply.")
        if isinstance(event, events.ScalarEvent):
            return None if event.value == "" and not event.style else event.value
        if isinstance(event, events.SequenceStartEvent):
            return [self._value(item, (*path, at)) for at, item in enumerate(self._until_end())]
        return self._mapping(path)

    def _mapping(self, path: Path) -> dict[str, Any]:
        from yaml import events

        mapping: dict[str, Any] = {}
        for key in self._until_end():
            name = self._value(key, (*path, "a key")) if isinstance(key, events.ScalarEvent) else None
            if not isinstance(name, str):
                raise InvalidInput(f"Line {_line(key)}: a key must be a plain text.")
            if name in mapping:
                raise InvalidInput(f"Line {_line(key)}: '{name}' is written twice.")
            self.lines[*path, name] = _line(key)
            mapping[name] = self._value(next(self.events), (*path, name))
        return mapping

    def _until_end(self) -> Iterator[Event]:
        from yaml import events

        for event in self.events:
            if isinstance(event, events.SequenceEndEvent | events.MappingEndEvent):
                return
            yield event


def _line(event: Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


_WORDS = frozenset(("yes", "no", "on", "off", "true", "false", "null", "~"))


def written_text(text: str) -> str:
    """A text as a YAML scalar, in quotes only where it needs them."""
    import yaml

    plain = re.fullmatch(r"[\w.+-]([\w .+/%-]*[\w.+/%-])?", text, flags=re.ASCII)
    if plain and text.lower() not in _WORDS and not re.match(r"[-.]+($| |-)", text):
        return text
    quoted: str = yaml.dump(text, default_style='"', allow_unicode=True, width=10**9)
    return quoted.rstrip("\n")


_TYPES = {"object": "a mapping", "array": "a list", "string": "a text", "number": "a number", "null": "empty"}


@cache
def policy_schema() -> dict[str, Any]:
    """The schema, draft 2020-12."""
    stored: dict[str, Any] = json.loads(
        resources.files("blowfishdb.language").joinpath("policy_schema.json").read_text(encoding="utf-8")
    )
    return stored


def check(document: Document) -> None:
    """Refuses a document of another shape, and says where and what to write instead."""
    from jsonschema import Draft202012Validator

    if not isinstance(document.content, dict):
        raise InvalidInput(
            "A policy file is a mapping that begins with 'blowfishdb: policy/1'.",
            fixes=("blowfishdb: policy/1",),
        )
    errors = list(Draft202012Validator(policy_schema()).iter_errors(document.content))
    if errors:
        first = min(errors, key=lambda error: document.lines.get(_path(error), 0))
        message, fixes = _words(first)
        where = document.where(_path(first))
        raise InvalidInput(f"{where}: {message}" if where else message, fixes=fixes)


def _path(error: ValidationError) -> Path:
    path = tuple(error.absolute_path)
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        return (*path, _unknown(error)[0])
    return path


def _unknown(error: ValidationError) -> list[str]:
    instance: Any = error.instance
    return [key for key in instance if key not in _properties(error)]


def _properties(error: ValidationError) -> dict[str, Any]:
    return dict(error.schema.get("properties", {})) if isinstance(error.schema, dict) else {}


def _words(error: ValidationError) -> tuple[str, tuple[str, ...]]:
    """What is wrong, and what to write."""
    wanted: Any = error.validator_value
    instance: Any = error.instance
    match error.validator:
        case "additionalProperties":
            known = list(_properties(error))
            close = difflib.get_close_matches(_unknown(error)[0], known, n=1)
            return f"this is not known here; known are {', '.join(known)}.", tuple(close)
        case "required":
            missing = next(key for key in wanted if key not in instance)
            example = {"blowfishdb": "blowfishdb: policy/1", "columns": "columns: [x, y]"}
            return f"'{missing}' is missing.", (example.get(missing, missing),)
        case "const":
            return f"this must be '{wanted}'.", (str(wanted),)
        case "enum":
            return f"this must be one of: {', '.join(wanted)}.", tuple(wanted[:1])
        case "type":
            kinds = [wanted] if isinstance(wanted, str) else wanted
            shown = dict.fromkeys(_TYPES.get(kind, kind) for kind in kinds if kind != "null")
            return f"this must be {' or '.join(shown)}.", _example(error)
        case "minProperties" | "maxProperties":
            return "say exactly one thing here.", _example(error)
        case "minItems" if wanted == 1 or instance == []:
            return "this list is empty.", _example(error)
        case "minItems" | "maxItems":
            return "this must be two values.", ("[low, high]",)
        case _:
            return "this text is empty.", ()


def _example(error: ValidationError) -> tuple[str, ...]:
    """What a part of a policy looks like."""
    steps = [step for step in error.absolute_path if isinstance(step, str)]
    examples = {
        "columns": "salary: {hide within: 1000}",
        "areas": "- {columns: [x, y], hide within: 3}",
        "hide within": "hide within: 1000",
        "hide within groups": "hide within groups: [[a, b], [c]]",
        "hide within groups of": "hide within groups of: 10",
        "hide between": "hide between: [[low, mid], [mid, high]]",
    }
    return next(((examples[step],) for step in reversed(steps) if step in examples), ())
