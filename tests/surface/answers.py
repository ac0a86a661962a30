"""Every kind of answer as the server sends it: its quote, the answer, and its line in the list of answers.

What noise or the moment decides is named instead of shown; the rest is there with every digit that holds on
another machine.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import blowfishdb as bf
from tests.entrypoints.server import DOMAIN, Running, ok, running
from tests.entrypoints.test_one_voice import API, SAID

OTHERS: dict[str, dict[str, Any]] = {
    "two columns": {"question": "histogram(age, region)", "error": 90},
    "groups": {
        "question": {
            "kind": "histogram",
            "columns": [{"name": "region", "groups": {"cold": ["north"], "warm": ["south", "east", "west"]}}],
        },
        "error": 70,
    },
    "in SQL": {"sql": "SELECT age, COUNT(*) FROM salaries WHERE region = 'north' GROUP BY age WITH ERROR 60"},
    "stored": {"question": "histogram(age, bins=4)", "error": 40},
    "from stored ones": {"question": "histogram(age, bins=2)", "error": 120},
}
"""Beside the kinds: other shapes, the same question once more, and one that follows from an answer."""
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(\+00:00)?")
_HEAD = re.compile(r"(\d+):[0-9a-f]{40}")
_LONG = re.compile(r"\d+\.\d{4,}")
NOISY = "(noisy)"
_WITH_NOISE = ("values", "raw", "low", "high")


def text() -> str:
    """One question after the other, in an order that is always the same: some cost less after others."""
    asked = {name: {"question": question, **terms} for name, (question, terms, _) in SAID.items()}
    with TemporaryDirectory() as folder, running(Path(folder), budget="1000") as here:
        ok(here.analyst.post(f"{API}/answers", json={"question": "count()", "epsilon": "0.5"}))
        parts = [_shown(here, name, body) for name, body in {**asked, **OTHERS}.items()]
        parts += [_under_promise(here), _refused(here)]
    return "\n\n".join(parts) + "\n"


def _shown(here: Running, name: str, body: Mapping[str, Any]) -> str:
    quote = ok(here.analyst.post(f"{API}/quotes", json=body))
    told = ok(here.analyst.post(f"{API}/answers", json=body))
    by_curator = ok(here.curator.get(f"/api/v1/answers/{told['id']}"))
    listed = [each for each in ok(here.analyst.get("/api/v1/answers"))["answers"] if each["id"] == told["id"]]
    shown = _lines(told)
    more = [line for line in _lines(by_curator) if line not in shown]
    new = {key: value for key, value in listed[0].items() if key not in told and key not in told["receipt"]}
    title = f"# {name}: {json.dumps(body, ensure_ascii=False)}"
    parts = [title, "quote", *_lines(quote), "answer", *shown, "to a curator", *more]
    return "\n".join([*parts, "in the list", *_lines(new)])


def _under_promise(here: Running) -> str:
    """A policy that hides less leaves the earlier one promised, and a quote says so."""
    salary = DOMAIN["salary"]
    graph = bf.graphs.Threshold(salary.size, salary.threshold(100))
    policy = bf.Policy.by_column(DOMAIN, {"salary": graph})
    here.workspace.as_user("curator").publish("salaries", policy, confirm=True)
    body = {"question": "histogram(salary, bins=10)", "error": 60}
    quote = ok(here.analyst.post(f"{API}/quotes", json=body))
    return "\n".join(["# under an earlier promise", "quote", *_lines(quote)])


def _refused(here: Running) -> str:
    body = {"question": "histogram(salary, bins=10)", "error": 60, "max_cost": "0.000001"}
    response = here.analyst.post(f"{API}/answers", json=body)
    return "\n".join(["# refused", f"problem {response.status_code}", *_lines(response.json())])


# --- as text ----------------------------------------------------------------------------------


def _lines(body: Mapping[str, Any]) -> list[str]:
    return [f"  {path}: {value}" for path, value in _flat(_without_noise(body))]


def _flat(body: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for key, value in body.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", _plain(value)


def _plain(value: Any) -> str:
    """JSON on one line, with five digits of every number and equal neighbours counted."""
    if isinstance(value, list):
        runs = [(text, len(list(same))) for text, same in groupby(map(_plain, value))]
        return f"[{', '.join(text if count == 1 else f'{count} × {text}' for text, count in runs)}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {_plain(each)}' for key, each in value.items())}}}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(type(value)(float(f"{value:.5g}")))
    return _LONG.sub(lambda number: f"{float(number[0]):.5g}", json.dumps(value, ensure_ascii=False))


def _without_noise(body: Mapping[str, Any]) -> dict[str, Any]:
    """The same, with names for what differs from run to run."""
    said = {key: _named(key, value) for key, value in body.items()}
    exact = body.get("exact") or []
    for key in _WITH_NOISE:
        values = body.get(key)
        if values is not None:
            fits = len(values) == len(exact)
            said[key] = [value if fits and exact[place] else NOISY for place, value in enumerate(values)]
    if body.get("kind") in ("top", "above") and "labels" in body:
        said["labels"] = [[NOISY for _ in body["labels"][0]]]
    if body.get("places"):
        said["places"] = body["places"] | {"centroids": [NOISY for _ in body["places"]["centroids"]]}
    return said


def _named(key: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return {inner: _named(inner, each) for inner, each in value.items()}
    if key == "quote_id":
        return "(sealed)"
    if isinstance(value, str) and _MOMENT.fullmatch(value):
        return "(a moment)"
    if isinstance(value, str) and (head := _HEAD.fullmatch(value)):
        return f"{head[1]}:(hash)"
    return value
