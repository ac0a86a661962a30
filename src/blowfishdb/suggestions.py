"""Suggestions: a refusal names only questions that would not be refused as well.

What is suggested is read and priced like any other question, from declarations and policy alone; no row is
read, and nothing is asked of anyone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import final

from blowfishdb.clustering import plan_clusters
from blowfishdb.core.cluster_question import ClusterQuestion
from blowfishdb.core.errors import BlowfishError
from blowfishdb.core.forms import QuestionForm
from blowfishdb.core.policy import Policy
from blowfishdb.mechanisms import Best
from blowfishdb.messages import Request, Terms, in_usual_bins, needs_rows, number_of_rows, over_rows
from blowfishdb.planning import Planner


@final
@dataclass(frozen=True, eq=False)
class Suggestions:
    """Reads what a refusal suggests, on one dataset under its policy."""

    dataset: str
    policy: Policy
    rows_per_person: int
    read: Callable[[str], QuestionForm]
    """The reader that refused."""

    @contextmanager
    def checked(self, *otherwise: str) -> Iterator[None]:
        """A refusal leaves with what can be priced of its suggestions; if nothing can, with ``otherwise``."""
        try:
            yield
        except BlowfishError as refusal:
            kept = tuple(fix for fix in refusal.fixes if self._stands(fix))
            if refusal.fixes and not kept:
                kept = tuple(fix for fix in otherwise if self._stands(fix))
            refusal.fixes = kept
            raise

    def _stands(self, fix: str) -> bool:
        """Whether it is advice in words, or a question that has a price."""
        if not _asks(fix):
            return True
        try:
            return self._priced(self.read(fix))
        except BlowfishError:
            return False

    def _priced(self, form: QuestionForm) -> bool:
        domain = self.policy.domain
        request = Request(self.dataset, form, form.question(domain), Terms().spending(1), "")
        if isinstance(request.question, ClusterQuestion):
            plan_clusters(request.question, request, self.policy, self.rows_per_person)
            return True
        planner = Planner(Best())
        if needs_rows(request):
            total = planner.plan(number_of_rows(request, domain), self.policy, self.rows_per_person)
            if total.cost:
                return False
            request = over_rows(request, domain, 1)
        if form.kind == "quantiles":
            request = in_usual_bins(request, self.policy)
        planner.plan(request, self.policy, self.rows_per_person)
        return True


def _asks(fix: str) -> bool:
    """A SELECT, or a question in its short form: a name and what stands in parentheses."""
    name, opened, _ = fix.partition("(")
    return fix.startswith("SELECT ") or (bool(opened) and name.isidentifier() and ")" in fix)
