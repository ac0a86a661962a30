"""Charges to the dataset ``people``, as short as tests need them."""

from __future__ import annotations

from blowfishdb.adapters.store.ledger import Ledger
from blowfishdb.adapters.store.values import Charge
from blowfishdb.core.budget import Epsilon


def reserve(ledger: Ledger, amount: str, question: str = "q", user: str = "ana") -> Charge:
    return ledger.reserve("people", user, Epsilon(amount), question, {"kind": "histogram"})


def spend(ledger: Ledger, amount: str, question: str = "q", user: str = "ana", answer: str = "[1]") -> Charge:
    return ledger.settle(ledger.mark_reading(reserve(ledger, amount, question, user)), answer)
