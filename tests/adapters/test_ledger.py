"""The ledger: exact, durable, and never more than the budget, whoever asks at once and whoever is killed."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from blowfishdb.adapters.store.ledger import Ledger
from blowfishdb.adapters.store.values import Charge, RequestKey, State
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import (
    AnswerInProgress,
    AnswerLost,
    BudgetExhausted,
    InvalidEpsilon,
    InvalidInput,
    KeyReused,
    UnknownDataset,
    WorkspaceError,
)
from tests.adapters.spending import reserve, spend

# --- budgets ----------------------------------------------------------------------------------


def test_decimals_add_up_exactly(ledger: Ledger) -> None:
    ledger.set_budget("people", Epsilon("0.3"), "carla")
    spend(ledger, "0.1")
    spend(ledger, "0.2")
    budget = ledger.budget("people")
    assert (budget.spent, budget.held, budget.remaining) == (Epsilon("0.3"), Epsilon(0), Epsilon(0))
    with pytest.raises(BudgetExhausted, match=r"needs 0.000000001, 0 left"):
        ledger.reserve("people", "ana", Epsilon.from_nano(1), "q", {})


def test_a_refusal_says_the_numbers_and_writes_nothing(ledger: Ledger) -> None:
    spend(ledger, "0.82")
    before = (ledger.charges(), ledger.grants("people"), ledger.budget("people"))
    with pytest.raises(BudgetExhausted, match=r"needs 0.237, 0.18 left"):
        reserve(ledger, "0.237", user="never seen")
    assert (ledger.charges(), ledger.grants("people"), ledger.budget("people")) == before
    assert ledger.verify() == []


def test_free_answers_are_entered_even_when_nothing_is_left(ledger: Ledger) -> None:
    spend(ledger, "1")
    assert spend(ledger, "0").state is State.SETTLED
    assert ledger.verify() == []


def test_reservations_hold_and_voids_give_back(ledger: Ledger) -> None:
    charge = reserve(ledger, "0.7")
    assert ledger.budget("people").held == Epsilon("0.7")
    with pytest.raises(BudgetExhausted):
        reserve(ledger, "0.4")
    assert ledger.void(charge).state is State.VOID
    assert ledger.budget("people").remaining == Epsilon(1)
    assert ledger.verify() == []


def test_a_key_belongs_to_one_user_and_is_charged_once_for_ever(ledger: Ledger) -> None:
    key = RequestKey("first", "a request")

    def asked(user: str, key: RequestKey) -> Charge:
        return ledger.reserve("people", user, Epsilon("0.1"), f"question of {user}", {}, key=key)

    charge, _ = asked("ana", key), asked("ben", key)
    with pytest.raises(AnswerInProgress):
        asked("ana", key)
    ledger.mark_reading(charge)
    ledger.lose(charge, "killed")
    for _ in range(2):
        with pytest.raises(AnswerLost):
            asked("ana", key)
    with pytest.raises(KeyReused):
        asked("ben", replace(key, asked="another request"))
    assert ledger.budget("people").used == Epsilon("0.2")


def test_a_budget_can_be_raised_but_not_below_what_is_used(ledger: Ledger) -> None:
    spend(ledger, "0.5")
    reserve(ledger, "0.25")
    with pytest.raises(InvalidInput, match=r"at least 0.75"):
        ledger.set_budget("people", Epsilon("0.7"), "carla")
    ledger.set_budget("people", Epsilon("0.75"), "carla")
    ledger.set_budget("people", Epsilon(5), "carla")
    assert ledger.budget("people").remaining == Epsilon("4.25")
    assert ledger.verify() == []


def test_a_dataset_without_a_budget(ledger: Ledger) -> None:
    for act in (
        lambda: ledger.budget("ghosts"),
        lambda: ledger.reserve("ghosts", "ana", Epsilon(0), "q", {}),
        lambda: ledger.grant("ghosts", "ana", Epsilon(1)),
    ):
        with pytest.raises(UnknownDataset, match="ghosts"):
            act()
    assert ledger.verify() == []


def test_what_is_left_for_someone(ledger: Ledger) -> None:
    spend(ledger, "0.2")
    assert ledger.left("people", "ana") == ledger.left("people", "new") == Epsilon("0.8")
    ledger.grant("people", "ana", Epsilon("0.5"))
    reserve(ledger, "0.1")
    assert (ledger.left("people", "ana"), ledger.left("people", "new")) == (Epsilon("0.2"), Epsilon(0))
    ledger.grant("people", "ana", Epsilon(1))  # more than the others left of the budget
    assert ledger.left("people", "ana") == Epsilon("0.7")
    reserve(ledger, "0.7")
    assert not ledger.left("people", "ana")


def test_what_cannot_be_entered(ledger: Ledger) -> None:
    with pytest.raises(InvalidEpsilon):
        ledger.reserve("people", "ana", 0.5, "q", {})  # type: ignore[arg-type]
    with pytest.raises(InvalidEpsilon):
        ledger.set_budget("people", Epsilon(10**12), "carla")
    for name in ("", "x" * 256, "a\x00b"):
        with pytest.raises(InvalidInput):
            ledger.reserve("people", name, Epsilon(0), "q", {})
    for detail in ({"x": object()}, {"x": float("nan")}):
        with pytest.raises(InvalidInput, match="JSON"):
            ledger.reserve("people", "ana", Epsilon(0), "q", detail)
    assert ledger.charges() == []


# --- grants -----------------------------------------------------------------------------------


def test_grants_limit_each_analyst(ledger: Ledger) -> None:
    spend(ledger, "0.1", user="early")
    ledger.grant("people", "ana", Epsilon("0.3"))
    ledger.grant("people", "ben", Epsilon("0.7"))
    spend(ledger, "0.3", user="ana")
    with pytest.raises(BudgetExhausted, match=r"'ana'.*needs 0.1, 0 left"):
        reserve(ledger, "0.1", user="ana")
    with pytest.raises(BudgetExhausted, match=r"'early'.*0 left"):
        reserve(ledger, "0.1", user="early")
    with pytest.raises(BudgetExhausted):  # the grant would reach, the dataset does not
        reserve(ledger, "0.65", user="ben")
    reserve(ledger, "0.6", user="ben")
    assert [(g.user, g.granted) for g in ledger.grants("people")] == [
        ("ana", Epsilon("0.3")),
        ("ben", Epsilon("0.7")),
        ("early", None),
    ]
    assert ledger.verify() == []


def test_grants_fit_the_budget_and_what_was_used(ledger: Ledger) -> None:
    ledger.grant("people", "ana", Epsilon("0.6"))
    with pytest.raises(BudgetExhausted, match=r"at most 0.4"):
        ledger.grant("people", "ben", Epsilon("0.5"))
    spend(ledger, "0.2", user="ana")
    reserve(ledger, "0.1", user="ana")
    with pytest.raises(InvalidInput, match=r"at least 0.3"):
        ledger.grant("people", "ana", Epsilon("0.2"))
    ledger.grant("people", "ana", Epsilon("0.3"))
    ledger.grant("people", "ben", Epsilon("0.7"))
    with pytest.raises(InvalidInput):
        ledger.set_budget("people", Epsilon("0.9"), "carla")
    assert ledger.verify() == []


# --- states and answers -----------------------------------------------------------------------

STEPS: dict[State, Callable[[Ledger, Charge], Charge]] = {
    State.READING: lambda ledger, charge: ledger.mark_reading(charge),
    State.SETTLED: lambda ledger, charge: ledger.settle(charge, "{}"),
    State.LOST: lambda ledger, charge: ledger.lose(charge, "QueryFailed"),
    State.VOID: lambda ledger, charge: ledger.void(charge),
}
WAYS: dict[State, tuple[State, ...]] = {
    State.RESERVED: (),
    State.READING: (State.READING,),
    State.SETTLED: (State.READING, State.SETTLED),
    State.LOST: (State.READING, State.LOST),
    State.VOID: (State.VOID,),
}
ALLOWED = {
    (State.RESERVED, State.READING),
    (State.RESERVED, State.VOID),
    (State.READING, State.SETTLED),
    (State.READING, State.LOST),
}


@pytest.mark.parametrize("to", STEPS)
@pytest.mark.parametrize("state", WAYS)
def test_transitions(ledger: Ledger, state: State, to: State) -> None:
    charge = reserve(ledger, "0.5")
    for step in WAYS[state]:
        charge = STEPS[step](ledger, charge)
    assert charge.state is state
    if (state, to) in ALLOWED:
        assert STEPS[to](ledger, charge).state is to
    else:
        with pytest.raises(WorkspaceError, match=f"{state.value} and cannot become {to.value}"):
            STEPS[to](ledger, charge)
        assert ledger.charge(charge.id) == charge
    budget, now = ledger.budget("people"), ledger.charge(charge.id).state
    assert budget.held == Epsilon("0.5" if now.held else 0)
    assert budget.spent == Epsilon("0.5" if now.spent else 0)
    assert ledger.verify() == []


def test_only_who_reserved_may_go_on(ledger: Ledger, path: Path) -> None:
    charge = reserve(ledger, "0.5")
    other = Ledger.open(path)
    for step in STEPS.values():
        with pytest.raises(WorkspaceError, match="another process"):
            step(other, charge)
    other.close()
    assert ledger.charge(charge.id).state is State.RESERVED


def test_reserved_and_marked_in_one_commit(path: Path) -> None:
    """The books, the chain and the states are those of the two steps, event by event."""
    at = datetime(2030, 1, 1, tzinfo=UTC)
    seen = []
    for number, steps in enumerate((once_committed, twice_committed)):
        ledger = Ledger.open(path.with_name(f"{number}.db"), clock=lambda: at)
        ledger._holder = "somebody"
        ledger.set_budget("people", Epsilon(1), "carla")
        charge = steps(ledger)
        assert charge == ledger.charge(charge.id)
        assert charge.state is State.READING
        with pytest.raises(WorkspaceError, match="cannot become void"):
            ledger.void(charge)
        events = [replace(event, salt="", hash="") for event in ledger.events()]
        seen.append((ledger.charges(), ledger.budget("people"), ledger.grants("people"), events))
        ledger.settle(charge, "[1]")
        assert ledger.verify() == []
        ledger.close()
    assert seen[0] == seen[1]


def once_committed(ledger: Ledger) -> Charge:
    return ledger.reserve("people", "ana", Epsilon("0.4"), "q", {"kind": "count"}, reading=True)


def twice_committed(ledger: Ledger) -> Charge:
    return ledger.mark_reading(ledger.reserve("people", "ana", Epsilon("0.4"), "q", {"kind": "count"}))


def test_a_refusal_marks_nothing(ledger: Ledger) -> None:
    before = ledger.events()
    with pytest.raises(BudgetExhausted):
        ledger.reserve("people", "ana", Epsilon(2), "q", {}, reading=True)
    assert ledger.events() == before


def test_answers_are_found_by_question_and_newest_first(ledger: Ledger) -> None:
    assert ledger.answer("q") is None
    spend(ledger, "0.1", "q", answer='{"values": [1]}')
    second = spend(ledger, "0.1", "q", answer='{"values": [2]}')
    reserve(ledger, "0.1", "q")
    ledger.lose(ledger.mark_reading(reserve(ledger, "0.1", "q")), "QueryFailed")
    found = ledger.answer("q")
    assert found is not None
    assert (found.charge, found.answer) == (second, '{"values": [2]}')
    assert ledger.answer("other") is None
    ledger.set_budget("others", Epsilon(1), "carla")
    assert len(ledger.answers()) == len(ledger.answers("people")) == 2
    assert ledger.answers("others") == []


def test_a_charge_keeps_what_it_was_for(ledger: Ledger) -> None:
    detail = {"mechanism": "ordered", "α": 50, "nested": [1, {"x": None}], "😀": "o'brien\n"}
    charge = ledger.reserve("people", "ana", Epsilon("0.118"), "digest", detail)
    lost = ledger.lose(ledger.mark_reading(charge), "QueryFailed")
    assert ledger.charge(charge.id) == lost
    assert (lost.detail, lost.amount, lost.reason) == (detail, Epsilon("0.118"), "QueryFailed")
    with pytest.raises(WorkspaceError, match="no charge number 999"):
        ledger.charge(999)


def test_a_clock_that_goes_back_breaks_nothing(path: Path) -> None:
    moments = iter(datetime(2030, 1, 1, tzinfo=UTC) - timedelta(days=k) for k in range(100))
    ledger = Ledger.open(path, clock=lambda: next(moments))
    ledger.set_budget("people", Epsilon(1), "carla")
    spend(ledger, "0.1", "q", answer="first")
    spend(ledger, "0.1", "q", answer="second")
    found = ledger.answer("q")
    assert found is not None and found.answer == "second"
    assert ledger.verify() == []
    ledger.close()


# --- many at once -----------------------------------------------------------------------------


def test_threads_never_overspend(ledger: Ledger) -> None:
    def attempt(number: int) -> bool:
        try:
            charge = reserve(ledger, "0.03", str(number), user=f"user {number % 5}")
        except BudgetExhausted:
            return False
        ledger.settle(ledger.mark_reading(charge), "{}")
        return True

    with ThreadPoolExecutor(16) as pool:
        granted = sum(pool.map(attempt, range(64)))
    assert granted == Epsilon(1) // Epsilon("0.03") == 33
    assert ledger.budget("people").spent == Epsilon("0.99")
    assert ledger.verify() == []


def _attempts(path: Path, attempts: int) -> int:
    ledger = Ledger.open(path)
    granted = 0
    for _ in range(attempts):
        try:
            reserve(ledger, "0.02")
            granted += 1
        except BudgetExhausted:
            pass
    ledger.close()
    return granted


def test_processes_never_overspend(ledger: Ledger, path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        granted = pool.starmap(_attempts, [(path, 25)] * 4)
    assert sum(granted) == 50
    assert ledger.budget("people").remaining == Epsilon(0)
    assert ledger.verify() == []


def test_a_new_file_can_be_opened_by_many_at_once(path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        ledgers = list(pool.map(lambda _: Ledger.open(path), range(8)))
    for number, opened in enumerate(ledgers):
        opened.set_budget(f"set {number}", Epsilon(1), "carla")
    assert ledgers[0].verify() == []
    for opened in ledgers:
        opened.close()


def _forks(path: Path) -> int:
    """How a child of this process ended that went on with the ledger: this process has no thread beside."""
    ledger = Ledger.open(path)

    def connection() -> object:
        with ledger.store.reading() as opened:
            return opened.connection.driver_connection

    parents = connection()
    assert connection() is parents  # it would be taken from the pool
    child = os.fork()
    if child == 0:
        try:
            assert connection() is not parents
            spend(ledger, "0.1", "from the child")
            os._exit(0)
        except BaseException:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_forked_process_goes_on_with_connections_of_its_own(ledger: Ledger, path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply_async(_forks, (path,)).get(60) == 0
    assert ledger.answer("from the child") is not None
    assert ledger.verify() == []


# --- crashes ----------------------------------------------------------------------------------


def _die_after(path: Path, steps: str, options: str = "") -> None:
    """Another process reserves 0.4, takes the steps, and is killed without warning."""
    script = f"""
        import os, signal
        from blowfishdb.adapters.store.ledger import Ledger
        from blowfishdb.core.budget import Epsilon
        ledger = Ledger.open({str(path)!r})
        charge = ledger.reserve("people", "ana", Epsilon("0.4"), "q", {{}}{options})
        {steps}
        os.kill(os.getpid(), signal.SIGKILL)
    """
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=False)
    assert ended.returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("options", "steps", "left", "after", "spent"),
    [
        ("", "", State.RESERVED, State.VOID, "0"),
        ("", "ledger.mark_reading(charge)", State.READING, State.LOST, "0.4"),
        (", reading=True", "", State.READING, State.LOST, "0.4"),
        (", reading=True", "ledger.settle(charge, '[7]')", State.SETTLED, State.SETTLED, "0.4"),
    ],
)
def test_killed_between_two_steps(
    ledger: Ledger, path: Path, options: str, steps: str, left: State, after: State, spent: str
) -> None:
    _die_after(path, steps, options)
    (charge,) = ledger.charges()
    assert charge.state is left
    assert ledger.budget("people").remaining == Epsilon("0.6")
    assert ledger.verify() == []
    with pytest.raises(BudgetExhausted):
        reserve(ledger, "0.7")
    ledger.recover()
    assert ledger.charge(charge.id).state is after
    assert ledger.budget("people").spent == Epsilon(spent)
    assert ledger.budget("people").held == Epsilon(0)
    assert ledger.verify() == []


@pytest.mark.parametrize("options", ["", ", reading=True"])
def test_killed_inside_a_transaction(ledger: Ledger, path: Path, options: str) -> None:
    _die_after(
        path,
        "from blowfishdb.adapters.store import charges as module\n"
        "        module.book = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"        ledger.reserve('people', 'ana', Epsilon('0.5'), 'q2', {{}}{options})",
    )
    assert [charge.amount for charge in ledger.charges()] == [Epsilon("0.4")]
    assert ledger.budget("people").remaining == Epsilon("0.6")
    assert ledger.verify() == []


def test_recovery_spares_own_and_recent_charges_and_stops_those_still_alive(path: Path) -> None:
    now = [datetime(2030, 1, 1, tzinfo=UTC)]
    mine, other = (Ledger.open(path, clock=lambda: now[0]) for _ in range(2))
    mine.set_budget("people", Epsilon(1), "carla")
    own, old = reserve(mine, "0.1"), reserve(other, "0.1")
    reading = other.mark_reading(reserve(other, "0.1"))
    now[0] += timedelta(hours=1)
    recent = reserve(other, "0.1")
    assert {charge.id for charge in mine.recover(timedelta(minutes=30))} == {old.id, reading.id}
    assert [mine.charge(c.id).state for c in (own, recent)] == [State.RESERVED, State.RESERVED]
    with pytest.raises(WorkspaceError):  # it was alive after all: it must not read for nothing
        other.mark_reading(old)
    with pytest.raises(WorkspaceError):
        other.settle(reading, "{}")
    assert mine.verify() == []
    mine.close()
    other.close()


# --- files that are no ledger -----------------------------------------------------------------


def test_files_that_cannot_be_a_ledger(tmp_path: Path) -> None:
    garbage = tmp_path / "garbage.db"
    garbage.write_bytes(os.urandom(8192))
    text = tmp_path / "text.db"
    text.write_text("name,age\nann,33\n" * 100)
    foreign = tmp_path / "foreign.db"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE songs (title TEXT)")
    for bad, words in (
        (garbage, "not a SQLite database"),
        (text, "not a SQLite database"),
        (foreign, "another program"),
        (tmp_path, "is a folder"),
        (tmp_path / "no" / "such" / "folder.db", "no folder"),
        (Path("/proc/ledger.db"), "cannot be opened"),
    ):
        with pytest.raises(WorkspaceError, match=words):
            Ledger.open(bad)
    assert foreign.stat().st_size > 0
    for url in ("nonsense://x", "postgresql+nodriver://u:secret@h/x"):
        with pytest.raises(WorkspaceError) as caught:
            Ledger.open(url)
        assert "secret" not in str(caught.value)


def test_a_damaged_file_is_reported_as_such(path: Path) -> None:
    ledger = Ledger.open(path)
    ledger.set_budget("people", Epsilon(1), "carla")
    for _ in range(20):
        spend(ledger, "0.01")
    ledger.close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(path.read_bytes())
    content[4096:] = os.urandom(len(content) - 4096)
    path.write_bytes(bytes(content))
    with pytest.raises(WorkspaceError):
        opened = Ledger.open(path)
        try:
            opened.verify()
        finally:
            opened.close()


def test_settings_that_make_commits_durable(ledger: Ledger) -> None:
    with ledger.store.reading() as connection:
        found = [
            connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys")
        ]
    assert found == ["wal", 2, 1]
