"""Pictures made of letters: they fit the terminal, and say what the numbers say."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

from blowfishdb.core.budget import Epsilon
from blowfishdb.core.questions.promise import EXACT, significant
from blowfishdb.messages.answers import Answer, Receipt, compare
from blowfishdb.messages.quotes import Quote
from blowfishdb.show.terminal import (
    answer_chart,
    budget_line,
    comparison_table,
    quote_panel,
    receipt_line,
    whisker,
)
from blowfishdb.show.words import amount, interval, loss


def receipt(question: str = "a question", epsilon: str = "0.118") -> Receipt:
    paid = Epsilon(epsilon)
    return Receipt("7", "people", question, "ana", paid, "Laplace", "all", 2, 1, "2026-01-01", "", paid)


def answer(
    kind: str, labels: tuple[tuple[str, ...], ...], values: list[float], alpha: float = 50.0
) -> Answer:
    middle = np.array(values)
    low, high = np.maximum(0, middle - alpha), middle + alpha
    exact = np.zeros(middle.size, dtype=np.bool_)
    axes = tuple(f"column{place}" for place in range(len(labels)))
    return Answer(labels, axes, kind, middle, middle, low, high, exact, alpha, 0.05, True, receipt())


def drawn(part: object, width: int, *, terminal: bool) -> str:
    out = Console(
        file=io.StringIO(), width=width, force_terminal=terminal, highlight=False, color_system=None
    )
    out.print(part)
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


BINS = tuple(f"{10 * place:,}–{10 * place + 9:,}" for place in range(20))
ANSWERS = {
    "bars": answer("histogram", (BINS,), [37.0 * place for place in range(20)]),
    "curve": answer("cumulative", (BINS,), [100.0 * place for place in range(20)]),
    "long curve": answer("cumulative", (tuple(map(str, range(500))),), [3.0 * place for place in range(500)]),
    "heat": answer("histogram", (("a", "b"), ("x", "y", "z")), [900.0, 10, 300, 0, 500, 700]),
    "wide heat": answer("histogram", (("a", "b"), BINS * 3), [float(place) for place in range(120)]),
    "mean": answer("mean", (("mean",),), [51.23456], alpha=0.5),
    "quantiles": answer("quantiles", (("25 %", "50 %"),), [31_299.0, 44_199.0], alpha=300),
    "boxes": answer("histogram", (("a", "b"), ("x", "y"), ("u", "v")), [1.0, 2, 3, 4, 5, 6, 7, 800]),
}


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", ANSWERS)
def test_every_picture_fits_and_is_complete(name: str, width: int, terminal: bool) -> None:
    picture = drawn(answer_chart(ANSWERS[name]), width, terminal=terminal)
    assert max(map(len, picture.splitlines())) <= width
    assert "a question" in picture and "95 of 100 runs" in picture and "Sampling error" in picture
    assert "nan" not in picture.lower() and "-0" not in picture
    if name not in ("wide heat", "long curve"):
        assert "…\n" not in picture.replace("noise interval", "")


def test_a_long_answer_is_shortened_on_a_terminal_only() -> None:
    long = ANSWERS["long curve"]
    assert "452 more" in drawn(answer_chart(long), 80, terminal=True)
    piped = drawn(answer_chart(long), 80, terminal=False)
    assert len(piped.splitlines()) > 500 and "more: " not in piped


@pytest.mark.parametrize(
    ("place", "picture"),
    [
        ((0.0, 0.0, 0.0), ""),
        ((0.5, 0.5, 0.5), "█████"),
        ((0.5, 0.55, 0.6), "█████▌"),
        ((0.4, 0.6, 0.8), "████├─•┤"),
        ((-0.5, 0.1, 0.5), "├•──┤"),
        ((0.0, 0.5, 1.0), "├────•───┤"),
    ],
)
def test_whiskers(place: tuple[float, float, float], picture: str) -> None:
    assert whisker(*place, 10) == picture


def test_figures_have_no_long_fractions() -> None:
    assert loss(Epsilon("0.117649321")) == "0.118" and loss(Epsilon("0.00001234")) == "0.0000123"
    assert loss(Epsilon(1)) == "1" and loss(Epsilon(12_345)) == "12,300" and loss(Epsilon(0)) == "0"
    assert significant(0.1 + 0.2, 6) == "0.3" and significant(99.96) == "100"
    assert amount(-0.2, 0) == "0" and amount(-0.004, 2) == "0.00" and amount(1234.5, 1) == "1,234.5"
    assert interval(-0.4, 10.2, 0) == "-1 … 11" and interval(0.11, 0.29, 1) == "0.1 … 0.3"


def quote(**changes: object) -> Quote:
    said = {
        "dataset": "people",
        "question": "histogram of age (4 bins)",
        "kind": "histogram",
        "epsilon": Epsilon("0.1"),
        "alpha": 50.0,
        "beta": 0.05,
        "simultaneous": True,
        "mechanism": "Laplace",
        "explanation": "Noise.",
        "policy": "all",
        "policy_version": 1,
        "plain_epsilon": Epsilon("0.3"),
        "remaining": Epsilon(1),
        "owned": False,
    }
    return Quote(**{**said, **changes})  # type: ignore[arg-type]


def test_quotes_say_what_matters() -> None:
    shown = drawn(quote_panel(quote()), 80, terminal=True)
    assert "dividend of 3×" in shown and "affordable 10 times" in shown and "╭" in shown
    piped = drawn(quote_panel(quote()), 80, terminal=False)
    assert "╭" not in piped and "QUOTE, free" in piped
    assert "already answered" in drawn(quote_panel(quote(owned=True, epsilon=Epsilon(0))), 80, terminal=False)
    free = drawn(quote_panel(quote(epsilon=Epsilon(0), exact=True)), 80, terminal=False)
    assert EXACT in free and "this is free" in free
    assert "cost the same" in drawn(quote_panel(quote(plain_epsilon=Epsilon("0.1"))), 80, terminal=False)
    assert "not enough" in drawn(quote_panel(quote(remaining=Epsilon("0.05"))), 80, terminal=False)
    assert "affordable 1 time" in drawn(quote_panel(quote(remaining=Epsilon("0.1"))), 80, terminal=False)


def test_receipts_and_meters() -> None:
    assert "charged ε 0.118" in drawn(receipt_line(receipt()), 100, terminal=False)
    assert "this answer is free" in drawn(receipt_line(receipt(epsilon="0")), 100, terminal=False)
    meter = drawn(budget_line(Epsilon(2), Epsilon("0.5")), 100, terminal=False)
    assert meter.count("▓") == 15 and meter.count("░") == 5 and "1.5 of 2 spent, 0.5 left" in meter
    assert "0 of 0 spent" in drawn(budget_line(Epsilon(0), Epsilon(0)), 100, terminal=False)


def test_comparisons_mark_what_noise_does_not_explain() -> None:
    first = answer("histogram", (("a", "b"),), [900.0, 100.0])
    second = answer("histogram", (("a", "b"),), [500.0, 120.0])
    lines = drawn(comparison_table(compare(first, second)), 80, terminal=False).splitlines()
    assert "yes" in lines[1] and "no" in lines[2] and "1 of 2 bars" in lines[3]
