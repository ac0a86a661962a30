"""The documentation of the interface: one page, made on the server, with nothing from outside.

JSON schemas in words: a line for each field, and an example that fits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final, final

from fastapi import FastAPI, Request, Response
from fastapi.routing import APIRoute
from jinja2 import Environment, PackageLoader

from blowfishdb.entrypoints.server.access import Anyone
from blowfishdb.entrypoints.server.problems import Problem
from blowfishdb.entrypoints.server.routing import Router

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
    body = resolved(schema, described)
    fields: list[Field] = []
    for form in body.get("anyOf", body.get("oneOf", [body])):
        shape = resolved(form, described)
        needed = shape.get("required", ())
        for name, inner in shape.get("properties", {}).items():
            field = Field.of(name, inner, described, name in needed)
            if field not in fields:
                fields.append(field)
    return tuple(fields)


def kind(schema: Mapping[str, Any], described: Mapping[str, Any]) -> str:
    """What a value is, in words."""
    shape = resolved(schema, described)
    if "enum" in shape:
        return " or ".join(map(str, shape["enum"]))
    if "const" in shape:
        return str(shape["const"])
    forms = shape.get("anyOf", shape.get("oneOf"))
    if forms:
        words = [kind(form, described) for form in forms if form.get("type") != "null"]
        return ", or ".join(dict.fromkeys(words))
    if shape.get("type") == "array":
        return f"list of {kind(shape.get('items', {}), described)}"
    if shape.get("type") == "object":
        inner = shape.get("properties")
        return f"object ({', '.join(inner)})" if inner else "object"
    return _NAMES.get(str(shape.get("type")), "any value")


def example(schema: Mapping[str, Any], described: Mapping[str, Any], depth: int = 0) -> Any:
    """A value that fits: the first example given, else the fields that are needed."""
    if schema.get("examples"):
        return schema["examples"][0]
    shape = resolved(schema, described)
    if shape.get("examples"):
        return shape["examples"][0]
    forms = shape.get("anyOf", shape.get("oneOf"))
    if forms:
        return example(forms[0], described, depth + 1)
    if "enum" in shape:
        return shape["enum"][0]
    if shape.get("type") == "array" or depth > 6:
        return []
    if shape.get("type") != "object":
        return _SAMPLES.get(str(shape.get("type")))
    fields: Mapping[str, Any] = shape.get("properties", {})
    shown = shape.get("required") or [name for name, inner in fields.items() if inner.get("examples")][:1]
    return {name: example(fields[name], described, depth + 1) for name in shown}


def resolved(schema: Mapping[str, Any], described: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema in place of a reference to it."""
    while "$ref" in schema:
        schema = described["components"]["schemas"][schema["$ref"].rsplit("/", 1)[-1]]
    return schema


router: Final = Router(include_in_schema=False)

DESCRIPTION: Final = (
    "Private answers from a relational database. A quote is free and always comes before spending; every "
    "number carries its noise interval; every refusal says what happened, whether it was charged, and what "
    "to try (RFC 9457). Programs send a token: `Authorization: Bearer bf_…`."
)
_METHODS: Final = ("get", "post", "put", "patch", "delete")
_BODY_METHODS: Final = ("post", "put", "patch")


def operation_id(route: APIRoute) -> str:
    """A name for a route in generated clients: its function and where it stands."""
    return re.sub(r"\W+", "_", f"{route.name}{route.path_format}").strip("_")


@final
@dataclass(frozen=True)
class Operation:
    """A route as the page shows it."""

    method: str
    path: str
    anchor: str
    summary: str
    paragraphs: tuple[str, ...]
    parameters: tuple[Field, ...]
    body: tuple[Field, ...]
    responses: tuple[tuple[str, str], ...]
    curl: str


@router.get("/api/openapi.json")
def openapi(request: Request, _: Anyone) -> dict[str, Any]:
    """The interface in the form that programs read."""
    return described(request.app)


@router.get("/api/docs")
def page(request: Request, _: Anyone) -> Response:
    """The interface in the form that people read."""
    schema = described(request.app)
    groups: dict[str, list[Operation]] = {}
    for tag, operation in operations(schema):
        groups.setdefault(tag, []).append(operation)
    text = (
        _environment()
        .get_template("docs.html")
        .render(
            title=schema["info"]["title"],
            version=schema["info"]["version"],
            description=schema["info"]["description"],
            groups=groups,
        )
    )
    return Response(text, media_type="text/html; charset=utf-8")


@router.get("/api/docs.css")
def style(_: Anyone) -> Response:
    """How the page looks."""
    return Response(_asset("docs.css"), media_type="text/css; charset=utf-8")


def described(app: FastAPI) -> dict[str, Any]:
    """The interface as data: what the app knows of its routes, the shape of problems, and how to sign in."""
    schema = app.openapi()
    parts = schema.setdefault("components", {})
    parts.setdefault("schemas", {})["Problem"] = Problem.model_json_schema()
    parts["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer"},
        "cookie": {"type": "apiKey", "in": "cookie", "name": app.state.server.settings.cookie},
    }
    schema["security"] = [{"token": []}, {"cookie": []}]
    return schema


def operations(schema: dict[str, Any]) -> Iterator[tuple[str, Operation]]:
    """Every route with the group that it belongs to, in the order of the app."""
    for path, methods in schema["paths"].items():
        for method in _METHODS:
            if method in methods:
                route = methods[method]
                yield route.get("tags", ["Other"])[0], _operation(method, path, route, schema)


def _operation(method: str, path: str, route: dict[str, Any], described: dict[str, Any]) -> Operation:
    content = route.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema")
    parameters = tuple(
        Field.of(f"{each['name']} ({each['in']})", each["schema"], described, each.get("required", False))
        for each in route.get("parameters", ())
    )
    return Operation(
        method=method.upper(),
        path=path,
        anchor=route["operationId"],
        summary=route.get("summary", path),
        paragraphs=tuple(re.split(r"\n\s*\n", route.get("description", ""))),
        parameters=parameters,
        body=() if schema is None else body_fields(schema, described),
        responses=tuple((status, each["description"]) for status, each in route["responses"].items()),
        curl=_curl(method, path, None if schema is None else example(schema, described)),
    )


def _curl(method: str, path: str, body: Any) -> str:
    lines = [f"curl -X {method.upper()} http://127.0.0.1:8787{path}", '  -H "Authorization: Bearer $TOKEN"']
    if body is not None and method in _BODY_METHODS:
        lines += ['  -H "Content-Type: application/json"', f"  -d '{json.dumps(body)}'"]
    return " \\\n".join(lines)


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("blowfishdb.entrypoints.server", "pages"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _asset(name: str) -> str:
    return files("blowfishdb.entrypoints.server").joinpath("pages", name).read_text(encoding="utf-8")
