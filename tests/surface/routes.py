"""The REST interface as ``/api/openapi.json`` describes it: routes, what they take and give, and its schemas.

Titles are left out: they are made of the names beside them. So are the problems that every route may answer
with, where they are the same for all.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.entrypoints.server import SETTINGS, ok, running

_REF = "#/components/schemas/"
_LEFT_OUT = {"title", "anyOf", "type", "$ref", "items", "properties", "required", "additionalProperties"}


def text() -> str:
    """Routes by their paths, then schemas by their names."""
    with TemporaryDirectory() as folder, running(Path(folder), settings=replace(SETTINGS, demo=True)) as here:
        described = ok(here.nobody.get("/api/openapi.json"))
    described["info"].pop("version")
    parts = described["components"]
    front = {name: value for name, value in described.items() if name not in ("paths", "components")}
    common = _common(described["paths"])
    lines = [
        *(f"{name}: {_plain(value)}" for name, value in sorted(front.items())),
        *(f"{name}: {_plain(value)}" for name, value in sorted(parts.items()) if name != "schemas"),
        f"every route may answer: {', '.join(sorted(common))}",
    ]
    for path, methods in sorted(described["paths"].items()):
        for method, route in methods.items():
            lines += ["", *_route(f"{method.upper()} {path}", route, common)]
    for name, schema in sorted(parts["schemas"].items()):
        lines += ["", *_schema(name, schema)]
    return "\n".join(lines) + "\n"


def _answers(route: Mapping[str, Any]) -> Iterator[str]:
    for status, said in route["responses"].items():
        kinds = said.get("content", {})
        content = [f"{kind} {_type(each.get('schema', {}))}" for kind, each in kinds.items()]
        usual = "Problem" in "".join(content)  # Python's own words, which change with it
        words = "" if usual else f" {said['description']}"
        yield f"{status}{words}: {'; '.join(content) or 'nothing'}"


def _common(paths: Mapping[str, Any]) -> set[str]:
    each = [set(_answers(route)) for methods in paths.values() for route in methods.values()]
    return set.intersection(*each)


def _route(name: str, route: Mapping[str, Any], common: set[str]) -> Iterator[str]:
    yield name
    words = sorted(route.keys() - {"parameters", "requestBody", "responses"})
    yield from (f"    {key}: {_plain(route[key])}" for key in words)
    for each in route.get("parameters", ()):
        needed = "" if each.get("required") else "?"
        yield f"    {each['in']} {each['name']}{needed}: {_type(each['schema'])}"
    body = route.get("requestBody", {})
    for kind, each in body.get("content", {}).items():
        yield f"    takes{'' if body.get('required') else '?'} {kind}: {_type(each['schema'])}"
    yield from (f"    {said}" for said in _answers(route) if said not in common)


def _schema(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    yield f"{name}: {_type(schema)}"
    needed = schema.get("required", ())
    for field, each in schema.get("properties", {}).items():
        yield f"    {field}{'' if field in needed else '?'}: {_type(each)}"


def _type(schema: Any) -> str:
    """A schema on one line: its type, then everything else that is said of it."""
    if not isinstance(schema, Mapping):
        return _plain(schema)
    more = [f"{key}={_plain(value)}" for key, value in sorted(schema.items()) if key not in _LEFT_OUT]
    return " ".join([_kind(schema), *more])


def _kind(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).removeprefix(_REF)
    if "anyOf" in schema:
        return " | ".join(map(_type, schema["anyOf"]))
    kind = str(schema.get("type", "anything"))
    if "items" in schema:
        return f"{kind} of ({_type(schema['items'])})"
    if "additionalProperties" in schema:
        return f"{kind} with ({_type(schema['additionalProperties'])})"
    return kind


def _plain(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
