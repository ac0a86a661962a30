"""The documentation of the interface: one page, made on the server, with nothing from outside."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final, final

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.routing import APIRoute
from jinja2 import Environment, PackageLoader

from blowfishdb.entrypoints.api.access import Anyone
from blowfishdb.entrypoints.api.problems import Problem
from blowfishdb.entrypoints.api.schema_words import Field, body_fields, example

router: Final = APIRouter(include_in_schema=False)

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
                found = methods[method]
                yield found.get("tags", ["Other"])[0], _operation(method, path, found, schema)


def _operation(method: str, path: str, found: dict[str, Any], described: dict[str, Any]) -> Operation:
    content = found.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema")
    parameters = tuple(
        Field.of(f"{each['name']} ({each['in']})", each["schema"], described, each.get("required", False))
        for each in found.get("parameters", ())
    )
    return Operation(
        method=method.upper(),
        path=path,
        anchor=found["operationId"],
        summary=found.get("summary", path),
        paragraphs=tuple(re.split(r"\n\s*\n", found.get("description", ""))),
        parameters=parameters,
        body=() if schema is None else body_fields(schema, described),
        responses=tuple((status, each["description"]) for status, each in found["responses"].items()),
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
        loader=PackageLoader("blowfishdb.entrypoints.api", "pages"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _asset(name: str) -> str:
    return files("blowfishdb.entrypoints.api").joinpath("pages", name).read_text(encoding="utf-8")
