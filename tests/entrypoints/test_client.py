"""`bf.connect` beside `bf.open`: the same questions, the same answers, the same refusals."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, fields
from datetime import date, timedelta
from pathlib import Path

import duckdb
import httpx
import numpy as np
import pytest

import blowfishdb as bf
from blowfishdb.adapters.tokens import Tokens
from blowfishdb.core import errors
from blowfishdb.core.policy import codec
from blowfishdb.entrypoints.demo import serving
from blowfishdb.entrypoints.server import problems
from blowfishdb.entrypoints.server.app import create_app
from blowfishdb.messages.answers import Answer
from blowfishdb.messages.quotes import Quote
from blowfishdb.workspace.asking import Asking
from blowfishdb.workspace.embedded import Workspace
from blowfishdb.workspace.gateway import Gateway
from blowfishdb.workspace.remote import Remote
from blowfishdb.workspace.wire import error_of
from tests.entrypoints.server import CHEAP, DOMAIN, ROLES, ROWS, SETTINGS, make_workspace

VISITS = bf.Domain(day=bf.Date("2024-01-01", "2024-12-31"), paid=bf.Boolean())


@dataclass(frozen=True)
class Place:
    """One workspace, seen by everybody in one way; ``inside`` is the workspace itself."""

    inside: Workspace
    by_role: dict[str, Gateway]
    address: str = ""

    @property
    def curator(self) -> Gateway:
        return self.by_role["curator"]

    @property
    def analyst(self) -> Gateway:
        return self.by_role["analyst"]

    @property
    def auditor(self) -> Gateway:
        return self.by_role["auditor"]

    def token(self, role: str = "analyst") -> str:
        return Tokens(self.inside.store).issue(role, purpose="api", lifetime=timedelta(hours=1))[0]


@pytest.fixture(scope="module", params=["open", "connect"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A workspace with plenty of budget: in its file, or behind a real server."""
    folder = tmp_path_factory.mktemp(request.param)
    path = make_workspace(folder, budget="1000")
    with duckdb.connect(str(folder / "visits.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE visits AS SELECT DATE '2024-01-01' + (i % 366)::INT AS day, i % 3 = 0 AS paid "
            "FROM range(1000) t(i)"
        )
    with ExitStack() as stack:
        if request.param == "open":
            inside = stack.enter_context(Workspace(path))
            found = Place(inside, {role: inside.as_user(role) for role in ROLES})
        else:
            found = stack.enter_context(served(path))
        found.curator.add_dataset("visits", folder / "visits.duckdb", domain=VISITS, table="visits")
        found.curator["visits"].budget.set(100)
        yield found


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A workspace behind a server, for what only a connection can do."""
    with served(make_workspace(tmp_path_factory.mktemp("remote"), budget="1000")) as found:
        yield found


class served(ExitStack):  # noqa: N801 (used as a function)
    """A workspace behind a real server, and a client for each role."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def __enter__(self) -> Place:  # type: ignore[override]
        super().__enter__()
        app = create_app(self._path, settings=SETTINGS, hasher=CHEAP)
        address = self.enter_context(serving(app))
        clients: dict[str, Gateway] = {}
        found = Place(app.state.server.workspace, clients, address)
        for role in ROLES:
            clients[role] = self.enter_context(bf.connect(address, token=found.token(role)))
        return found


# --- the same on both sides -----------------------------------------------------------------------

QUESTIONS: dict[str, Callable[[Gateway], Asking]] = {
    "histogram": lambda db: db["salaries"]["age"].histogram(width=10).accurate_to(50),
    "each by itself": lambda db: db["salaries"]["age"].histogram(width=10).accurate_to(20, each=True),
    "edges": lambda db: db["salaries"]["age"].histogram(edges=[18, 30, 60]).spend("0.5"),
    "groups": lambda db: (
        db["salaries"]["region"].histogram(groups={"coast": ["north", "west"], "land": ["south", "east"]})
    ).accurate_to(50),
    "cumulative": lambda db: db["salaries"]["salary"].cumulative(bins=20).accurate_to(50, confidence=0.99),
    "ranges": lambda db: db["salaries"]["salary"].ranges([(0, 9_999), (20_000, 39_999)]).accurate_to(60),
    "quantiles": lambda db: db["salaries"]["salary"].quantiles([0.25, 0.5], width=1_000).accurate_to(80),
    "median": lambda db: db["salaries"]["age"].median().accurate_to(90),
    "sum": lambda db: db["salaries"]["age"].sum().accurate_to(5_000),
    "mean": lambda db: db["salaries"]["age"].mean().accurate_to(0.5),
    "top": lambda db: db["salaries"]["age"].top(3, width=10).accurate_to(50),
    "parts": lambda db: db["salaries"]["age", "salary"].partition(4, bins=6).accurate_to(200),
    "above": lambda db: db["salaries"]["age"].above(300, width=10).accurate_to(60),
    "count": lambda db: db["salaries"].count().spend(1),
    "some rows": lambda db: (
        db["salaries"]
        .where((bf.col("region") == "north") & (bf.col("age") >= 30))["salary"]
        .cumulative(bins=5)
    ).accurate_to(70),
    "two columns": lambda db: db["salaries"]["age", "region"].histogram().accurate_to(200),
    "a mechanism": lambda db: db["salaries"]["age"].histogram(width=5).using("laplace").accurate_to(50),
    "no promise": lambda db: db["salaries"]["salary"].cumulative(bins=100).using("adaptive").spend("0.3"),
    "no promise on two columns": lambda db: (
        db["salaries"]["age", "region"].histogram().using("dawa-transformed").spend("0.3")
    ),
    "in short": lambda db: (
        db["salaries"].question("histogram(age, width=10) where region in ('north', 'east')").accurate_to(50)
    ),
    "SQL": lambda db: db["salaries"].sql(
        "SELECT region, COUNT(*) FROM salaries GROUP BY region WITH ERROR 40"
    ),
    "means in groups": lambda db: (
        db["salaries"].by("region").by("age", width=20).aggregate(("mean", "salary"), "count").spend("0.5")
    ),
    "means of large groups": lambda db: (
        db["salaries"]
        .where(bf.col("age") >= 30)
        .by("region")
        .mean("salary", group_size=100)
        .accurate_to(2_000)
    ),
    "a spread": lambda db: db["salaries"]["salary"].std().spend("0.4"),
    "sums in groups": lambda db: db["salaries"].sql(
        "SELECT region, SUM(age) FROM salaries GROUP BY region WITH ERROR 4000"
    ),
    "weeks": lambda db: db["visits"].question("histogram(day, width=61 days)").accurate_to(50),
    "dates": lambda db: db["visits"]["day"].ranges([(date(2024, 1, 1), date(2024, 3, 31))]).accurate_to(30),
    "after a day": lambda db: (
        db["visits"].where(bf.col("day") >= date(2024, 7, 1))["paid"].histogram().accurate_to(40)
    ),
}


LONGER = (
    "each by itself",
    "edges",
    "groups",
    "quantiles",
    "sum",
    "above",
    "two columns",
    "no promise on two columns",
    "SQL",
    "means of large groups",
    "a spread",
    "sums in groups",
    "weeks",
    "dates",
)
"""These differ from one of the others in what the form says, not in how it travels."""


@pytest.mark.parametrize(
    "question",
    [
        pytest.param(question, id=name, marks=pytest.mark.thorough if name in LONGER else ())
        for name, question in QUESTIONS.items()
    ],
)
def test_a_question_is_priced_answered_and_owned(place: Place, question: Callable[[Gateway], Asking]) -> None:
    for name in ("salaries", "visits"):
        place.inside.refresh(name)  # no question is answered from those before it
    here, there = question(place.analyst), question(place.inside.as_user("analyst"))
    assert here.to_plain() == there.to_plain()
    if here.form.kind == "mean":
        assert here.counting().ask(max_cost=0).exact.all()  # a mean has a price once its rows are counted
    quote = here.quote()
    assert isinstance(quote, Quote) and quote == there.quote()
    before = place.analyst.left(here.dataset)
    answer = here.ask(max_cost=quote.epsilon)
    assert before - place.analyst.left(here.dataset) == answer.receipt.cost == quote.epsilon
    stored = there.ask()
    assert not stored.receipt.cost and there.quote().owned
    same(answer, stored)
    same(place.curator.answer(answer.number), stored)


def same(one: Answer, other: Answer) -> None:
    """Equal, except for what depends on who looks and when: the price of this look, and the SQL."""
    for field in fields(Answer):
        mine, theirs = getattr(one, field.name), getattr(other, field.name)
        if isinstance(mine, np.ndarray):
            np.testing.assert_array_equal(mine, theirs)
        elif field.name != "receipt":
            assert mine == theirs, field.name
    mine, theirs = one.receipt, other.receipt
    assert (mine.charge, mine.epsilon, mine.policy, mine.settled) == (
        theirs.charge,
        theirs.epsilon,
        theirs.policy,
        theirs.settled,
    )


def drawn(policy: bf.Policy) -> object:
    return codec.plain(policy.graph)


def test_datasets_facts_and_guarantee(place: Place) -> None:
    db = place.analyst
    assert db.datasets() == ["salaries", "visits"] and "visits" in db and "nothing" not in db
    facts, known = db.facts("salaries"), place.inside.facts("salaries")
    assert facts.domain == known.domain == DOMAIN and drawn(facts.policy) == drawn(known.policy)
    assert (facts.policy_version, facts.rows_per_person) == (2, 1) and facts.snapshot == known.snapshot
    assert db["visits"].schema == VISITS
    assert db["salaries"].guarantee() == place.inside.guarantee("salaries")


def test_explain(place: Place) -> None:
    asking = QUESTIONS["cumulative"](place.analyst)
    shown = place.analyst["salaries"].explain(asking)
    inside = QUESTIONS["cumulative"](place.inside.as_user("analyst"))
    assert shown == place.inside.explain(inside.request()) and shown.sensitivity == "1"


def test_tradeoff(place: Place) -> None:
    asking = QUESTIONS["cumulative"](place.curator)
    seen: list[tuple[int, int]] = []
    found = place.curator["salaries"].tradeoff(
        asking, thresholds=[1_000, 20_000], progress=lambda done, of: seen.append((done, of))
    )
    inside = place.inside.as_user("curator")["salaries"]
    assert found == inside.tradeoff(QUESTIONS["cumulative"](inside.gateway), thresholds=[1_000, 20_000])
    assert [point.theta for point in found.points] == [1_000, 20_000] and seen[-1] == (2, 2)
    policies = {"plain": bf.Policy.differential_privacy(DOMAIN)}
    plain = place.curator["salaries"].tradeoff(asking, policies, at_epsilon="0.5")
    assert plain.points[0].policy == "plain" and plain.fixed_epsilon == bf.Epsilon("0.5")


def test_preview(place: Place) -> None:
    db = place.curator
    asking = db["salaries"]["region"].histogram().accurate_to(50)
    shown = db["salaries"].preview(asking)
    assert shown.truth.values.tolist() == [ROWS / 4] * 4 and shown.truth.exact.all() and not shown.stand_in
    assert shown.noisy.number == 0 and shown.noisy.labels == shown.truth.labels
    everything = bf.Policy.differential_privacy(DOMAIN)
    made_up = db["salaries"].preview(asking, policy=everything, stand_in=True)
    inside = place.inside.preview(asking.request(), policy=everything, stand_in=True)
    assert made_up.stand_in and made_up.truth.values.tolist() == inside.truth.values.tolist()


def test_budget_and_grants(place: Place) -> None:
    budget = place.curator["visits"].budget
    budget.grant("analyst", "60")
    budget.set("99.5")
    assert budget.status == place.inside.budget("visits") and budget.status.total == bf.Epsilon("99.5")
    assert budget.grants == place.inside.grants("visits")
    assert {given.user: given.granted for given in budget.grants}["analyst"] == bf.Epsilon(60)
    assert place.analyst.left("visits") == place.inside.as_user("analyst").left("visits")


def test_several_questions_as_one(place: Place) -> None:
    db = place.analyst
    two = [
        db["salaries"]["region"].histogram().accurate_to(33),
        db["salaries"].where(bf.col("region") == "west").count().accurate_to(33),
    ]
    batch = db.plan(*two)
    quotes, most = batch.quotes(), batch.quote()
    assert quotes.epsilon == most and len(quotes.parts) == 2 and "Together this costs" in str(quotes)
    first, second = batch.ask(max_cost=most)
    assert first.receipt.cost + second.receipt.cost <= most and not second.receipt.cost
    assert len(first.values) == 4 and len(second.values) == 1


def test_answers_and_events(place: Place) -> None:
    place.analyst["salaries"]["age"].histogram(width=8).accurate_to(50).ask()
    answers, inside = place.curator.answers("salaries"), place.inside.answers("salaries")
    assert [answer.number for answer in answers] == [answer.number for answer in inside]
    same(answers[-1], inside[-1])
    assert answers[-1].receipt.user == "analyst" and len(place.curator.answers()) >= len(answers)
    assert place.auditor.events("salaries") == place.inside.events("salaries")
    assert place.auditor.events() == place.inside.events()
    assert place.auditor.verify() == []


@pytest.mark.parametrize("limit", [None, 1, 3, 10**6])
def test_pages_are_the_same_on_both_sides(place: Place, limit: int | None) -> None:
    for bins in (4, 8, 10):
        place.analyst["salaries"]["age"].histogram(bins=bins).accurate_to(50 + bins).ask()
    numbers = [answer.number for answer in place.inside.answers()]
    happened = [event.seq for event in place.inside.events()]
    for page in ({}, {"before": numbers[-1]}, {"after": numbers[0]}, {"after": 0}):
        here = place.inside.answers("salaries", limit=limit, **page)
        there = place.analyst.answers("salaries", limit=limit, **page)
        assert [answer.number for answer in there] == [answer.number for answer in here]
    for page in ({}, {"before": happened[-2]}, {"after": happened[1]}, {"after": 0}):
        for kinds in ((), ("settled", "policy")):
            there = place.auditor.events("salaries", kinds=kinds, limit=limit, **page)
            assert there == place.inside.events("salaries", kinds=kinds, limit=limit, **page)
    assert [answer.number for answer in place.analyst.newest()] == numbers[::-1]


def test_a_policy_is_drafted_proposed_and_published(place: Place) -> None:
    db, before = place.curator, place.curator.facts("visits").policy_version
    weeks = db["visits"].hiding_within("day", timedelta(days=7))
    db.save_draft("visits", weeks)
    assert drawn(db.draft("visits")) == drawn(weeks) != drawn(db["visits"].policy)
    change = db["visits"].propose(weeks)
    assert change == place.inside.propose("visits", weeks) and change.loosens
    with pytest.raises(errors.PolicyConflict, match="other columns"):
        db["visits"].propose(db["salaries"].policy)
    place.analyst["visits"]["day"].histogram(width=timedelta(days=30)).accurate_to(90).ask()
    with pytest.raises(errors.PolicyConflict) as refused:
        db["visits"].publish(weeks)
    assert not refused.value.charged and refused.value.fixes
    db["visits"].publish(weeks, confirm=True)
    assert drawn(db["visits"].policy) == drawn(weeks) and db.facts("visits").policy_version == before + 1


def test_a_promise_is_kept_and_withdrawn(place: Place) -> None:
    db, inside = place.curator["visits"], place.inside["visits"]
    place.analyst["visits"]["day"].histogram(width=timedelta(days=30)).spend("0.01").ask()
    days = db.hiding_within("day", timedelta(days=1))
    assert db.past(days) == inside.past(days)
    db.publish(days, confirm=True)
    kept, same = db.kept[-1], inside.kept[-1]
    assert (kept.version, kept.remaining, kept.to_plain()) == (same.version, same.remaining, same.to_plain())
    for promise in db.kept:
        db.withdraw(promise.version)
    assert db.kept == inside.kept == []


def test_a_dataset_is_declared_anew_and_refreshed(place: Place, tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "few.duckdb")) as connection:
        connection.execute("CREATE TABLE few AS SELECT i::INT AS n, i % 7 AS who FROM range(50) t(i)")
    few = place.curator.add_dataset(
        "a few/of?them" if not place.address else "a few of them",
        tmp_path / "few.duckdb",
        domain=bf.Domain(n=bf.Integer(0, 9)),
        table="few",
        person="who",
        rows_per_person=3,
    )
    assert few.declare(n=bf.Integer(0, 99)).schema == bf.Domain(n=bf.Integer(0, 99))
    assert few.refresh().gateway.facts(few.name).snapshot == 2
    assert place.inside.facts(few.name).rows_per_person == 3


REFUSALS: dict[str, tuple[type[errors.BlowfishError], Callable[[Gateway], object]]] = {
    "no such dataset": (errors.UnknownDataset, lambda db: db["nothing"]),
    "no such column": (errors.UnknownColumn, lambda db: db["salaries"]["nothing"]),
    "no such answer": (errors.NotFound, lambda db: db.answer(10**9)),
    "no accuracy": (errors.InvalidInput, lambda db: db["salaries"]["age"].histogram().quote()),
    "too dear": (
        errors.MaxCostExceeded,
        lambda db: db["salaries"]["age"].histogram(bins=7).accurate_to(50).ask(max_cost="0.001"),
    ),
    "too much": (
        errors.BudgetExhausted,
        lambda db: db["salaries"]["age"].histogram(bins=9).spend(10**6).ask(),
    ),
    "too close": (
        errors.Refused,
        lambda db: db["salaries"]["age"].histogram(bins=9).accurate_to(1e-12).using("hierarchical").quote(),
    ),
    "no such mechanism": (
        errors.InvalidInput,
        lambda db: db["salaries"]["age"].histogram().accurate_to(50).using("magic").quote(),
    ),
    "a mean of hidden rows": (
        errors.NoGuarantee,
        lambda db: db["salaries"].where(bf.col("age") > 30)["salary"].mean().accurate_to(50).quote(),
    ),
    "twice the same name": (
        errors.InvalidInput,
        lambda db: db.add_dataset("salaries", "salaries.duckdb", domain=DOMAIN),
    ),
    "more than there is": (errors.Refused, lambda db: db["salaries"].budget.grant("analyst", 10**5)),
}


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
def test_refusals_are_the_same_errors(
    place: Place, refusal: tuple[type[errors.BlowfishError], Callable[[Gateway], object]]
) -> None:
    kind, act = refusal
    spent = place.inside.budget("salaries").spent
    with pytest.raises(kind) as here:
        act(place.curator)
    with pytest.raises(kind) as there:
        act(place.inside.as_user("curator"))
    assert type(here.value) is type(there.value)
    assert (here.value.message, here.value.fixes) == (there.value.message, there.value.fixes)
    assert here.value.charged is False and place.inside.budget("salaries").spent == spent
    if isinstance(here.value, errors.BudgetExhausted) and isinstance(there.value, errors.BudgetExhausted):
        assert (here.value.needed, here.value.left) == (there.value.needed, there.value.left)


def everything_that_can_go_wrong() -> list[errors.BlowfishError]:
    found: list[errors.BlowfishError] = []
    for kind in vars(errors).values():
        if not (isinstance(kind, type) and issubclass(kind, errors.BlowfishError)):
            continue
        if kind is errors.BudgetExhausted:
            found.append(kind("Words.", needed="0.2", left="0.1", fixes=("this", "that")))
        elif kind is errors.TooManyAttempts:
            found.append(kind("Words.", wait=17, fixes=("this", "that")))
        else:
            found.append(kind("Words.", fixes=("this", "that")))
    return found


@pytest.mark.parametrize("error", everything_that_can_go_wrong(), ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("charged", [True, False])
def test_every_error_survives_the_wire(error: errors.BlowfishError, charged: bool) -> None:
    error.charged = charged
    response = problems.problem_of(error, shown_places=True, reference="r").response()
    back = error_of(httpx.Response(200, content=bytes(response.body)).json(), response.headers)
    assert back.charged is charged
    if response.status_code == 500:  # our mistake: what it was stays in the server's log
        assert type(back) is errors.SourceError and "reference r" in str(back)
        return
    assert type(back) is type(error) and (back.message, back.fixes) == (error.message, error.fixes)
    for name in ("needed", "left", "wait"):
        assert getattr(back, name, None) == getattr(error, name, None)


# --- what only a connection can do ----------------------------------------------------------------


def test_the_file_can_be_used_beside_the_server(remote: Place) -> None:
    answer = remote.analyst["salaries"]["age"].histogram(width=20).accurate_to(50).ask()
    assert answer.to_arrow().column_names == ["age", "value", "low", "high", "exact"]
    assert answer.plot().to_dict()["title"]
    assert "as 'analyst'" in repr(remote.analyst) and "bf_" not in repr(remote.analyst)


def test_roles_hold(remote: Place) -> None:
    asking = remote.analyst["salaries"]["age"].histogram(width=20).accurate_to(50)
    for forbidden in (
        lambda: remote.analyst["salaries"].preview(asking),
        lambda: remote.analyst["salaries"].budget.set(2),
        remote.analyst.verify,
        lambda: remote.auditor["salaries"]["age"].histogram(width=20).accurate_to(50).ask(),
    ):
        with pytest.raises(errors.NotAllowed):
            forbidden()


def test_others_names_are_not_shown_to_analysts(remote: Place) -> None:
    number = remote.curator["salaries"]["age"].histogram(width=16).accurate_to(50).ask().number
    assert remote.analyst.answer(number).receipt.user == ""
    assert remote.auditor.answer(number).receipt.user == "curator"


def test_a_wrong_token_or_address(remote: Place) -> None:
    with pytest.raises(errors.NotSignedIn):
        bf.connect(remote.address, token="bf_" + "x" * 43)
    for token in ("", "ü", "two\nlines"):
        with pytest.raises(errors.InvalidInput, match="not a token"):
            bf.connect(remote.address, token=token)
    with pytest.raises(errors.InvalidInput, match="not an address"):
        bf.connect("http://127.0.0.1:port", token="bf_x")
    with pytest.raises(errors.SourceError, match="did not answer"):
        bf.connect("http://127.0.0.1:1", token="bf_x")
    with pytest.raises(errors.SourceError, match="did not answer"):
        bf.connect("127.0.0.1", token="bf_x")


def test_something_else_answers() -> None:
    pages = httpx.MockTransport(lambda _: httpx.Response(200, text="<html>Welcome</html>"))
    with pytest.raises(errors.SourceError, match="not a BlowfishDB server"):
        Remote("http://example.test", "bf_x", transport=pages)


def test_a_table_in_this_process_stays_here(remote: Place) -> None:
    with pytest.raises(errors.InvalidInput, match="where it is"):
        remote.curator.add_dataset("mine", {"n": [1]}, domain=bf.Domain(n=bf.Integer(0, 9)))
    with pytest.raises(errors.InvalidInput, match="age, region"):
        remote.curator.redeclare("salaries", bf.Domain(salary=bf.Integer(0, 9)))


class Dropping(httpx.BaseTransport):
    """The real connection, which breaks after the server has answered, ``times`` times."""

    def __init__(self, times: int) -> None:
        self.left, self.keys = times, list[str]()
        self._real = httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = self._real.handle_request(request)
        if request.method != "POST" or not request.url.path.endswith(("/answers", "/batches")):
            return response
        self.keys.append(request.headers["Idempotency-Key"])
        if self.left:
            self.left -= 1
            response.read()
            response.close()
            raise httpx.ReadError("lost", request=request)
        return response

    def close(self) -> None:
        self._real.close()


class Listening(httpx.BaseTransport):
    """The real connection, and what went over it."""

    def __init__(self) -> None:
        self.sent = list[tuple[str, str]]()
        self._real = httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.sent.append((request.method, request.url.path.rpartition("/")[2]))
        return self._real.handle_request(request)

    def close(self) -> None:
        self._real.close()


def test_building_a_question_asks_only_what_the_columns_are_and_a_quote_is_one_request(remote: Place) -> None:
    listening = Listening()
    with Remote(remote.address, remote.token(), transport=listening) as db:
        salaries = db["salaries"]
        listening.sent.clear()
        asking = salaries["age"].mean().accurate_to(0.5)
        assert set(listening.sent) <= {("GET", "salaries")}, listening.sent
        listening.sent.clear()
        with contextlib.suppress(errors.NotCounted):
            asking.quote()
        assert listening.sent == [("POST", "quotes")]


def test_a_lost_answer_is_fetched_again_and_charged_once(remote: Place) -> None:
    dropping = Dropping(2)
    with Remote(remote.address, remote.token(), transport=dropping) as db:
        asking = db["salaries"]["age"].histogram(width=13).accurate_to(50)
        price, before = asking.quote().epsilon, remote.inside.budget("salaries").spent
        answer = asking.ask()
    assert len(dropping.keys) == 3 and len(set(dropping.keys)) == 1
    assert remote.inside.budget("salaries").spent - before == price == answer.receipt.cost


def test_an_answer_that_stays_lost_may_have_been_charged(remote: Place) -> None:
    with Remote(remote.address, remote.token(), transport=Dropping(100)) as db:
        asking = db["salaries"]["age"].histogram(width=14).accurate_to(50)
        with pytest.raises(errors.SourceError, match="may have been charged") as lost:
            asking.ask()
    assert lost.value.charged and asking.request().terms == asking.terms
    again = remote.analyst["salaries"]["age"].histogram(width=14).accurate_to(50).ask()
    assert again.receipt.epsilon and not again.receipt.cost


class TwiceAtOnce(httpx.BaseTransport):
    """A connection that is lost at once, while the server goes on with what was sent."""

    def __init__(self) -> None:
        self.sent = 0
        self._real = httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if not request.url.path.endswith("/answers"):
            return self._real.handle_request(request)
        self.sent += 1
        if self.sent == 1:
            alone = httpx.Request(
                request.method, request.url, headers=request.headers, content=request.read()
            )
            threading.Thread(target=self._forgotten, args=(alone,)).start()
            raise httpx.ReadError("lost", request=request)
        return self._real.handle_request(request)

    def close(self) -> None:
        self._real.close()

    def _forgotten(self, request: httpx.Request) -> None:
        with httpx.HTTPTransport() as other:
            other.handle_request(request).read()


def test_what_is_still_being_answered_is_waited_for(remote: Place) -> None:
    with Remote(remote.address, remote.token(), transport=TwiceAtOnce()) as db:
        before = remote.inside.budget("salaries").spent
        answer = db["salaries"]["age"].histogram(width=11).accurate_to(50).ask()
    assert remote.inside.budget("salaries").spent - before == answer.receipt.epsilon
    assert answer.receipt.epsilon


def test_a_cancelled_question_is_not_sent(remote: Place) -> None:
    remote.inside.refresh("salaries")
    cancel = bf.Cancellation()
    cancel.cancel()
    before = remote.inside.budget("salaries").spent
    with pytest.raises(errors.Cancelled) as given_up:
        remote.analyst["salaries"]["age"].histogram(width=12).accurate_to(50).ask(cancel=cancel)
    assert not given_up.value.charged and remote.inside.budget("salaries").spent == before


def cancel_once_read(remote: Place, cancel: bf.Cancellation) -> None:
    """As soon as the ledger says that the rows are being read."""
    while not any(event.kind == "reading" for event in remote.inside.events("slow")):
        time.sleep(0.05)
    cancel.cancel()


def test_a_running_question_is_given_up(remote: Place, tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "slow.duckdb")) as connection:
        connection.execute("CREATE TABLE people AS SELECT (i % 10)::INT AS v FROM range(300_000) t(i)")
        connection.execute(
            "CREATE VIEW slow AS SELECT (a.v + b.v) % 10 AS v FROM people a JOIN people b ON true"
        )
    place = {"domain": bf.Domain(v=bf.Integer(0, 9, missing="drop")), "table": "slow", "rows_vary": False}
    slow = remote.curator.add_dataset("slow", tmp_path / "slow.duckdb", **place)
    cancel = bf.Cancellation()
    reader = threading.Thread(target=cancel_once_read, args=(remote, cancel))
    reader.start()
    with pytest.raises(errors.Cancelled) as given_up:
        slow["v"].histogram().spend("0.1").ask(cancel=cancel)
    reader.join()
    assert given_up.value.charged and slow.budget.status.spent == bf.Epsilon("0.1")
    assert not slow.budget.status.held and remote.auditor.verify() == []
