"""Publishing: a policy becomes a promise, counts what was answered before, and may be kept beside newer ones.

A new policy is first charged for the answers so far. One that hides less than the policy before it does not
end what was promised: that stays, and new answers have to fit under both, until it is withdrawn in public.

What answers so far have lost, under whichever policy: the price of changing one's mind (REUSE §3).

Answers that are out keep following the policy of their day. A new policy is therefore first charged for all
of them: what they lose between two values that the new policy hides.

Earlier promises that are still kept: what a new answer may cost so that it fits under each of them.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any, Final, final

import numpy as np

from blowfishdb.adapters.store.catalogue import Policies
from blowfishdb.adapters.store.ledger import Ledger
from blowfishdb.adapters.store.values import Charge, Event, State
from blowfishdb.core.budget import NANO, Epsilon
from blowfishdb.core.constraints.under_policy import check_consistent
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import BudgetExhausted, PolicyConflict, TooLarge
from blowfishdb.core.policy import codec
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.policy.statements import PolicyDifference
from blowfishdb.core.policy.words import difference, sentences, stays_promised
from blowfishdb.mechanisms.best import FROM_KNOWN
from blowfishdb.mechanisms.losses import ByDistance, ByRows, Kernel, Tightest
from blowfishdb.mechanisms.reuse import StoredRelease
from blowfishdb.mechanisms.reuse.stored import stacked
from blowfishdb.mechanisms.summed import Added, proportions
from blowfishdb.mechanisms.synthesis import NAMES
from blowfishdb.mechanisms.total_loss import WorstLoss, total_loss
from blowfishdb.messages.policies import EarlierPolicy, PastLoss
from blowfishdb.messages.quotes import Quote, UnderPromise
from blowfishdb.messages.synthetic_table import stored_synthesis
from blowfishdb.service.records import DatasetEntry, Records

FROM_STORED: Final = "From stored answers"
"""The mechanism of answers that follow from others by arithmetic, and lose nothing more."""
_LOSE_NOTHING: Final = (FROM_STORED, FROM_KNOWN)
_SYNTHETIC: Final = frozenset(NAMES.values())


@final
@dataclass(frozen=True, eq=False)
class History:
    """The kernels of everything that was ever answered about a dataset."""

    kernels: tuple[Kernel, ...]
    rows: tuple[int, ...]
    """For each kernel, which rows it is about: those with the same number are about the same."""
    last_charge: int
    paid: Epsilon
    """What was charged for it and cannot be given back."""
    tables: tuple[Domain, ...] = ()
    """For each kernel, the columns of the table that was counted, where there are several."""

    def under(self, policy: Policy) -> PastLoss:
        """What it lost between values that ``policy`` hides.

        A person may have one value in some rows and another in later ones, so losses are added up pair by
        pair only where answers are about the same rows. Those of several tables are about other rows: each
        of them may change along an edge of its own.
        """
        tables = self.tables or (policy.domain,) * len(self.kernels)
        about: dict[Domain, dict[int, list[Kernel]]] = defaultdict(lambda: defaultdict(list))
        for table, rows, kernel in zip(tables, self.rows, self.kernels, strict=True):
            about[table][rows].append(kernel)
        losses = []
        for table, groups in about.items():
            seen = policy if table == policy.domain else policy.onto(table)
            losses += [total_loss(tuple(kernels), seen) for kernels in _separate(groups.values())]
        return _past(losses or [total_loss((), policy)])


def _separate(about: Iterable[list[Kernel]]) -> list[list[Kernel]]:
    """Releases by the rows that they are about; what is proportional and alone may be taken together.

    Two such releases lose most between the same values, so the largest loss of both is the sum of theirs.
    """
    separate: list[list[Kernel]] = []
    alone: dict[Hashable, list[Kernel]] = defaultdict(list)
    for kernels in about:
        alike = proportions(kernels[0]) if len(kernels) == 1 else None
        if alike is None:
            separate.append(kernels)
        else:
            alone[alike] += kernels
    return [*separate, *alone.values()]


def past_loss(kernels: tuple[Kernel, ...], policy: Policy) -> PastLoss:
    """What releases lost between values that ``policy`` hides, as the ledger counts it: rounded up."""
    return _past([total_loss(kernels, policy)])


def _past(losses: Sequence[WorstLoss]) -> PastLoss:
    """What releases about other and other rows of the same people lost, one after the other."""
    most = max(losses, key=lambda worst: worst.loss)
    if math.isinf(most.loss):
        return PastLoss(None, most.columns)
    together = sum((Fraction(worst.loss) for worst in losses), Fraction(0))
    return PastLoss(Epsilon.from_nano(math.ceil(together * NANO)), most.columns)


def history(
    ledger: Ledger,
    dataset: str,
    policies: Callable[[int], Policy | None],
    *,
    rows_per_person: int,
    lasting: bool,
    tables: Sequence[DatasetEntry] = (),
) -> History:
    """Every charge as what it lost; ``policies`` by version.

    ``lasting``: rows stay as they are within a snapshot; otherwise each answer is about rows of its own.
    ``tables``: those of a dataset that has several, of which each charge says which one was counted.

    Charges without an answer count too, under way or lost, at the most that they could tell.
    """
    charges = ledger.charges(dataset)
    replaced = {charge.refines for charge in charges if charge.state is State.SETTLED}
    told = [
        charge
        for charge in charges
        if charge.state is not State.VOID
        and charge.id not in replaced  # both releases lose together what the refined one loses
        and charge.detail.get("mechanism") not in _LOSE_NOTHING
    ]
    wanted, of = {charge.id for charge in told}, {table.table_name: table for table in tables}
    answers = {} if tables else _measured(ledger, dataset, wanted, rows_per_person)
    for table in tables:
        answers |= _measured(ledger, table.name, wanted, table.rows_per_person)
    kernels = []
    for charge in told:
        counted = of[charge.detail["table"]] if tables else None
        seen = policies if counted is None else _onto(policies, counted.domain)
        people = rows_per_person if counted is None else counted.rows_per_person
        measured_for = answers.get(charge.id) or _synthetic(ledger, charge, people)
        kernels.append(_kernel(charge, measured_for, seen, people))
    rows = tuple(charge.detail["snapshot"] if lasting else charge.id for charge in told)
    paid = (c.amount for c in charges if c.state not in (State.VOID, State.RESERVED))
    last = max((c.id for c in charges), default=0)
    columns = tuple(of[charge.detail["table"]].domain for charge in told) if tables else ()
    return History(tuple(kernels), rows, last, sum(paid, Epsilon(0)), columns)


def _onto(policies: Callable[[int], Policy | None], domain: Domain) -> Callable[[int], Policy | None]:
    """What policies say of the columns of one table."""

    def policy(version: int) -> Policy | None:
        whole = policies(version)
        return None if whole is None else whole.onto(domain)

    return policy


def _measured(ledger: Ledger, dataset: str, wanted: Set[int], rows_per_person: int) -> dict[int, ByRows]:
    """What was measured for charges with a stored release; of every shape one answer is read."""
    indexed = [r for r in ledger.releases(dataset) if r.measured and r.charge in wanted]
    first = {release.shape: release.charge for release in reversed(indexed)}
    stored = ledger.stored(first.values())
    shapes = {
        shape: measured({**json.loads(stored[charge].answer)["release"], "number": charge}, rows_per_person)
        for shape, charge in first.items()
    }
    return {release.charge: _scaled(shapes[release.shape], release.scales) for release in indexed}


def _synthetic(ledger: Ledger, charge: Charge, rows_per_person: int) -> Kernel | None:
    """What a synthetic table lost: all of its tables, and every choice among them."""
    if charge.detail.get("mechanism") not in _SYNTHETIC:
        return None
    stored = ledger.stored([charge.id]).get(charge.id)
    table = None if stored is None else stored_synthesis(json.loads(stored.answer))
    return None if table is None else Added(table.kernels(rows_per_person))


def _scaled(shape: ByRows, scales: str) -> ByRows:
    """The same rows with the noise of another release; exact rows that nobody was shown come last."""
    own = tuple(_fraction(scale) for scale in json.loads(scales))
    scales_of_all = (*own, *shape.scales[len(own) :])
    return ByRows(shape.axes, shape.rows, scales_of_all, shape.which, shape.rows_per_person)


@lru_cache(maxsize=4096)
def _fraction(text: str) -> Fraction:
    above, _, below = text.partition("/")
    return Fraction(int(above), int(below or 1))


def _kernel(
    charge: Charge, answer: Kernel | None, policies: Callable[[int], Policy | None], rows_per_person: int
) -> Kernel:
    """What one charge lost: by what was measured, if that is stored, and by what was paid for it alone."""
    policy = policies(charge.detail["policy_version"])
    assert policy is not None  # no version is ever deleted
    lost = charge.detail.get("alone", charge.amount)  # in a basket it paid less
    if charge.state is State.SETTLED:
        lost = charge.detail.get("whole", lost)  # with the release that it replaces
    bound = ByDistance(policy, Epsilon(lost))
    return bound if answer is None else Tightest((answer, bound))


def measured(plain: dict[str, object], rows_per_person: int) -> ByRows:
    """The kernel of rows with noise of their own, and of exact ones, from their plain form."""
    release = StoredRelease.from_plain(plain)
    if release.used is None or not release.used.count:
        return ByRows(release.axes, release.rows, release.distinct, release.which, rows_per_person)
    exact = np.full(release.used.count, len(release.distinct))
    rows = stacked(release.rows, release.used)
    which = np.concatenate((release.which, exact))
    return ByRows(release.axes, rows, (*release.distinct, Fraction(0)), which, rows_per_person)


def times_left(
    cost: Epsilon, left: Epsilon, kept: Sequence[UnderPromise], granted: Epsilon | None = None
) -> Fraction | float:
    """For how many such answers there is room: in the budget, under every kept promise, in a grant.

    A release with as many times the noise loses as many times less under each of them. A grant pays the
    largest loss.
    """
    if any(promise.epsilon is None for promise in kept):
        return Fraction(0)
    losses = [(promise.epsilon, promise.remaining) for promise in kept if promise.epsilon is not None]
    rooms = [(cost, left), *losses]
    if granted is not None:
        rooms.append((max(loss for loss, _ in rooms), granted))
    return min((Fraction(room.nano, loss.nano) for loss, room in rooms if loss), default=math.inf)


def told_apart(version: int) -> PolicyConflict:
    return PolicyConflict(
        f"This answer would tell apart exactly what version {version} of the policy hides, and that version "
        "is still promised. Nothing was charged.",
        fixes=("ask the curator to withdraw the earlier promise",),
    )


def lost_under(quotes: Sequence[tuple[str, Quote]]) -> dict[tuple[str, int], Epsilon]:
    """What questions lose together under every promise that is still kept, by dataset and version.

    Without those that would tell apart what a promise hides: they are refused.
    """
    lost: dict[tuple[str, int], Epsilon] = defaultdict(lambda: Epsilon(0))
    for dataset, quote in quotes:
        for promise in quote.promises:
            lost[dataset, promise.version] += promise.epsilon or Epsilon(0)
    return lost


def check_promises(quotes: Sequence[tuple[str, Quote]]) -> None:
    """Questions fit together under every promise that is still kept, before any of them is answered."""
    left = {}
    for dataset, quote in quotes:
        for promise in quote.promises:
            if promise.epsilon is None:
                raise told_apart(promise.version)
            left[dataset, promise.version] = promise.remaining
    for (dataset, version), needed in lost_under(quotes).items():
        if needed > left[dataset, version]:
            raise BudgetExhausted(
                f"Policy version {version} of '{dataset}' is still promised. Under it "
                f"these questions may cost {needed:.3g}, but only {left[dataset, version]:.3g} is left.",
                needed=needed,
                left=left[dataset, version],
                fixes=("fewer questions at once", "larger errors", "ask the curator to withdraw it"),
            )


@final
@dataclass(frozen=True, eq=False)
class Publishing:
    """Everything that happens to the policies of a workspace."""

    ledger: Ledger
    policies: Policies
    records: Records

    def propose(self, name: str, policy: Policy) -> PolicyDifference:
        """What would change, in words."""
        record = self.records[name].whole()
        if policy.domain != record.domain:
            raise PolicyConflict(
                f"This policy is about other columns than '{name}' declares.",
                fixes=("build it from dataset.schema",),
            )
        record.rules.check(policy)
        if policy.constraints is not None:
            with suppress(TooLarge):  # so many answers that only the data can tell
                check_consistent(policy.constraints, policy.domain)
        change = difference(record.policy, policy)
        if not self.ledger.budget(name).used:
            return change
        return replace(change, kept=stays_promised(record.policy_version, change))

    def past(self, name: str, policy: Policy) -> PastLoss:
        """What answers so far lost between values that ``policy`` hides."""
        return self._history(self.records[name].whole()).under(policy)

    def publish(self, name: str, policy: Policy, by: str, *, confirm: bool, withdraw: bool) -> None:
        """Make ``policy`` the one that new answers follow; explained and on record in the ledger."""
        change, record = self.propose(name, policy), self.records[name]
        answered = self._history(record)
        budget = self.ledger.budget(name)  # after the history: no charge is in one and not in the other
        past = answered.under(policy)
        relied_on = bool(budget.used)  # charges under way and lost ones are among them
        ends = relied_on and change.loosens is not False
        matters = relied_on or past.tells
        if matters and not confirm:
            worth = f" worth {budget.spent}" if budget.spent else ""
            raise PolicyConflict(
                f"Answers{worth} were already given under the current policy, and they keep following it: "
                f"what they told stays told. {past.sentence} {' '.join(change.sentences)}"
                f"{'' if withdraw or not change.kept else f' {change.kept}'}",
                fixes=("publish with confirm=True, which is written into the ledger",),
            )
        facts = {
            "from_version": record.policy_version,
            "to_version": record.policy_version + 1,
            "difference": list(change.sentences),
            "spent_before": str(budget.spent),
            "paid": str(answered.paid),
            "confirmed": matters,
            "past": past.to_plain(),
            "kept": ends and not withdraw,
        }
        self.policies.publish(
            name,
            by,
            json.dumps(codec.plain(policy)),
            facts,
            last_charge=answered.last_charge,
            keep=ends and not withdraw,
            withdraw=ends and withdraw,
        )

    def kept(self, name: str) -> list[EarlierPolicy]:
        """Earlier policies that new answers have to fit under too, oldest first."""
        found, record = [], self.records[name]
        for promise in self.policies.kept(record.books):
            policy = self.records.policy(record.books, promise.version)
            assert policy is not None  # no version is ever deleted
            if record.part_of is not None:
                policy = policy.onto(record.domain)
            found.append(EarlierPolicy(promise.version, policy, promise.total, promise.remaining))
        return found

    def remembered(self, name: str) -> tuple[str, ...]:
        """What earlier policies mean for the promise of today, in sentences."""
        said = []
        published = self.ledger.newest(name, "policy")
        if published is not None and _told_before(published.facts):
            version = published.facts["to_version"]
            at_first = f"Policy version {version} was published after answers had been given."
            said.append(f"{at_first} {published.facts.get('past', {}).get('sentence', '')}")
        budget = self.ledger.budget(name)
        if budget.used > budget.total:
            said.append(
                f"That is more than the budget of ε {budget.total:.3g}: nothing more is answered until a "
                "larger one is promised."
            )
        for kept in self.kept(name):
            rules = " ".join(sentences(kept.policy))
            said.append(f"Version {kept.version} of the policy is still promised as well: {rules}")
        return tuple(said)

    def promised(self, name: str) -> tuple[str, ...]:
        """Everything that was ever promised or taken back, in dated sentences, oldest first."""
        steps = self.ledger.events(name, kinds=("budget", "policy", "promise", "withdrawn"))
        return tuple(f"{event.at.date().isoformat()}: {_step(event)}" for event in steps)

    def _history(self, record: DatasetEntry) -> History:
        @cache
        def policy(version: int) -> Policy | None:
            return self.records.policy(record.name, version)

        return history(
            self.ledger,
            record.name,
            policy,
            rows_per_person=record.rows_per_person,
            lasting=record.declared_kind.combined,
            tables=() if record.tables is None else record.asked_tables(),
        )


def _step(event: Event) -> str:
    if event.kind == "budget":
        return f"All answers together may cost at most ε {event.amount}."
    if event.kind == "promise":
        return f"Version {event.facts['version']} of the policy stays promised beside the one that follows."
    if event.kind == "withdrawn":
        return f"The promise of version {event.facts['version']} of the policy was withdrawn."
    said = " ".join(event.facts["difference"])
    past = event.facts["past"]["sentence"] if "past" in event.facts and _told_before(event.facts) else ""
    return f"Version {event.facts['to_version']} of the policy was published. {said} {past}".strip()


def _told_before(facts: Mapping[str, Any]) -> bool:
    """Whether answers had been paid for, or had told apart what the policy hides, when it was published."""
    past = facts.get("past")
    lost = past is not None and (past["epsilon"] is None or bool(Epsilon(past["epsilon"])))
    return lost or bool(Epsilon(facts["spent_before"]))
