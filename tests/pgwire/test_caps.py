"""Caps of the door count what the ledger took from the account, to the last nano-ε, whatever that was for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest

import blowfishdb as bf
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import QueryFailed
from blowfishdb.service.tasks import CountTask
from tests.pgwire.door import Opened, opened

PEOPLE = bf.Domain(age=bf.Integer(0, 59), part=bf.Integer(0, 2))
FEW = "SELECT COUNT(*) AS n FROM people WHERE age < {} WITH ERROR {} MAX_COST 5"


@dataclass
class Asking:
    """A connection of the analyst, and what two books say that it has spent."""

    there: Opened
    line: psycopg.Connection[Any]
    heard: list[str] = field(default_factory=list)

    def counted(self) -> Epsilon:
        """What the caps say."""
        (said,) = self.line.execute("SHOW blowfishdb.spent_today").fetchone()  # type: ignore[misc]
        return Epsilon(said)

    def debited(self) -> Epsilon:
        """What the ledger says."""
        grants = self.there.web.workspace.grants("people")
        return sum((one.spent + one.held for one in grants if one.user == "analyst"), Epsilon(0))

    def cost(self, statement: str) -> tuple[Epsilon, Epsilon]:
        """What a statement cost the account, and what it cost under the policy of today."""
        budget = self.there.web.workspace.budget
        counted, debited, spent = self.counted(), self.debited(), budget("people").spent
        try:
            self.line.execute(statement)
        except psycopg.Error as error:
            self.heard.append(str(error))
        more = self.debited() - debited
        assert self.counted() - counted == more, statement
        return more, budget("people").spent - spent


@pytest.fixture
def asking(tmp_path: Any) -> Iterator[Asking]:
    """A copy of some rows; everything was hidden once, which is promised still, now ages within 2."""
    rows = tmp_path / "people.csv"
    rows.write_text("age,part\n" + "".join(f"{n * 7 % 60},{n % 3}\n" for n in range(600)))
    with opened(tmp_path, budget="8") as there:
        curator = there.web.workspace.as_user("curator")
        people = curator.add_dataset("people", rows, domain=PEOPLE)
        people.budget.set("9")
        people["part"].histogram().spend("0.1").ask()
        graphs = {"age": bf.graphs.Threshold(60, 2), "part": bf.graphs.Explicit(3, ())}
        people.publish(bf.Policy.by_column(PEOPLE, graphs), confirm=True)
        with there.connect() as line:
            made = Asking(there, line)
            line.add_notice_handler(lambda notice: made.heard.append(str(notice.message_detail)))
            yield made


def test_fresh_answers_finer_ones_and_stored_ones(asking: Asking) -> None:
    shared = "SELECT part, COUNT(*) FROM people GROUP BY part WITH ERROR {} MAX_COST 5"
    fresh = asking.cost(shared.format(9))
    assert fresh[0] > fresh[1] == Epsilon(0)  # free by today's policy alone
    assert "nothing" not in asking.heard[-1]
    first, finer = asking.cost(FEW.format(30, 20)), asking.cost(FEW.format(30, 7))
    refining = asking.there.web.workspace.answers("people")[-1].receipt
    assert asking.there.web.workspace._ledger.charges("people")[-1].refines is not None
    assert refining.debit == finer[0] >= finer[1] and first[0] and finer[0]
    assert asking.cost(FEW.format(30, 7)) == asking.cost(shared.format(9)) == (Epsilon(0), Epsilon(0))
    assert asking.cost("SELECT COUNT(*) FROM people") == (Epsilon(0), Epsilon(0))


@pytest.mark.parametrize("failure", [QueryFailed("The database went away."), RuntimeError("unforeseen")])
def test_what_was_lost_while_it_was_read(
    asking: Asking, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    def fails(*_: Any) -> None:
        raise failure

    with monkeypatch.context() as broken:
        broken.setattr(CountTask, "count", fails)
        lost = asking.cost("SELECT part, COUNT(*) FROM people GROUP BY part WITH ERROR 9 MAX_COST 5")
        assert lost[0] > lost[1] == Epsilon(0)
        if isinstance(failure, QueryFailed):
            assert "The budget was charged although no answer came back." in asking.heard[-1]
        assert asking.cost("SELECT COUNT(*) FROM people")[0] == Epsilon(0)
        assert "although no answer" not in asking.heard[-1]  # a free answer that is lost cost nobody anything


def test_the_same_rows_of_an_older_receipt(asking: Asking) -> None:
    """Receipts of older versions do not say what was debited; it is the largest of the costs they name."""
    asking.cost("SELECT part, COUNT(*) FROM people GROUP BY part WITH ERROR 9 MAX_COST 5")
    receipt = asking.there.web.workspace.answers("people")[-1].receipt
    older = {key: value for key, value in receipt.to_plain().items() if key != "debit"}
    assert type(receipt).from_plain(older) == receipt and receipt.debit
    again = type(receipt).from_plain({**older, "epsilon": "0.5", "cost": "0"})  # returned by a server
    assert not again.debit
