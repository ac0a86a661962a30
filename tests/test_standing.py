"""Whether a dataset takes questions: not before a policy is published, and not once it is closed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import blowfishdb as bf
from blowfishdb.core.errors import InvalidInput, NotOpen, PolicyConflict
from blowfishdb.messages.policies import Face
from blowfishdb.service.starting import common_questions
from blowfishdb.workspace.asking import Asking
from blowfishdb.workspace.datasets import Dataset
from blowfishdb.workspace.embedded import Workspace

DOMAIN = bf.Domain(age=bf.Integer(0, 99), region=bf.Category(["north", "south"]))


@pytest.fixture
def people(tmp_path: Path) -> Iterator[Dataset]:
    rows = tmp_path / "people.csv"
    rows.write_text(
        "age,region\n" + "".join(f"{i % 90},{'north' if i % 3 else 'south'}\n" for i in range(90))
    )
    with Workspace(tmp_path / "here.blowfish", user="curator") as workspace:
        yield workspace.add_dataset("people", rows, domain=DOMAIN, opened=False)


def _asked(people: Dataset) -> Asking:
    return people["region"].histogram().accurate_to(20)


def test_nobody_can_ask_before_a_policy_is_published(people: Dataset) -> None:
    ws = people.gateway
    assert isinstance(ws, Workspace)
    plan = ws.plan(_asked(people))
    for attempt in (
        _asked(people).quote,
        _asked(people).ask,
        plan.quote,
        plan.ask,
        lambda: people.explain(_asked(people)),
    ):
        with pytest.raises(NotOpen, match="not open yet"):
            attempt()
    with pytest.raises(PolicyConflict, match="opens when"):
        people.reopen()
    assert people.budget.status.used == bf.Epsilon(0) and not ws.answers()
    people.publish(people.policy)  # the one that hides everything will do
    assert people.standing == "open"
    assert _asked(people).ask().receipt.epsilon


def test_columns_that_are_declared_anew_close_it_again(people: Dataset) -> None:
    people.publish(people.policy)
    people.declare(age=bf.Integer(0, 120))
    assert people.standing == "not open yet"


def test_a_closed_dataset_keeps_its_answers(people: Dataset) -> None:
    people.publish(people.policy)
    answer = _asked(people).ask()
    people.close()
    with pytest.raises(NotOpen, match="closed"):
        _asked(people).ask()
    assert people.gateway.answer(answer.number).values.tolist() == answer.values.tolist()
    assert people.reopen().standing == "open"
    assert people.gateway.verify() == []


def test_a_dataset_of_python_is_open_from_the_first_moment(tmp_path: Path, people: Dataset) -> None:
    ws = people.gateway
    assert isinstance(ws, Workspace)
    (tmp_path / "ages.csv").write_text("age\n1\n2\n")
    other = ws.add_dataset("ages", tmp_path / "ages.csv", domain=bf.Domain(age=bf.Integer(0, 99)))
    assert other.standing == "open"
    assert other["age"].histogram().accurate_to(50).quote().epsilon


@pytest.mark.parametrize(
    "said",
    [{"title": "x" * 121}, {"contact": "one\ntwo"}, {"owner": "\x00"}, {"listed": "yes"}, {"title": 3}],
)
def test_a_face_is_a_few_words(said: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        Face(**said)  # type: ignore[arg-type]


def test_what_is_not_said_about_a_dataset_stays(people: Dataset) -> None:
    people.introduce(title="People", contact="data@example.org").introduce(owner="the office")
    assert people.face == Face("People", "", "the office", "data@example.org")
    assert people.gateway.facts("people").title == "People"


def test_starting_points_hide_from_much_to_little_and_cost_less(people: Dataset) -> None:
    ws = people.gateway
    assert isinstance(ws, Workspace)
    starts = ws.starts("people")
    assert [start.key for start in starts] == ["strict", "usual", "open"]
    assert starts[0].total > starts[1].total >= starts[2].total
    assert "within 10 of each other" in " ".join(starts[1].sentences)


def test_common_questions_are_cut_at_round_values() -> None:
    asked = common_questions(bf.Domain(age=bf.Integer(17, 96), region=bf.Category(["north", "south"])))
    edges = [question.columns[0].edges for question in asked if question.columns[0].name == "age"]
    by_fives, by_tens = (17, *range(20, 97, 5)), (17, *range(20, 97, 10))
    assert edges == [by_fives, by_fives, by_tens, by_tens]


@pytest.mark.parametrize(
    "name", ["upload-x/a.csv", "upload-0123456789abcdef/../../here.blowfish", "a.csv", ""]
)
def test_only_files_that_were_sent_are_found(people: Dataset, name: str) -> None:
    ws = people.gateway
    assert isinstance(ws, Workspace)
    with pytest.raises(bf.errors.BlowfishError):
        ws.sent(f"upload:{name}")


def test_a_file_that_is_sent_becomes_a_dataset_and_nothing_else_stays(people: Dataset) -> None:
    ws = people.gateway
    assert isinstance(ws, Workspace)
    domain = bf.Domain(age=bf.Integer(0, 99))
    first = ws.receive("C:\\rows\\ages of all.csv", [b"age\n1\n", b"2\n3\n"], most=100)
    made = ws.add_dataset("ages", first, domain=domain)
    assert made.source.copy is not None and made.source.copy.rows == 3 and made.source.location == ""
    with pytest.raises(bf.errors.SourceError):
        ws.sent(first)
    made.refresh(ws.receive("newer.csv", [b"age\n4\n"], most=100))
    assert made.source.copy is not None and made.source.copy.rows == 1
    with pytest.raises(InvalidInput, match="at most 3 bytes"):
        ws.receive("long.csv", [b"age\n1\n"], most=3)
