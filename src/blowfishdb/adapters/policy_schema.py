"""The JSON Schema of policy files, and what it finds wrong in the words of a person who writes one."""

from __future__ import annotations

import difflib
import json
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from blowfishdb.adapters.yaml_text import Document, Path
from blowfishdb.core.errors import InvalidInput

if TYPE_CHECKING:
    from jsonschema import ValidationError

_TYPES = {"object": "a mapping", "array": "a list", "string": "a text", "number": "a number", "null": "empty"}


@cache
def policy_schema() -> dict[str, Any]:
    """The schema, draft 2020-12."""
    stored: dict[str, Any] = json.loads(
        resources.files("blowfishdb.adapters").joinpath("policy_schema.json").read_text(encoding="utf-8")
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
        place = document.where(_path(first))
        raise InvalidInput(f"{place}: {message}" if place else message, fixes=fixes)


def _path(error: ValidationError) -> Path:
    path = tuple(error.absolute_path)
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        return (*path, _unknown(error)[0])
    return path


def _unknown(error: ValidationError) -> list[str]:
    found: Any = error.instance
    return [key for key in found if key not in _properties(error)]


def _properties(error: ValidationError) -> dict[str, Any]:
    return dict(error.schema.get("properties", {})) if isinstance(error.schema, dict) else {}


def _words(error: ValidationError) -> tuple[str, tuple[str, ...]]:
    """What is wrong, and what to write."""
    wanted: Any = error.validator_value
    found: Any = error.instance
    match error.validator:
        case "additionalProperties":
            known = list(_properties(error))
            close = difflib.get_close_matches(_unknown(error)[0], known, n=1)
            return f"this is not known here; known are {', '.join(known)}.", tuple(close)
        case "required":
            missing = next(key for key in wanted if key not in found)
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
        case "minItems" if wanted == 1 or found == []:
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
