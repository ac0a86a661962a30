"""JSON schemas in words: a line for each field, and an example that fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

_NAMES = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}
_SAMPLES: dict[str, Any] = {"string": "…", "integer": 1, "number": 1.0, "boolean": False}


@final
@dataclass(frozen=True)
class Field:
    """A field as a table shows it."""

    name: str
    kind: str
    required: bool
    note: str

    @classmethod
    def of(cls, name: str, schema: Mapping[str, Any], described: Mapping[str, Any], required: bool) -> Field:
        """A field from its schema."""
        notes = [schema.get("description", "")]
        if schema.get("default") not in (None, ""):
            notes.append(f"Default: {schema['default']}.")
        return cls(name, kind(schema, described), required, " ".join(note for note in notes if note))


def body_fields(schema: Mapping[str, Any], described: Mapping[str, Any]) -> tuple[Field, ...]:
    """The fields of a body; of each form it may take, if there are several."""
    found = resolved(schema, described)
    fields: list[Field] = []
    for form in found.get("anyOf", found.get("oneOf", [found])):
        shape = resolved(form, described)
        needed = shape.get("required", ())
        for name, inner in shape.get("properties", {}).items():
            field = Field.of(name, inner, described, name in needed)
            if field not in fields:
                fields.append(field)
    return tuple(fields)


def kind(schema: Mapping[str, Any], described: Mapping[str, Any]) -> str:
    """What a value is, in words."""
    found = resolved(schema, described)
    if "enum" in found:
        return " or ".join(str(value) for value in found["enum"])
    if "const" in found:
        return str(found["const"])
    forms = found.get("anyOf", found.get("oneOf"))
    if forms:
        words = [kind(form, described) for form in forms if form.get("type") != "null"]
        return ", or ".join(dict.fromkeys(words))
    if found.get("type") == "array":
        return f"list of {kind(found.get('items', {}), described)}"
    if found.get("type") == "object":
        inner = found.get("properties")
        return f"object ({', '.join(inner)})" if inner else "object"
    return _NAMES.get(str(found.get("type")), "any value")


def example(schema: Mapping[str, Any], described: Mapping[str, Any], depth: int = 0) -> Any:
    """A value that fits: the first example given, else the fields that are needed."""
    if schema.get("examples"):
        return schema["examples"][0]
    found = resolved(schema, described)
    if found.get("examples"):
        return found["examples"][0]
    forms = found.get("anyOf", found.get("oneOf"))
    if forms:
        return example(forms[0], described, depth + 1)
    if "enum" in found:
        return found["enum"][0]
    if found.get("type") == "array" or depth > 6:
        return []
    if found.get("type") != "object":
        return _SAMPLES.get(str(found.get("type")))
    fields: Mapping[str, Any] = found.get("properties", {})
    shown = found.get("required") or [name for name, inner in fields.items() if inner.get("examples")][:1]
    return {name: example(fields[name], described, depth + 1) for name in shown}


def resolved(schema: Mapping[str, Any], described: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema in place of a reference to it."""
    while "$ref" in schema:
        schema = described["components"]["schemas"][schema["$ref"].rsplit("/", 1)[-1]]
    return schema
