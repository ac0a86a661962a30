"""What a notebook shows of quotes and answers: well formed, escaped, without a script."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from blowfishdb.core.budget import Epsilon
from blowfishdb.core.questions.promise import EXACT
from blowfishdb.messages.answers import Answer, Receipt
from blowfishdb.messages.quotes import Alternative, Quote

QUOTE = Quote(
    dataset="salaries",
    question="histogram of age (2 bins)",
    kind="histogram",
    epsilon=Epsilon("0.118"),
    alpha=50.0,
    beta=0.05,
    simultaneous=True,
    mechanism="Laplace",
    explanation="One hidden move changes one answer.",
    policy="every two values",
    policy_version=2,
    plain_epsilon=Epsilon("0.236"),
    remaining=Epsilon(1),
    owned=False,
    alternatives=(Alternative(100.0, Epsilon("0.059")),),
)
RECEIPT = Receipt(
    "7",
    "salaries",
    "histogram of age (2 bins)",
    "ana",
    Epsilon("0.118"),
    "Laplace",
    "",
    2,
    1,
    "",
    "",
    Epsilon("0.118"),
)


def answer(count: int = 2) -> Answer:
    values = np.arange(count) * 1_000.0
    return Answer(
        labels=(tuple(f"bin {i}" for i in range(count)),),
        axes=("age",),
        kind="histogram",
        values=values,
        raw=values,
        low=values - 50,
        high=values + 50.5,
        exact=np.arange(count) == 1,
        alpha=50.0,
        beta=0.05,
        simultaneous=False,
        receipt=RECEIPT,
    )


class Balanced(HTMLParser):
    """Every tag that is opened is closed in its place."""

    def __init__(self) -> None:
        super().__init__()
        self.open, self.seen = list[str](), set[str]()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("shown", [answer(), answer(30), QUOTE, replace(QUOTE, owned=True)])
def test_it_is_well_formed_and_without_scripts(shown: Answer | Quote) -> None:
    page = Balanced()
    page.feed(shown._repr_html_())
    assert not page.open and page.seen <= {
        "div",
        "p",
        "strong",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "small",
        "br",
    }


def test_an_answer_shows_values_intervals_and_receipt() -> None:
    page = answer()._repr_html_()
    for words in (
        "histogram of age (2 bins) of salaries",
        ">age</th>",
        "bin 0",
        "1,000",
        "-50 … 51",
        "exact",
    ):
        assert words in page
    assert "In 95 of 100 runs each bar is within 50 people of the truth." in page
    assert "Charged ε 0.118. Laplace, policy v2, answer 7." in page


def test_a_long_answer_shows_its_beginning() -> None:
    page = answer(30)._repr_html_()
    assert len(re.findall("<tr>", page)) == 21 and "The first 20 of 30" in page


def test_a_quote_shows_its_price_and_what_else_there_is() -> None:
    page = QUOTE._repr_html_()
    for words in ("ε 0.118", "8 times", "policy dividend of 2×", "±100 for ε 0.059", "reads no data"):
        assert words in page
    assert "nothing: already answered" in replace(QUOTE, owned=True)._repr_html_()
    assert EXACT in replace(QUOTE, epsilon=Epsilon(0), exact=True)._repr_html_()


def test_texts_are_escaped() -> None:
    bad = "<script>alert(1)</script>&"
    pages = [
        replace(QUOTE, question=bad, dataset=bad, mechanism=bad)._repr_html_(),
        replace(
            answer(), labels=((bad, "b"),), axes=(bad,), receipt=replace(RECEIPT, question=bad)
        )._repr_html_(),
    ]
    assert all("<script" not in page and "&lt;script&gt;" in page for page in pages)
