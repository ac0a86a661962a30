"""Missing values, from rows: every kind of question under every rule, against what SQL means by them."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import blowfishdb as bf
from blowfishdb.adapters.backends.base import Prepared
from blowfishdb.core.errors import InvalidAttribute, InvalidPredicate, TooLarge
from blowfishdb.core.policy.guarantee import invariants
from blowfishdb.service import curator
from blowfishdb.service.advice import missing_prices
from blowfishdb.workspace.datasets import Dataset
from blowfishdb.workspace.embedded import Workspace

NOISELESS = 20_000
AGES = [None if k % 5 == 0 else (k * 37) % 130 - 10 for k in range(400)]
PAYS = [k * 13 % 50 for k in range(400)]
TOWNS = [("north", "south", None, "elsewhere")[k % 4] for k in range(400)]
LOW, HIGH = 0, 99
RULES = ("value", "public", "drop", "clamp")
OUTSIDE = ("clamp", "drop")


@pytest.fixture(scope="module")
def ws(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return bf.open(tmp_path_factory.mktemp("missing") / "w.blowfish")


def rows() -> pa.Table:
    return pa.table({"age": AGES, "pay": PAYS, "town": TOWNS})


def domain(missing: str, outside: str = "clamp") -> bf.Domain:
    return bf.Domain(
        age=bf.Integer(LOW, HIGH, missing=missing, outside=outside),
        pay=bf.Integer(0, 49),
        town=bf.Category(["north", "south", "other"], missing=missing, outside=outside),
    )


@pytest.fixture(scope="module", params=[(m, o) for m in RULES for o in OUTSIDE], ids="-".join)
def people(request: pytest.FixtureRequest, ws: Workspace) -> Dataset:
    missing, outside = request.param
    dataset = ws.add_dataset(f"{missing} {outside}", rows(), domain=domain(missing, outside), same_rows=True)
    dataset.budget.set(10**8)
    line = bf.graphs.Threshold(100, 3)
    dataset.publish(bf.Policy.by_column(dataset.schema, {"age": line, "pay": bf.graphs.Threshold(50, 2)}))
    return dataset


# --- what the rows mean, a second time, in plain Python -------------------------------------------------


def meant(people: Dataset) -> list[dict[str, Any]]:
    """The rows as the declaration reads them; LEFT_OUT where a rule drops the row."""
    missing, outside = people.name.split()
    return [
        {"age": _age(age, missing, outside), "pay": pay, "town": _town(town, missing, outside)}
        for age, pay, town in zip(AGES, PAYS, TOWNS, strict=True)
    ]


LEFT_OUT = object()


def _age(age: int | None, missing: str, outside: str) -> Any:
    if age is None:
        return {"drop": LEFT_OUT, "clamp": LOW}.get(missing)
    if not LOW <= age <= HIGH:
        return LEFT_OUT if outside == "drop" else min(max(age, LOW), HIGH)
    return age


def _town(town: str | None, missing: str, outside: str) -> Any:
    if town is None:
        return {"drop": LEFT_OUT, "clamp": "other"}.get(missing)
    if town == "elsewhere":
        return LEFT_OUT if outside == "drop" else "other"
    return town


def kept(people: Dataset, *columns: str) -> list[dict[str, Any]]:
    return [row for row in meant(people) if all(row[c] is not LEFT_OUT for c in columns)]


def ages(
    people: Dataset, *beside: str, where: Callable[[dict[str, Any]], bool] = lambda _: True
) -> list[int]:
    """As an aggregate over age sees them: without the rows that have none."""
    return [r["age"] for r in kept(people, "age", *beside) if r["age"] is not None and where(r)]


def asked(people: Dataset, sql: str) -> bf.Answer:  # type: ignore[name-defined]
    return people.sql(f'SELECT {sql.replace("FROM t", f"""FROM "{people.name}" """)}').spend(NOISELESS).ask()


def value(people: Dataset, sql: str) -> float:
    answer = asked(people, sql)
    assert answer.low is not None and answer.high is not None
    assert answer.low[0] <= answer.values[0] <= answer.high[0]
    return float(answer.values[0])


# --- every kind of question -------------------------------------------------------------------------


def test_rows_are_counted_and_values_are_counted(people: Dataset) -> None:
    assert value(people, "COUNT(*) FROM t") == 400
    assert value(people, "COUNT(age) FROM t") == len(ages(people))


def test_conditions_have_three_values(people: Dataset) -> None:
    young = [a for a in ages(people) if a < 20]
    assert value(people, "COUNT(*) FROM t WHERE age < 20") == len(young)
    assert value(people, "COUNT(*) FROM t WHERE NOT age < 20") == len(ages(people)) - len(young)
    either = [r for r in kept(people, "age") if (r["age"] is not None and r["age"] < 20) or r["pay"] < 10]
    assert value(people, "COUNT(*) FROM t WHERE age < 20 OR pay < 10") == len(either)
    neither = [r for r in kept(people, "age") if r["age"] is not None and r["age"] >= 20 and r["pay"] >= 10]
    assert value(people, "COUNT(*) FROM t WHERE NOT (age < 20 OR pay < 10)") == len(neither)


def test_who_has_none_is_told_only_where_that_has_a_place(people: Dataset) -> None:
    present = ("age IS NOT NULL", "pay < 3 OR NOT (age IS NULL)")
    if people.schema["age"].missing == "drop":  # who has none is in no question about ages, so the others are
        with pytest.raises(InvalidPredicate, match="cannot be told here"):
            asked(people, "COUNT(*) FROM t WHERE age IS NULL")
        for condition in present:
            assert value(people, f"COUNT(*) FROM t WHERE {condition}") == len(ages(people))
            notes = " ".join(asked(people, f"COUNT(*) FROM t WHERE {condition}").notes)
            assert "rows without a value are left out" in notes
        return
    if not people.schema["age"].has_missing_cell:
        for condition in ("age IS NULL", *present):
            with pytest.raises(InvalidPredicate, match="cannot be told here"):
                asked(people, f"COUNT(*) FROM t WHERE {condition}")
        return
    lost = [r for r in kept(people, "age") if r["age"] is None]
    assert value(people, "COUNT(*) FROM t WHERE age IS NULL") == len(lost) == AGES.count(None)
    assert value(people, "COUNT(*) FROM t WHERE age IS NOT NULL") == len(ages(people))
    poor = [r for r in lost if r["pay"] < 20]
    assert value(people, "COUNT(*) FROM t WHERE age IS NULL AND pay < 20") == len(poor)


def test_sums_leave_them_out(people: Dataset) -> None:
    assert value(people, "SUM(age) FROM t") == sum(ages(people))
    chosen = ages(people, "town", where=lambda r: r["town"] == "north")
    assert value(people, "SUM(age) FROM t WHERE town = 'north'") == sum(chosen)
    assert value(people, "SUM(age) FROM t WHERE age >= 50") == sum(a for a in ages(people) if a >= 50)
    poor = ages(people, where=lambda r: r["pay"] < 20)
    assert value(people, "SUM(age) FROM t WHERE pay < 20") == sum(poor)


def test_means_are_over_values(people: Dataset) -> None:
    public = people.schema["age"].missing in ("public", "clamp") and people.schema["age"].outside == "clamp"
    if public:
        people["age"].count().spend(1).ask()  # exact and free, and then on record
    assert value(people, "AVG(age) FROM t") == pytest.approx(statistics.mean(ages(people)))
    assert value(people, "STDDEV(age) FROM t") == pytest.approx(statistics.stdev(ages(people)), rel=1e-3)


def test_aggregates_in_groups_leave_them_out(people: Dataset) -> None:
    towns = list(people.schema["town"].values)
    means = asked(people, "town, AVG(age), COUNT(age) FROM t GROUP BY town").values.reshape(-1, 2)
    for town, (mean, count) in zip(towns, means.tolist(), strict=False):
        of_town = ages(people, where=lambda r, town=town: r["town"] == town)
        assert count == pytest.approx(len(of_town))
        if of_town:
            assert mean == pytest.approx(statistics.mean(of_town))


def test_quantiles_leave_them_out(people: Dataset) -> None:
    found = sorted(ages(people))
    for share in (0.25, 0.5, 0.9):
        answer = asked(people, f"QUANTILE(age, {share}) FROM t")
        truth = found[max(0, math.ceil(share * len(found)) - 1)]
        assert answer.low[0] <= truth <= answer.high[0]


def test_lines_leave_them_out_and_bars_have_one_for_them(people: Dataset) -> None:
    below = people["age"].cumulative(width=10).spend(NOISELESS).ask()
    found = ages(people)
    assert below.values.tolist() == [sum(a <= end for a in found) for end in range(9, 100, 10)]
    inside = people["age"].ranges([(0, 9), (30, 59)]).spend(NOISELESS).ask()
    assert inside.values.tolist() == [sum(a <= 9 for a in found), sum(30 <= a <= 59 for a in found)]
    bars = people["age"].histogram(width=50).spend(NOISELESS).ask()
    lost = [AGES.count(None)] if people.schema["age"].has_missing_cell else []
    assert bars.values.tolist() == [sum(a < 50 for a in found), sum(a >= 50 for a in found), *lost]
    assert list(bars.labels[0]) == ["0–49", "50–99", *(["missing"] if lost else [])]
    assert list(bars.to_pandas()["age"]) == list(bars.labels[0])
    assert bars.plot().to_dict() and below.plot().to_dict()


def test_groups_and_several_columns(people: Dataset) -> None:
    towns = (
        ["north", "south", "other", None]
        if people.schema["town"].has_missing_cell
        else ["north", "south", "other"]
    )
    of = kept(people, "town")
    bars = asked(people, "town, COUNT(*) FROM t GROUP BY town")
    assert bars.values == pytest.approx([sum(r["town"] == town for r in of) for town in towns])
    most = people["town"].top(1).spend(NOISELESS).ask()
    assert most.values[0] == pytest.approx(max(sum(r["town"] == town for r in of) for town in towns))


# --- prices, words, declarations --------------------------------------------------------------------


def test_public_missing_values_cost_nothing_and_are_exact(ws: Workspace) -> None:
    dataset = ws["public clamp"]
    question = dataset.sql('SELECT COUNT(*) FROM "public clamp" WHERE age IS NULL')
    assert not question.accurate_to(1).quote().epsilon
    assert question.accurate_to(1).ask().exact.all()
    assert "how many values of 'age' are missing" in invariants(dataset.policy)
    assert any("is missing is not hidden" in str(said) for said in dataset.guarantee().paragraphs)
    secret = ws["value clamp"].where(bf.col("age").is_missing() & (bf.col("pay") < 7)).count()
    assert secret.accurate_to(1).quote().epsilon


def test_the_two_prices_of_the_import() -> None:
    found = missing_prices(bf.Integer(0, 199_999))
    assert (f"{found.public:.3f}", f"{found.secret:.3f}") == ("0.117", "0.296")
    assert "within 1,000 are hidden" in str(found) and "0.117 if it is public" in str(found)


def test_looking_for_missing_values_takes_no_longer_than_a_question(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All columns together: each of them has what those before it left of the time."""
    limits = list[float]()
    count = Prepared.count

    def slow(prepared: Prepared, *given: Any) -> Any:
        limits.append(prepared.timeout)
        time.sleep(0.3)
        return count(prepared, *given)

    monkeypatch.setattr(Prepared, "count", slow)
    monkeypatch.setattr(curator, "TIMEOUT", 0.5)
    many = bf.Domain.of({f"c{k}": bf.Integer(0, 9) for k in range(5)})
    with pytest.raises(TooLarge, match=r"longer than 0\.5 seconds") as refused:
        ws.add_dataset("many", pa.table({name: [1, 2] for name in many.names}), domain=many)
    assert refused.value.fixes[0].startswith("say how missing values count")
    assert len(limits) == 2 and limits[1] < limits[0] <= 0.5
    assert "many" not in ws


def test_a_declaration_without_missing_values_is_checked(ws: Workspace, tmp_path: Path) -> None:
    with pytest.raises(InvalidAttribute, match=r"'age'.*say how they count") as refused:
        unsaid = bf.Domain(age=bf.Integer(0, 99), pay=bf.Integer(0, 49))
        ws.add_dataset("unsaid", rows(), domain=unsaid, same_rows=True)
    assert "town" not in refused.value.message and len(refused.value.fixes) == 4
    assert "unsaid" not in ws
    path = tmp_path / "people.csv"
    path.write_text("age\n1\n2\n3\n")
    dataset = ws.add_dataset("said", path, domain=bf.Domain(age=bf.Integer(0, 9)))
    dataset.budget.set(NOISELESS)
    path.write_text("age\n1\n\nn/a\n")
    with pytest.raises(InvalidAttribute, match="say how they count"):
        dataset.refresh()
    assert dataset["age"].sum().spend(NOISELESS).ask().values[0] == 6
    fresh = ws.add_dataset("fresh", rows(), domain=domain("value"), same_rows=True)
    with pytest.raises(InvalidAttribute, match="say how they count"):
        fresh.declare(age=bf.Integer(0, 99))


def test_every_answer_and_quote_says_what_is_folded(people: Dataset) -> None:
    missing, outside = people.name.split()
    question = people["pay"].histogram(width=10).spend(NOISELESS)
    assert (
        question.quote().notes
        == question.ask().notes
        == ("pay: values outside 0–49 count as the nearest end.",)
    )
    answer = people.where(bf.col("age") < 20)["pay"].sum().spend(NOISELESS).ask()
    (age, _) = answer.notes
    assert ("missing values count as 0" in age) == (missing == "clamp")
    assert ("rows without a value are left out" in age) == (missing == "drop")
    assert ("rows with a value outside 0–99 are left out" in age) == (outside == "drop")
    assert people.count().spend(1).ask().notes == ()
    for counted in (people["age"].count(), people.by("town").aggregate(("count", "age"))):
        notes = counted.spend(NOISELESS).ask().notes
        everybody = "age: missing values count as a declared one, so rows without a value are counted too."
        assert (everybody in notes) == (missing == "clamp"), notes
