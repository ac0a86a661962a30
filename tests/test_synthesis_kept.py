"""Rows kept from public columns, end to end: confirmed by the curator, on record, never hidden ones."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import blowfishdb as bf
from blowfishdb.core.errors import InvalidInput, NotAllowed, NotFound, NotProven, PolicyConflict
from blowfishdb.messages.curator import KeptColumns, SyntheticComparison
from blowfishdb.messages.synthetic_table import SyntheticTable
from blowfishdb.workspace.embedded import Workspace

ROWS = 6_000
WARDS = ["eyes", "heart", "other"]
REGIONS = ["north", "south", "west"]
DOMAIN = bf.Domain(
    age=bf.Integer(18, 90),
    ward=bf.Category(WARDS, missing="clamp", outside="clamp"),
    region=bf.Category(REGIONS),
    ill=bf.Boolean(),
    pay=bf.Integer(0, 99),
)
SHOWN = {name: bf.graphs.Explicit(DOMAIN[name].size, ()) for name in ("age", "ward", "region")}
POLICY = bf.Policy.by_column(DOMAIN, {**SHOWN, "pay": bf.graphs.Threshold(100, 10)})


def people(hidden: int = 1) -> pd.DataFrame:
    """The same ages, wards and regions, whatever is hidden; rows come in the order of what is hidden."""
    stream, other = np.random.default_rng(1), np.random.default_rng(hidden)
    age = stream.integers(18, 91, ROWS)
    ward, region = stream.choice(WARDS, ROWS), stream.choice(REGIONS, ROWS)
    ill = np.where(ward == "heart", other.random(ROWS) < 0.98, other.random(ROWS) < 0.3)
    pay = np.clip(age + other.integers(-10, 10, ROWS), 0, 99)
    table = pd.DataFrame({"age": age, "ward": ward, "region": region, "ill": ill, "pay": pay})
    return table.sort_values(["ill", "pay"])


def opened(path: Path, table: pd.DataFrame) -> Workspace:
    ws = bf.open(path, user="ada")
    ws.add_dataset("people", table, domain=DOMAIN).publish(POLICY)
    ws["people"].budget.set(10)
    return ws


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kept")


@pytest.fixture(scope="module")
def ws(folder: Path) -> Iterator[Workspace]:
    with opened(folder / "w.blowfish", people()) as made:
        yield made


@pytest.fixture(scope="module")
def told(ws: Workspace) -> KeptColumns:
    """What the curator was told before they confirmed, with everything that must fail until then."""
    dataset = ws["people"]
    wanted = dataset.synthesize("1", columns=["age", "ward", "ill", "pay"], keep=["ward", "age"])
    before = len(ws.events())
    with pytest.raises(NotAllowed):
        wanted.ask()
    assert not [event for event in ws.events()[before:] if event.amount]
    told = dataset.keep_rows(["ward", "age"])
    assert ws.events()[-1].kind == "preview" and dataset.may_keep == ()
    with pytest.raises(NotAllowed):
        wanted.quote()
    assert dataset.keep_rows(["ward", "age"], confirm=True).sentences[-1] == "Confirmed."
    return told


@pytest.fixture(scope="module")
def table(ws: Workspace, told: KeptColumns) -> SyntheticTable:
    return made(ws)


def made(ws: Workspace) -> SyntheticTable:
    columns = ["age", "ward", "ill", "pay"]
    return ws["people"].synthesize("1", columns=columns, keep=["age", "ward"]).ask(max_cost=1)


def test_the_curator_is_told_what_it_means(told: KeptColumns) -> None:
    assert told.columns == ("age", "ward") and not told.confirmed
    alone = people().groupby(["age", "ward"]).size()
    assert (told.alone, told.rows) == (int((alone == 1).sum()), ROWS)
    (warned,) = told.given_away
    assert (warned.public, warned.hidden) == ("ward", "ill")
    assert warned.certain == pytest.approx(1 / 3, abs=0.03) and warned.right > warned.before
    words = " ".join(told.sentences)
    assert "real rows of real people" in words and "'ward' gives 'ill' away" in words
    assert KeptColumns.from_plain(told.to_plain()) == told


def test_what_was_confirmed_is_in_the_books(ws: Workspace, told: KeptColumns) -> None:
    entry = next(event for event in ws.events("people") if event.facts.get("entry") == "kept rows")
    assert (entry.analyst, entry.facts["columns"]) == ("ada", ["age", "ward"])
    assert ws["people"].may_keep == ("age", "ward") and ws.verify() == []


@pytest.mark.parametrize(
    ("columns", "error"),
    [(["pay"], NotProven), (["region"], NotProven), (["height"], InvalidInput), ("age", InvalidInput)],
)
def test_hidden_and_unknown_columns_are_refused(
    ws: Workspace, told: KeptColumns, columns: Any, error: type[Exception]
) -> None:
    """A column that leaves out rows with other values counts as hidden: whether it does always is."""
    before = ws["people"].may_keep
    with pytest.raises(error):
        ws["people"].keep_rows(columns, confirm=True)
    assert ws["people"].may_keep == before


def test_kept_rows_are_the_rows_and_hidden_ones_are_drawn(ws: Workspace, table: SyntheticTable) -> None:
    frame, true = table.to_pandas(), people()
    for column in ("age", "ward"):
        assert frame[column].value_counts().to_dict() == true[column].value_counts().to_dict()
    mine, theirs = (each.groupby(["age", "ward"]).size() for each in (frame, true))
    pd.testing.assert_series_equal(mine, theirs)
    assert np.corrcoef(frame.age, frame.pay)[0, 1] > 0.7
    ill = frame.groupby("ward").ill.mean()
    assert ill["heart"] > 0.9 and ill["eyes"] < 0.45
    paid = [event for event in ws.events("people") if event.kind == "reserved" and event.amount]
    assert [event.charge for event in paid] == [table.number]
    assert table.receipt.epsilon == ws["people"].past(POLICY).epsilon == bf.Epsilon(1)


def test_it_says_which_rows_are_real(ws: Workspace, table: SyntheticTable) -> None:
    assert table.kept_columns == ("age", "ward")
    assert "age and ward are kept: real rows of real people" in table.words[0]
    assert json.loads(table.marks()["kept"]) == ["age", "ward"]
    known = {pair.columns: pair.known for pair in table.report().pairs}
    assert known["age", "ward"] == "kept" and set(known.values()) <= {
        "kept",
        "measured",
        "modelled",
        "independent",
    }
    quote = ws["people"].synthesize("0.5", columns=["age", "ward", "pay"], keep=["age"]).quote()
    assert [one.column for one in quote.tables] == ["ward", "pay"]
    assert "Rows of age stay as they are" in quote.quote.explanation
    asked = ws["people"].synthesize("1", columns=["age", "ward", "ill", "pay"], keep=["age", "ward"]).quote()
    first = next(one for one, told in zip(table.report().tables, table.tables, strict=True) if told.round)
    assert asked.pair_margin == first.margin and f"±{first.margin:,.0f}" in " ".join(asked.words)
    names = [str(label) for axis in ws.answer(table.number).labels for label in axis]
    assert "ill" in names and "age" not in names  # the answer has what was measured


def test_it_travels_and_other_rows_are_free(ws: Workspace, table: SyntheticTable) -> None:
    back = SyntheticTable.from_plain(json.loads(json.dumps(table.to_plain())))
    pd.testing.assert_frame_equal(back.to_pandas(), table.to_pandas())
    spent = ws["people"].budget.status.spent
    more = table.sample(10_000).to_pandas()
    shares = [each.ward.value_counts(normalize=True) for each in (more, people())]
    assert len(more) == 10_000 and (shares[0] - shares[1]).abs().max() < 1e-3
    assert ws["people"].budget.status.spent == spent


def test_all_other_hidden_values_keep_the_same_rows(folder: Path, table: SyntheticTable) -> None:
    """Neighbours and all others: what is kept does not depend on hidden values, nor on the order of rows."""
    with opened(folder / "other.blowfish", people(hidden=2)) as other:
        other["people"].keep_rows(["age", "ward"], confirm=True)
        again = made(other)
        assert again.kept == table.kept
        one, two = (each.sample(500, seed=3).to_pandas() for each in (table, again))
        counted = [each.groupby(["age", "ward"]).size() for each in (one, two)]
        assert abs(counted[0].sub(counted[1], fill_value=0)).max() <= 1  # where they are cut is public chance


def test_a_later_policy_that_hides_them_finds_all_lost(ws: Workspace, table: SyntheticTable) -> None:
    near = bf.Policy.by_column(DOMAIN, {**SHOWN, "age": bf.graphs.Threshold(73, 1)})
    assert ws["people"].past(near).epsilon is None
    assert ws["people"].past(bf.Policy.differential_privacy(DOMAIN)).epsilon is None


def test_the_curator_compares_with_the_truth(ws: Workspace, table: SyntheticTable) -> None:
    told = ws["people"].compare_synthetic(table.number)
    assert ws.events("people")[-1].kind == "preview" and "TRUE DATA" in told.watermark
    by_name = {one.columns[0]: one for one in told.columns}
    true = people()
    assert dict(zip(by_name["ward"].labels, by_name["ward"].true, strict=True)) == dict(
        true.ward.value_counts()
    )
    assert by_name["ward"].known == "kept" and by_name["ward"].off == 0 < by_name["pay"].off < 0.1
    assert {one.columns: one.known for one in told.pairs}["age", "ward"] == "kept"
    assert "release of its own" in told.sentences[-1]
    assert SyntheticComparison.from_plain(told.to_plain()) == told
    with pytest.raises(NotFound):
        ws["people"].compare_synthetic(10**6)


def test_rows_that_changed_are_not_compared(folder: Path) -> None:
    with opened(folder / "changed.blowfish", people()) as other:
        made = other["people"].synthesize("0.5", columns=["age", "ill"]).ask()
        other["people"].refresh(people(hidden=3))
        with pytest.raises(PolicyConflict):
            other["people"].compare_synthetic(made.number)


def test_it_is_taken_back_for_tables_to_come(folder: Path) -> None:
    with opened(folder / "back.blowfish", people()) as other:
        dataset = other["people"]
        dataset.keep_rows(["age", "ward"], confirm=True)
        first = made(other)
        assert dataset.keep_rows([], confirm=True).sentences[0].startswith("No rows are kept")
        assert dataset.may_keep == () and other.verify() == []
        with pytest.raises(NotAllowed):
            dataset.synthesize("0.4", columns=["age", "ill"], keep=["age"]).ask()
        assert other.synthetic(first.number).kept_columns == ("age", "ward")  # what is out stays out


def test_columns_that_are_declared_anew_are_confirmed_anew(folder: Path) -> None:
    with bf.open(folder / "anew.blowfish", user="ada") as other:
        dataset = other.add_dataset("people", people(), domain=DOMAIN).publish(POLICY)
        dataset.keep_rows(["age"], confirm=True)
        dataset.declare(pay=bf.Integer(0, 120))
        assert dataset.may_keep == ()


def test_the_document_runs(folder: Path) -> None:
    text = (Path(__file__).parent.parent / "docs" / "synthetic.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    with opened(folder / "document.blowfish", people()) as other:
        exec(block, {"people": other["people"]})
        assert other["people"].may_keep == ("age", "ward")
        assert "kept" in other.answers()[-1].receipt.question
