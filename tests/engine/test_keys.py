"""A server is killed while it answers under a key: the key is charged once, whatever is sent again."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from blowfishdb.adapters.store.values import State
from blowfishdb.adapters.tokens import Tokens
from blowfishdb.core.budget import Epsilon
from blowfishdb.entrypoints.server.app import create_app
from blowfishdb.workspace.embedded import Workspace
from tests.engine.keyed import Sent, to_line
from tests.entrypoints.server import CHEAP, SETTINGS, client_of, make_workspace

ROOT = Path(__file__).parents[2]
PRICE = Epsilon("0.1")
ONE = {"question": "histogram(age, width=20)", "epsilon": "0.1"}
CLUSTERS = {"question": "clusters(salary, age, k=2)", "epsilon": "0.1"}
BATCH = {
    "questions": [
        {"dataset": "salaries", **ONE},
        {"dataset": "salaries", "question": "histogram(region)", "epsilon": "0.1"},
    ]
}
ASK, BATCHES = "/api/v1/datasets/salaries/answers", "/api/v1/batches"

BODIES = (
    pytest.param(ONE, id="counts"),
    pytest.param(CLUSTERS, id="clusters", marks=pytest.mark.thorough),
)

Kill = Callable[..., list[str]]


@pytest.fixture(scope="module")
def killer() -> Iterator[Callable[[Sent], list[str]]]:
    import json

    process = subprocess.Popen(
        [sys.executable, "-m", "tests.engine.keyed"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
    )
    assert process.stdin is not None and process.stdout is not None
    sent, heard = process.stdin, process.stdout
    assert heard.readline() == "ready\n"

    def kill(job: Sent) -> list[str]:
        sent.write(to_line(job))
        sent.flush()
        return list(json.loads(heard.readline()))

    yield kill
    sent.close()
    process.wait(30)
    heard.close()


class Place:
    """A workspace whose servers are killed, and one that is sent the same request afterwards."""

    def __init__(self, folder: Path, killer: Callable[[Sent], list[str]]) -> None:
        self.path = make_workspace(folder)
        with Workspace(self.path) as workspace:
            issued = Tokens(workspace.store).issue("analyst", purpose="api", lifetime=timedelta(hours=1))
        self.token, self._killer = issued[0], killer

    def kill(self, body: dict[str, Any], at: str, *, path: str = ASK, nth: int = 1) -> None:
        reached = self._killer(Sent(str(self.path), self.token, path, body, "key", at, nth))
        assert reached[-1] == at, reached

    @contextmanager
    def again(self, *, later: bool = False, path: str = ASK) -> Iterator[Callable[[dict[str, Any]], Any]]:
        """The next server, at once or minutes later."""
        app = create_app(self.path, settings=SETTINGS, hasher=CHEAP)
        server, client = app.state.server, client_of(app, self.token)
        if later:
            server.idempotency._clock = server.workspace._ledger._clock = lambda: (
                datetime.now(UTC) + timedelta(minutes=2)
            )
        try:
            yield lambda body: client.post(path, json=body, headers={"Idempotency-Key": "key"})
        finally:
            server.workspace.close()

    def charges(self) -> list[State]:
        with Workspace(self.path) as workspace:
            assert workspace.verify() == []
            assert workspace.budget("salaries").remaining >= Epsilon(5) - PRICE - PRICE
            return [charge.state for charge in workspace._ledger.charges("salaries")]


@pytest.fixture
def place(tmp_path: Path, killer: Callable[[Sent], list[str]]) -> Place:
    return Place(tmp_path, killer)


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("at", ["settled", "keep", "kept"])
def test_what_was_settled_is_sent_at_once_and_for_good(place: Place, body: dict[str, Any], at: str) -> None:
    place.kill(body, at)
    with place.again() as send:
        first, second = send(body), send(body)
        assert first.status_code == 200 and first.json()["receipt"]["cost"] == "0.1"
        assert first.headers["Idempotent-Replayed"] == "true"
        assert second.content == first.content
    assert place.charges() == [State.SETTLED]


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("at", ["reading", "settle"])
def test_what_was_lost_is_refused_the_same_every_time(place: Place, body: dict[str, Any], at: str) -> None:
    place.kill(body, at)
    with place.again() as send:
        waiting = send(body)
        assert waiting.status_code == 409 and 1 <= int(waiting.headers["Retry-After"]) <= 60
    assert place.charges() == [State.READING]
    with place.again(later=True) as send:
        first, second = send(body), send(body)
        assert first.status_code == 410 and first.json()["charged"] is True
        assert "Nothing more is charged" in first.json()["detail"]
        assert second.json() == first.json()
    assert place.charges() == [State.LOST]
    with place.again() as send:
        assert send(body).status_code == 410
    assert place.charges() == [State.LOST]


def test_what_was_not_charged_is_asked_by_the_next(place: Place) -> None:
    place.kill(ONE, "reserve")
    with place.again() as send:
        waiting = send(ONE)
        assert waiting.status_code == 409 and waiting.json()["charged"] is False
        assert int(waiting.headers["Retry-After"]) <= 60
    with place.again(later=True) as send:
        assert send(ONE).status_code == 200
    assert place.charges() == [State.SETTLED]


def test_the_rest_of_a_batch_is_asked_by_the_next(place: Place) -> None:
    place.kill(BATCH, "settled", path=BATCHES)
    with place.again(later=True, path=BATCHES) as send:
        first, second = send(BATCH), send(BATCH)
        assert first.status_code == 200 and second.content == first.content
        assert [answer["receipt"]["cost"] for answer in first.json()["answers"]] == ["0.1", "0.1"]
    assert place.charges() == [State.SETTLED, State.VOID, State.SETTLED]  # what was not read is given back


def test_a_batch_that_lost_an_answer_is_refused(place: Place) -> None:
    place.kill(BATCH, "marked", path=BATCHES, nth=2)
    with place.again(later=True, path=BATCHES) as send:
        first, second = send(BATCH), send(BATCH)
        assert first.status_code == 410 and second.json() == first.json()
    assert place.charges() == [State.SETTLED, State.LOST]


def test_a_key_stays_with_its_request_after_its_response_was_forgotten(place: Place) -> None:
    place.kill(ONE, "kept")
    with Workspace(place.path) as workspace, workspace.store.writing() as connection:
        connection.exec_driver_sql("DELETE FROM idempotency")  # as after seven days
    with place.again() as send:
        assert send({**ONE, "epsilon": "0.2"}).status_code == 409
        assert send(ONE).json()["receipt"]["cost"] == "0.1"


def test_keys_in_python(place: Place) -> None:
    with Workspace(place.path, user="analyst") as workspace:
        ages = workspace["salaries"]["age"].histogram(width=20).spend("0.1")
        first = ages.ask(key="mine")
        workspace.publish("salaries", workspace.facts("salaries").policy, confirm=True)  # another version
        again = ages.ask(key="mine")
        assert again.number == first.number and again.receipt.cost == PRICE
        assert again.values.tolist() == first.values.tolist()
        two = workspace.batch(ages, workspace["salaries"]["region"].histogram().spend("0.1"))
        with pytest.raises(Exception, match="another request"):
            two.ask(key="mine")
        assert [a.number for a in two.ask(key="both")] == [a.number for a in two.ask(key="both")]
