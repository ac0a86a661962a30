"""Quotes, advice and batches while earlier promises are kept."""

from __future__ import annotations

import pytest

import blowfishdb as bf
from blowfishdb.core.errors import BudgetExhausted
from blowfishdb.messages.quotes import Quote
from blowfishdb.workspace.embedded import Workspace
from tests.test_publishing import ask, groups, within, ws

__all__ = ["ws"]


def loosened(ws: Workspace) -> int:
    """Hidden within 50, then within 1: the first promise stands, with 9.9 left."""
    ws["salaries"].publish(within(50))
    version = ws.facts("salaries").policy_version
    ask(ws, "histogram", "0.1")
    ws["salaries"].publish(within(1), confirm=True)
    return version


def test_a_quote_names_the_promise_that_binds(ws: Workspace) -> None:
    version = loosened(ws)
    question = ws["salaries"]["salary"].cumulative(bins=200).spend("15").using("laplace")
    quote = question.quote()
    assert quote.epsilon == bf.Epsilon("0.3") and quote.binding is not None
    assert quote.binding.version == version
    assert quote.binding.epsilon == bf.Epsilon(15)  # an ε that is stated is the most under every promise
    assert quote.affordable == 0 and quote.remaining // quote.epsilon > 0
    assert f"Version {version} of the policy is still promised" in str(quote)
    assert "costs ε 15, and ε 9.9 is left" in str(quote)
    assert Quote.from_plain(quote.to_plain()) == quote
    with pytest.raises(BudgetExhausted) as refused:
        question.ask()
    (smaller,) = [fit for fit in quote.fits if fit.epsilon is not None]
    assert smaller.words in refused.value.fixes
    fitting = ws["salaries"]["salary"].cumulative(bins=200).spend(str(smaller.epsilon)).using("laplace")
    assert fitting.quote().affordable == 1
    fitting.ask()
    assert ws.verify() == []


def test_a_larger_error_that_is_advised_fits_under_every_promise(ws: Workspace) -> None:
    loosened(ws)
    salary = ws["salaries"]["salary"]
    quote = salary.cumulative(bins=200).accurate_to(20).using("laplace").quote()
    assert quote.affordable == 0 and quote.epsilon < quote.remaining
    errors = [fit.error for fit in quote.fits if fit.error is not None]
    assert errors
    salary.cumulative(bins=200).accurate_to(errors[0]).using("laplace").ask()


def test_what_an_earlier_promise_hides_is_not_free(ws: Workspace) -> None:
    ws["salaries"].publish(within(10))
    ask(ws, "histogram", "0.1")
    ws["salaries"].publish(groups(100), confirm=True)
    quote = ws["salaries"]["salary"].histogram(width=100).spend("0.1").quote()
    assert not quote.epsilon and not quote.exact and quote.affordable == 99
    assert quote.binding is not None and quote.binding.epsilon == bf.Epsilon("0.1")


def test_a_batch_is_refused_as_a_whole_where_a_promise_does_not_reach(ws: Workspace) -> None:
    version = loosened(ws)
    salary, spent = ws["salaries"]["salary"], ws.budget("salaries").spent
    questions = [salary.cumulative(bins=bins).spend("6").using("laplace") for bins in (200, 100)]
    assert all(question.quote().affordable for question in questions)
    with pytest.raises(BudgetExhausted, match=f"version {version}.*still promised"):
        ws.batch(*questions).ask()
    assert ws.budget("salaries").spent == spent
