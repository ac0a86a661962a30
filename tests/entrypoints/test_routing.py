"""A router passes on what it cannot have, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi import FastAPI

from blowfishdb.entrypoints.server.routing import PREFIX, Router
from tests.entrypoints.server import TestClient


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    programs, nested, pages, anything = Router(PREFIX), Router(PREFIX), Router(), Router()
    nested.get("/jobs/{job}")(lambda job: f"job {job}")
    nested.get("/jobs/{job}/steps/{step}")(lambda job, step: f"step {step} of job {job}")
    nested.get("/jobs/{job}/log")(lambda job: f"log of job {job}")
    programs.get("/answers/{number:int}.{form}")(lambda number, form: f"{number} as {form}")
    programs.include_router(nested)
    pages.get("/")(lambda: "home")
    pages.get("/answers/{number}")(lambda number: f"page {number}")
    anything.get("/{name}")(lambda name: f"any {name}")
    app = FastAPI(redirect_slashes=False)
    app.include_router(programs, prefix=PREFIX)
    app.include_router(pages)
    app.include_router(anything)
    with TestClient(app) as found:
        yield found


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("/", "home"),
        ("/answers/3", "page 3"),
        (f"{PREFIX}/answers/3.csv", "3 as csv"),
        (f"{PREFIX}/jobs/a", "job a"),
        (f"{PREFIX}/jobs/log", "job log"),
        (f"{PREFIX}/jobs/a/log", "log of job a"),
        (f"{PREFIX}/jobs/a/steps/log", "step log of job a"),
        ("/jobs", "any jobs"),
        ("/answers", "any answers"),
    ],
)
def test_every_route_is_found(client: TestClient, address: str, says: str) -> None:
    assert client.get(address).json() == says


def test_what_is_not_there_is_refused_as_ever(client: TestClient) -> None:
    assert client.get(f"{PREFIX}/answers/x.csv").status_code == 404
    assert client.get(f"{PREFIX}/jobs/a/nothing").status_code == 404
    assert client.get(f"{PREFIX}/jobs/a/log/").status_code == client.get(f"{PREFIX}/jobs").status_code == 404
    assert client.get("/jobs/a").status_code == client.get(f"{PREFIX}/nothing").status_code == 404
    assert client.post("/answers/3").status_code == 405
    assert client.post(f"{PREFIX}/jobs/a").status_code == 405


def test_behind_a_prefix_of_another_server_too(client: TestClient) -> None:
    behind = TestClient(client.app, root_path="/data")
    assert behind.get("/answers/3").json() == "page 3"
    assert behind.get(f"{PREFIX}/jobs/a").json() == "job a"
