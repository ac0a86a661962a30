"""The form of the ask page: from texts to a question and back, without a browser."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qsl

import pytest

import blowfishdb as bf
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import InvalidAlpha, InvalidBeta, InvalidBins, InvalidQuestion, UnknownColumn
from blowfishdb.entrypoints.server.web.ask_draft import CUTS, Draft, example_sql
from blowfishdb.language.short import parse_question
from blowfishdb.messages.quotes import Fit, Quote
from blowfishdb.workspace.embedded import Workspace
from tests.entrypoints.server import DOMAIN, Running, make_workspace, running


def draft(**typed: str) -> Draft:
    return Draft.read(typed, DOMAIN)


@pytest.mark.parametrize(
    ("typed", "short"),
    [
        ({}, "cumulative(salary(bins=20))"),
        ({"shape": "histogram", "column": "age", "cut": "width", "size": "$10"}, "histogram(age(width=10))"),
        ({"shape": "histogram", "column": "region"}, "histogram(region)"),
        (
            {"shape": "two", "column": "age", "second": "region", "cut": "round", "size": "10"},
            "histogram(age(edges=[18, 20, 30, 40, 50, 60, 70, 80, 90]), region)",
        ),
        ({"shape": "top", "column": "age", "cut": "values", "most": "5"}, "top(age, 5)"),
        (
            {
                "shape": "partition",
                "column": "age",
                "cut": "values",
                "beside": "salary(bins=10)",
                "parts": "4",
            },
            "partition(age, salary(bins=10), 4)",
        ),
        ({"shape": "above", "limit": "1,000"}, "above(salary(bins=20), 1000)"),
        ({"shape": "quantiles", "shares": "0.5"}, "quantiles(salary(bins=20), 0.5)"),
        ({"shape": "ranges", "ranges": "0..9, 5..20"}, "ranges(salary, 0..9, 5..20)"),
        ({"shape": "mean", "column": "age"}, "mean(age)"),
        ({"shape": "mean", "column": "age", "per": "region"}, "mean(age) by region"),
        (
            {"shape": "mean", "per": "region, age(width=10)", "least": "1,000", "where": "age > 30"},
            "mean(salary) by region, age(width=10) for groups of 1000 where age > 30",
        ),
        ({"shape": "mean", "per": "region", "least": "1000", "by": "epsilon"}, "mean(salary) by region"),
        ({"shape": "stddev", "per": "region"}, "stddev(salary) by region"),
        ({"shape": "count", "column": "age", "per": "region"}, "count(age) by region"),
        ({"per": "region"}, "cumulative(salary(bins=20)) by region"),
        (
            {"shape": "quantiles", "shares": "0.5", "per": "region"},
            "quantiles(salary(bins=20), 0.5) by region",
        ),
        ({"shape": "ranges", "ranges": "0..9", "per": "region"}, "ranges(salary, 0..9) by region"),
        (
            {
                "shape": "boxes",
                "column": "age",
                "second": "salary",
                "boxes": "(20..29, 0..9), (30..39, 0..99)",
            },
            "ranges(age, salary, (20..29, 0..9), (30..39, 0..99))",
        ),
        (
            {"shape": "aggregates", "told": "mean(salary), count()", "per": "region", "least": "1,000"},
            "mean(salary), count() by region for groups of 1000",
        ),
        (
            {"shape": "counts", "conditions": "age < 30 as young,\n\n salary > 9 as rich\n", "per": "region"},
            "counts(age < 30 as young, salary > 9 as rich) by region",
        ),
        (
            {"shape": "marginals", "column": "age", "cut": "width", "size": "10", "others": "region"},
            "marginals(age(width=10), region, 2)",
        ),
        ({"shape": "clusters", "k": "3"}, "clusters(salary, k=3, iterations=5)"),
        ({"shape": "clusters", "more": "age, "}, "clusters(salary, age, k=4, iterations=5)"),
        ({"shape": "count", "where": "age >= 30"}, "count(salary) where age >= 30"),
        (
            {"shape": "histogram", "cut": "edges", "size": "0, 50000"},
            "histogram(salary(edges=[0, 50000]))",
        ),
        (
            {"shape": "histogram", "column": "region", "cut": "groups", "size": "'a': ['north', 'south']"},
            "histogram(region(groups={'a': ['north', 'south']}))",
        ),
    ],
)
def test_what_is_typed_is_a_question(typed: dict[str, str], short: str) -> None:
    assert draft(**typed).question(DOMAIN) == short
    if "groups" not in short:
        parse_question(short, DOMAIN)


def test_parts_of_dates_are_chosen_like_bins() -> None:
    domain = bf.Domain(day=bf.Date("2020-01-01", "2022-12-31"), pay=bf.Integer(0, 99))
    asked = Draft.read({"column": "day", "shape": "histogram", "cut": "part", "size": "month"}, domain)
    assert asked.question(domain) == "histogram(day(part=month))"
    assert parse_question(asked.question(domain), domain).columns[0].part == "month"
    per = replace(asked, shape="mean", column="pay", per="day(part=weekday)")
    assert parse_question(per.question(domain), domain).columns[0].part == "weekday"
    with pytest.raises(InvalidBins, match="moon"):
        parse_question(replace(asked, size="moon").question(domain), domain)
    assert dict(CUTS)["part"] == "parts of dates"


def test_the_address_holds_what_was_changed_and_nothing_else() -> None:
    changed = draft(error="33", where="age >= 30 & region = 'north'")
    said = dict(parse_qsl(changed.address()[1:]))
    assert said["error"] == "33" and said["where"] == "age >= 30 & region = 'north'"
    assert "confidence" not in said and "sql" not in said
    assert Draft.read(said, DOMAIN) == changed


def test_terms_are_exact() -> None:
    commas, _ = draft(error="0,5 €", confidence="97,5").asked(DOMAIN, "salaries")
    assert (commas.error, commas.confidence) == (0.5, 0.975)
    body, explained = draft(error="±1,000", confidence="97.5 %", every="each").asked(DOMAIN, "salaries")
    assert (body.error, body.confidence, body.each, explained) == (1000.0, 0.975, True, False)
    body, _ = draft(by="epsilon", epsilon="0.1").asked(DOMAIN, "salaries")
    assert (body.error, body.epsilon) == (None, "0.1")


def test_a_statement_keeps_its_own_terms_and_takes_the_others_from_the_form() -> None:
    stated, explained = draft(mode="sql", sql=f"EXPLAIN {example_sql(DOMAIN, 'salaries')}").asked(
        DOMAIN, "salaries"
    )
    assert stated.error is None and explained and stated.sql is not None and "EXPLAIN" not in stated.sql
    bare, explained = draft(mode="sql", sql="SELECT COUNT(*) FROM salaries").asked(DOMAIN, "salaries")
    assert bare.error == 50.0 and not explained


@pytest.mark.parametrize(
    ("typed", "error"),
    [
        ({"error": "many"}, InvalidAlpha),
        ({"error": "1e999999"}, InvalidAlpha),
        ({"confidence": "often"}, InvalidBeta),
        ({"size": ""}, InvalidBins),
        ({"column": "wage"}, UnknownColumn),
        ({"shape": "ranges"}, InvalidQuestion),
        ({"shape": "two", "column": "age", "second": "age"}, InvalidQuestion),
        ({"shape": "boxes", "column": "age", "second": "age"}, InvalidQuestion),
    ],
)
def test_what_cannot_be_used_is_said(typed: dict[str, str], error: type[Exception]) -> None:
    with pytest.raises(error):
        draft(**typed).asked(DOMAIN, "salaries")


@pytest.mark.parametrize(
    ("shape", "field"),
    [("boxes", "boxes"), ("aggregates", "told"), ("counts", "conditions"), ("marginals", "others")],
)
def test_what_is_not_said_is_asked_for_with_an_example_that_works(shape: str, field: str) -> None:
    with pytest.raises(InvalidQuestion, match="Say which") as refused:
        draft(shape=shape).question(DOMAIN)
    parse_question(draft(shape=shape, **{field: refused.value.fixes[0]}).question(DOMAIN), DOMAIN)


def test_what_fits_sets_the_form() -> None:
    now = draft()
    assert now.fitted(Fit("±33", error=33.0)) == now.address(error="33")
    assert now.fitted(Fit("10 bins", bins=10)) == now.address(cut="bins", size="10")
    assert now.fitted(Fit("epsilon 0.2", epsilon=Epsilon("0.2"))) == now.address(by="epsilon", epsilon="0.2")
    assert now.fitted(Fit("ask the curator for more")) is None


@pytest.mark.parametrize(
    "short",
    [
        "cumulative(salary, bins=20) where age >= 30",
        "histogram(age(width=10), region)",
        "histogram(salary, edges=[0, 50000])",
        "histogram(region, groups={'n': ['north'], 'rest': ['south', 'east', 'west']})",
        "ranges(salary, 0..9999, 5000..20000)",
        "quantiles(salary, 0.25, 0.5, bins=50)",
        "above(region, 100)",
        "cumulative(salary, bins=5) by region",
        "quantiles(salary, 0.5, bins=50) by region where age >= 30",
        "ranges(age, salary, (20..29, 0..9999), (30..39, 0..49999))",
        "counts(age < 30 as young, salary > 50000 as rich) by region",
        "marginals(age(width=10), region, 2)",
        "sum(age), count() by region",
    ],
)
def test_an_answer_can_be_asked_again_more_accurately(short: str, tmp_path: Path) -> None:
    with Workspace(make_workspace(tmp_path, rows=50), user="analyst") as workspace:
        salaries = workspace["salaries"]
        answer = salaries.question(short).accurate_to(200, confidence=0.9, each=True).ask()
        again = Draft.again(answer, DOMAIN)
        assert again is not None
        body, _ = again.asked(DOMAIN, "salaries")
        assert (body.error, body.confidence, body.each) == (answer.alpha / 2, 0.9, again.every == "each")
        assert body.asking(salaries).form.to_plain() == answer.form


@pytest.mark.parametrize(
    ("short", "spend", "mechanism"),
    [("mean(salary), count() by region", "0.2", None), ("histogram(age, bins=16)", "0.2", "adaptive")],
)
def test_what_was_asked_for_an_epsilon_is_edited_with_it(
    short: str, spend: str, mechanism: str | None, tmp_path: Path
) -> None:
    with Workspace(make_workspace(tmp_path, rows=50), user="analyst") as workspace:
        salaries = workspace["salaries"]
        asking = salaries.question(short).spend(spend)
        answer = (asking if mechanism is None else asking.using(mechanism)).ask()
        edited = Draft.of(answer)
        assert edited is not None and Draft.again(answer, DOMAIN) is None
        body, _ = edited.asked(DOMAIN, "salaries")
        assert (body.error, str(body.epsilon)) == (None, spend)
        assert (body.mechanism == "adaptive") is (mechanism == "adaptive")
        assert body.asking(salaries).form.to_plain() == answer.form


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("forms")) as server:
        yield server


@pytest.mark.parametrize(
    "typed",
    [
        "shape=boxes&column=age&second=salary&boxes=(20..29, 0..9999)",
        "shape=aggregates&told=sum(age), count()&per=region&error=500",
        "shape=counts&conditions=age < 30 as young%0Asalary > 50000 as rich&per=region",
        "shape=marginals&column=age&cut=bins&size=4&others=region",
        "shape=quantiles&cut=bins&size=10&shares=0.5&per=region",
    ],
)
def test_a_form_without_scripts_has_a_price(here: Running, typed: str) -> None:
    page = here.browser("analyst").get(f"/datasets/salaries/ask?{typed}").text
    assert '<p class="promise">' in page and 'name="quote_id"' in page


def test_a_quote_that_does_not_fit_says_what_does(tmp_path: Path) -> None:
    with Workspace(make_workspace(tmp_path, rows=50, budget="0.3"), user="analyst") as workspace:
        quote = workspace["salaries"].question("cumulative(salary, bins=100)").accurate_to(5).quote()
        assert quote.epsilon > quote.remaining and quote.fits[0].error is not None
        assert Quote.from_plain(quote.to_plain()) == quote
        fitting = (
            workspace["salaries"].question("cumulative(salary, bins=100)").accurate_to(quote.fits[0].error)
        )
        assert fitting.quote().epsilon <= quote.remaining and fitting.quote().fits == ()
