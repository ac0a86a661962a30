"""Giving a question up: the statement ends in the database, the charge stays, the next one is answered."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from blowfishdb.adapters.backends import Backend
from blowfishdb.adapters.sql.source import Source
from blowfishdb.adapters.store.values import State
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.cancellation import Cancellation
from blowfishdb.core.domain.attributes import Integer
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import Cancelled, QueryFailed
from blowfishdb.workspace.embedded import Workspace
from tests.adapters.counting import counts, query
from tests.adapters.places import DIGITS, ROWS, DuckFile, Place, PostgresSchema, endless

NUMBER = Domain(v=Integer(0, 9))
EACH = query(NUMBER, v={})
SOON = 0.8
"""Seconds after which a statement has begun, and is far from its end."""


@pytest.fixture
def backend(database: Place) -> Iterator[Backend]:
    """One that would count for hours."""
    made = database.make(DIGITS, NUMBER, endless(database.dialect))
    yield made
    made.close()


@contextmanager
def soon(act: Callable[[], object]) -> Iterator[None]:
    timer = threading.Timer(SOON, act)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def still_answers(backend: Backend) -> bool:
    backend.source = Source.of_table("people")  # type: ignore[attr-defined]
    return counts(backend, EACH) == [ROWS // 10] * 10


def nothing_runs(database: Place) -> bool:
    """No thread waits for a count, and the server, where there is one, is idle."""
    if any(thread.name == "blowfishdb-count" for thread in threading.enumerate()):
        return False
    if not isinstance(database, PostgresSchema):
        return True
    with database.server.connect() as admin:
        busy = (
            "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND application_name = 'blowfishdb'"
        )
        return admin.execute(busy).fetchone() == (0,)


def test_another_thread_can_cancel(database: Place, backend: Backend) -> None:
    cancel, prepared = Cancellation(), backend.prepare(EACH)
    with soon(cancel.cancel), pytest.raises(Cancelled, match=r"stays charged.*may have been seen") as caught:
        prepared.count(cancel)
    assert isinstance(caught.value, QueryFailed) and caught.value.charged
    assert caught.value.__context__ is None
    assert nothing_runs(database)
    assert still_answers(backend)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C as in a terminal: whoever starts the tests in the background may have it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_control_c_stops_the_statement(database: Place, backend: Backend) -> None:
    waiting = threading.get_ident()
    assert waiting == threading.main_thread().ident
    prepared = backend.prepare(EACH)
    with soon(lambda: signal.pthread_kill(waiting, signal.SIGINT)), pytest.raises(KeyboardInterrupt):
        prepared.count()
    assert nothing_runs(database)
    assert still_answers(backend)


def test_several_questions_at_once_are_cancelled_one_by_one(database: Place, backend: Backend) -> None:
    first, second = Cancellation(), Cancellation()
    ended: list[str] = []

    def ask(name: str, cancel: Cancellation) -> None:
        with pytest.raises(Cancelled):
            backend.prepare(EACH).count(cancel)
        ended.append(name)

    threads = [threading.Thread(target=ask, args=pair) for pair in (("first", first), ("second", second))]
    for thread in threads:
        thread.start()
    with soon(first.cancel):
        threads[0].join()
    assert ended == ["first"]
    second.cancel()
    threads[1].join()
    assert ended == ["first", "second"]
    assert nothing_runs(database)


def test_the_charge_of_a_cancelled_question(database: Place, backend: Backend, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("v\n1\n")
    with Workspace(tmp_path / "w.blowfish", user="ana") as workspace:
        asking = workspace.add_dataset("people", tmp_path / "rows.csv", domain=NUMBER)["v"].histogram()
        workspace._rows._open["people", 1] = backend
        budget = workspace["people"].budget

        early = Cancellation()
        early.cancel()
        with pytest.raises(Cancelled, match=r"before the data was read\. Nothing was charged") as caught:
            asking.spend("0.1").ask(cancel=early)
        assert not caught.value.charged
        assert not budget.status.spent and not budget.status.held and not workspace._ledger.charges("people")

        late = Cancellation()
        with soon(late.cancel), pytest.raises(Cancelled, match="stays charged") as caught:
            asking.spend("0.1").ask(cancel=late)
        assert caught.value.charged
        assert budget.status.spent == Epsilon("0.1") and not budget.status.held
        assert [charge.state for charge in workspace._ledger.charges("people")] == [State.LOST]
        assert workspace.verify() == []

        backend.source = Source.of_table("people")  # type: ignore[attr-defined]
        assert len(asking.spend("0.1").ask(cancel=Cancellation()).values) == 10
        assert budget.status.spent == Epsilon("0.2")
        assert workspace.verify() == []


# --- the object itself ------------------------------------------------------------------------


def test_a_cancellation_calls_whoever_waits_for_it() -> None:
    heard: list[str] = []
    cancel = Cancellation()
    cancel.check()
    with cancel.calling(lambda: heard.append("left")):
        assert not cancel.requested
    with cancel.calling(lambda: heard.append("waiting")):
        cancel.cancel()
    assert cancel.requested and heard == ["waiting"]
    with cancel.calling(lambda: heard.append("late")):
        assert heard == ["waiting", "late"]
    with pytest.raises(Cancelled) as caught:
        cancel.check()
    assert not caught.value.charged


@pytest.mark.parametrize("late", [False, True])
def test_an_answer_that_is_there_is_given(tmp_path: Path, late: bool) -> None:
    """What was cancelled before it began never begins; what was faster than its cancellation is given."""
    with closing(DuckFile(tmp_path).make(DIGITS, NUMBER)) as backend:
        cancel, prepared = Cancellation(), backend.prepare(EACH)
        if late:
            assert prepared.count(cancel) is not None
            cancel.cancel()
        else:
            cancel.cancel()
            with pytest.raises(Cancelled):
                prepared.count(cancel)
        assert counts(backend, EACH) == [ROWS // 10] * 10
