"""quote, ask and sql: every kind of question, every mechanism, every way to state terms."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from blowfishdb.core.accuracy import NO_PROMISE
from blowfishdb.mechanisms import DATA_DEPENDENT, NAMED
from tests.entrypoints.commands import ROWS, Shell, people

PAID = ("--yes", "--max-cost", "5")


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    made = people(tmp_path_factory.mktemp("questions"))
    made.must("policy", "set", "people", "salary", "--hide-within", "10000")
    made.must("policy", "publish", "people", "--yes")
    return made


@pytest.mark.parametrize("name", list(NAMED))
def test_every_mechanism_can_be_asked_for(shell: Shell, name: str) -> None:
    question = ("people", "histogram(salary, width=10000)", "--error", "200", "--mechanism", name)
    answer = shell.must("ask", *question, *PAID, "--json").json
    assert len(answer["values"]) == 10 and answer["alpha"] == 200
    quote = shell.must("quote", *question, "--json").json
    assert quote["owned"] and quote["nano_epsilon"] == 0
    assert answer["receipt"]["epsilon"] != "0"


@pytest.mark.parametrize("name", list(DATA_DEPENDENT))
def test_every_data_dependent_mechanism_can_be_asked_for(shell: Shell, name: str) -> None:
    if name == "policy-tree":  # which has nothing to gain where one bin is all that is hidden
        question = ("people", "histogram(salary, width=2000)", "--epsilon", "0.3", "--mechanism", name)
    else:
        question = ("people", "histogram(salary, width=10000)", "--epsilon", "0.3", "--mechanism", name)
    answer = shell.must("ask", *question, *PAID, "--json").json
    assert answer["alpha"] is None and answer["low"] is None and answer["receipt"]["epsilon"] == "0.3"
    assert shell.must("quote", *question, "--json").json["owned"]
    refused = shell("quote", *question[:2], "--error", "50", "--mechanism", name)
    assert refused.code == 4 and "depends on the data" in refused.err.replace("\n", " ")


@pytest.mark.parametrize(
    "question",
    [
        "histogram(age, width=10)",
        "cumulative(age, bins=10)",
        "ranges(salary, 0..9999, 20000..39999)",
        "quantiles(salary, 0.25, 0.5)",
        "top(salary, 2)",
        "histogram(age(bins=4), joined(bins=4))",
    ],
)
def test_without_a_promise_there_is_no_interval_in_words(shell: Shell, question: str) -> None:
    done = shell.must("ask", "people", question, "--epsilon", "0.4", "--mechanism", "adaptive", *PAID)
    said = " ".join(done.out.replace("│", " ").split())
    assert said.count(NO_PROMISE) == 2 and "±" not in said and "nan" not in said.lower()
    assert "├" not in done.out and "plain DP" not in said
    number = shell.must("log", "--limit", "1", "--json").json["answers"][0]["id"]
    assert "not promised" in shell.must("log", "--limit", "1").out
    assert NO_PROMISE in " ".join(shell.must("show", str(number)).out.split())
    compared = shell.must("compare", str(number), str(number)).out
    assert "noise interval" not in compared and "more than noise" not in compared
    assert "Neither of the answers promises" in compared


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("histogram(age, width=10)", "every bar is within"),
        ("cumulative(age, edges=[18, 40, 60])", "every bar is within"),
        ("ranges(salary, 0..9999, 20000..39999)", "every bar is within"),
        ("quantiles(salary, 0.25, 0.5)", "lies in its noise interval"),
        ("median(age)", "lies in its noise interval"),
        ("mean(age)", "the mean is within"),
        ("sum(age)", "the sum is within"),
        ("count()", "Exact"),
        ("top(region, 2)", "short of the last place"),
        ("above(region, 100)", "below the limit"),
        ("histogram(region, joined(bins=4))", "every cell is within"),
        ("histogram(age, bins=4) where region = 'west'", "every bar is within"),
        ("mean(age) by region for groups of 100", "group of 100 or more rows is within 300"),
        ("sum(age) by region where age >= 30", "every number is within"),
    ],
)
def test_every_kind_of_question_is_answered_in_words(shell: Shell, question: str, words: str) -> None:
    shell.must("refresh", "people")  # a new snapshot: nothing follows from what the other tests asked
    error = "5000" if question.startswith("sum") else "300"
    done = shell.must("ask", "people", question, "--error", error, *PAID)
    assert words in done.out and "Receipt #" in done.out
    assert "nan" not in done.out.lower() and "-0 " not in done.out and "e-0" not in done.out
    assert "\x1b" not in done.out


def test_aggregates_are_a_table_with_a_row_for_each_group(shell: Shell) -> None:
    select = "SELECT region, AVG(age), STDDEV(age), COUNT(*) FROM people GROUP BY region"
    done = shell.must("sql", "people", f"{select} WITH EPSILON 3", *PAID)
    heads = [line.split()[1] for line in done.out.splitlines() if line.startswith("region ")]
    assert heads == ["mean", "standard", "rows"] and "…  " not in done.out  # one below the other, nothing cut
    assert "every true value lies in its noise interval" in done.out
    said = shell.must("sql", "people", f"{select} WITH EPSILON 3", *PAID, "--json").json
    assert said["kind"] == "aggregates" and len(said["values"]) == 3 * len(said["labels"][0])
    assert said["receipt"]["cost"] == "0"
    few = shell.must("ask", "people", "mean(age) by region", "--epsilon", "0.000001", *PAID).out
    assert "too few rows to say" in few and "nan" not in few.lower()
    explained = shell.must("sql", "people", f"EXPLAIN {select} WITH EPSILON 3", "--json").json
    assert explained["answers"] == len(said["values"]) and int(explained["sensitivity"]) > 0
    refused = shell("ask", "people", "mean(age) by region", "--error", "1", *PAID)
    assert refused.code == 4 and "mean(age) by region for groups of 1000" in " ".join(refused.err.split())


def test_each_and_all_and_confidence(shell: Shell) -> None:
    shell.must("refresh", "people")
    base = ("quote", "people", "histogram(age, bins=6)", "--error", "40", "--json")
    every = shell.must(*base, "--all").json
    each = shell.must(*base, "--each").json
    surer = shell.must(*base, "--confidence", "0.999").json
    assert every["simultaneous"] and not each["simultaneous"]
    assert each["nano_epsilon"] < every["nano_epsilon"] < surer["nano_epsilon"]
    assert surer["beta"] == 0.001


def test_an_epsilon_instead_of_an_accuracy(shell: Shell) -> None:
    answer = shell.must("ask", "people", "histogram(age, bins=3)", "--epsilon", "0.25", *PAID, "--json").json
    assert answer["receipt"]["epsilon"] == "0.25" and answer["alpha"] > 0


def test_the_explanation_is_free(shell: Shell) -> None:
    before = shell.must("budget", "show", "people", "--json").json["spent"]
    shown = shell.must("quote", "people", "cumulative(salary, bins=10)", "--error", "50", "--explain").out
    assert "Sensitivity" in shown and "Mechanism" in shown
    select = "SELECT region, COUNT(*) FROM people GROUP BY region"
    for arguments in ((select, "--error", "50", "--explain"), (f"EXPLAIN {select} WITH ERROR 50",)):
        plain = shell.must("sql", "people", *arguments, "--json").json
        assert plain["sensitivity"] == "2" and plain["answers"] == 4
    assert shell.must("budget", "show", "people", "--json").json["spent"] == before


def test_a_select_may_stand_alone(shell: Shell) -> None:
    """Its FROM names the dataset, also behind EXPLAIN, WITH and a subquery."""
    for select in (
        "SELECT region, COUNT(*) FROM people GROUP BY region",
        "explain SELECT COUNT(*) FROM people WHERE age < 30",
        "WITH old AS (SELECT * FROM people WHERE age > 60) SELECT COUNT(*) FROM old",
        "SELECT COUNT(*) FROM (SELECT age FROM people) AS ages",
    ):
        stated = f"{select} WITH EPSILON 3", "--explain", "--json"
        assert shell.must("sql", *stated).json == shell.must("sql", "people", *stated).json
    assert "FROM names one dataset" in shell("sql", "SELECT COUNT(*)").err
    assert "Missing a SELECT about people" in shell("sql", "people").err


def test_sql_takes_its_terms_from_the_statement_or_from_flags(shell: Shell) -> None:
    select = "SELECT region, COUNT(*) FROM people GROUP BY region"
    said = shell.must("sql", "people", f"{select} WITH ERROR 70 CONFIDENCE 0.9", *PAID, "--json").json
    assert said["alpha"] == 70 and said["beta"] == 0.1
    flags = ("--error", "71", "--confidence", "0.9", "--each", "--mechanism", "laplace")
    flagged = shell.must("sql", "people", select, *flags, *PAID, "--json").json
    assert flagged["alpha"] == 71 and not flagged["simultaneous"]
    spent = shell.must("sql", "people", select, "--epsilon", "0.01", *PAID, "--json").json
    assert spent["receipt"]["epsilon"] == "0.01"
    unstated = shell("sql", "people", select)
    assert unstated.code == 2 and "--error 50" in unstated.err


@pytest.mark.parametrize("form", ["csv", "parquet", "arrow", "json", "html", "svg", "png"])
def test_answers_are_written_to_files(shell: Shell, tmp_path: Path, form: str) -> None:
    file = tmp_path / f"answer.{form}"
    done = shell.must("ask", "people", "histogram(age, bins=4)", "--error", "60", *PAID, "-o", str(file))
    assert f"answer.{form}" in done.out.replace("\n", "") and file.stat().st_size > 100
    number = shell.must("log", "--limit", "1", "--json").json["answers"][0]["id"]
    again = tmp_path / f"again.{form}"
    exported = shell.must("export", str(number), "--format", form, "--output", str(again), "--json").json
    assert exported == {"id": number, "format": form, "path": str(again)} and again.exists()


def test_an_exported_table_holds_the_answer(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    question = ("people", "histogram(age, bins=4)", "--error", "61")
    answer = shell.must("ask", *question, *PAID, "-o", str(file), "--json").json
    assert pq.read_table(file)["value"].to_pylist() == answer["values"]
    assert abs(sum(answer["raw"]) - ROWS) < 4 * 61
    copy = tmp_path / "a.json"
    shell.must("export", str(shell.must("log", "--json").json["answers"][-1]["id"]), "-o", str(copy))
    assert json.loads(copy.read_text())["values"] == answer["values"]


def test_a_file_that_cannot_be_written_costs_nothing(shell: Shell, tmp_path: Path) -> None:
    before = shell.must("budget", "show", "people", "--json").json["spent"]
    for place in ("answer.docx", "nowhere/answer.csv"):
        done = shell("ask", "people", "median(age)", "--error", "11", *PAID, "-o", str(tmp_path / place))
        assert done.code == 2
    assert shell.must("budget", "show", "people", "--json").json["spent"] == before


def test_the_log_filters(shell: Shell) -> None:
    everything = shell.must("log", "--json").json["answers"]
    assert shell.must("log", "--dataset", "people", "--mine", "--json").json["answers"] == everything[-50:]
    stranger = Shell(shell.workspace, user="bob")
    assert stranger.must("log", "--mine").out.startswith("No answers yet")
    assert len(shell.must("log", "--limit", "2", "--json").json["answers"]) == 2
    assert shell("log", "--dataset", "nothing").code == 2


def test_a_question_can_be_tried_on_made_up_rows(shell: Shell) -> None:
    before = shell.must("budget", "show", "people", "--json").json
    for asked in (
        ("ask", "people", "histogram(region)", "--error", "33"),
        ("sql", "people", "SELECT COUNT(*) FROM people WHERE age < 30", "--error", "33"),
    ):
        done = shell.must(*asked, "--made-up")
        assert "made-up rows: " in done.out and "nothing was read, charged or stored" in done.out
        assert (
            shell.must(*asked, "--made-up", "--json").json["receipt"]["question"].startswith("made-up rows")
        )
    assert shell.must("budget", "show", "people", "--json").json == before


def test_several_questions_as_one(shell: Shell) -> None:
    questions = ("histogram(salary, width=10000)", "cumulative(salary, width=10000)")
    plan = ("plan", "people", *questions, "--error", "70")
    quote = shell.must(*plan, "--json").json
    assert float(quote["epsilon"]) < float(quote["alone"]) and len(quote["parts"]) == 2
    assert "one by one" in shell.must(*plan).out
    assert shell(*plan, "--ask", "--yes").code == 2  # without a limit
    assert "Nothing was charged" in shell(*plan, "--ask", "--yes", "--max-cost", "0.000001").err
    answers = shell.must(*plan, "--ask", *PAID, "--json").json
    assert [answer["kind"] for answer in answers] == ["histogram", "cumulative"]
    assert sum(float(answer["receipt"]["cost"]) for answer in answers) == pytest.approx(
        float(quote["epsilon"])
    )
    again = shell.must(*plan).out
    assert again.count("already answered") == 2 and "costs nothing" in again
