"""Publishing: a policy becomes a promise, counts what was answered before, and may be kept beside newer ones.

A new policy is first charged for the answers so far. One that hides less than the policy before it does not
end what was promised: that stays, and new answers have to fit under both, until it is withdrawn in public.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, final

from blowfishdb.adapters.ledger import Event, Ledger
from blowfishdb.adapters.policies import Policies
from blowfishdb.core import codec
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.constraints.under_policy import check_consistent
from blowfishdb.core.errors import PolicyConflict, TooLarge
from blowfishdb.core.policy import Policy
from blowfishdb.core.policy_words import PolicyDifference, difference, sentences
from blowfishdb.history import History, Past, history
from blowfishdb.keeping import Kept
from blowfishdb.records import DatasetRecord, Records


@final
@dataclass(frozen=True, eq=False)
class Publishing:
    """Everything that happens to the policies of a workspace."""

    ledger: Ledger
    policies: Policies
    records: Records

    def propose(self, name: str, policy: Policy) -> PolicyDifference:
        """What would change, in words."""
        record = self.records[name]
        if policy.domain != record.domain:
            raise PolicyConflict(
                f"This policy is about other columns than '{name}' declares.",
                fixes=("build it from dataset.schema",),
            )
        record.rules.check(policy)
        if policy.constraints is not None:
            with suppress(TooLarge):  # so many answers that only the data can tell
                check_consistent(policy.constraints, policy.domain)
        return difference(record.policy, policy)

    def past(self, name: str, policy: Policy) -> Past:
        """What answers so far lost between values that ``policy`` hides."""
        return self._history(self.records[name]).under(policy)

    def publish(self, name: str, policy: Policy, by: str, *, confirm: bool, withdraw: bool) -> None:
        """Make ``policy`` the one that new answers follow; explained and on record in the ledger."""
        change, record, budget = self.propose(name, policy), self.records[name], self.ledger.budget(name)
        answered = self._history(record)
        past = answered.under(policy)
        relied_on = bool(budget.used)  # charges under way and lost ones are among them
        matters = relied_on or bool(past.loss)
        if matters and not confirm:
            worth = f" worth {budget.spent}" if budget.spent else ""
            raise PolicyConflict(
                f"Answers{worth} were already given under the current policy, and they keep following it: "
                f"what they told stays told. {past.sentence} {' '.join(change.sentences)}",
                fixes=("publish with confirm=True, which is written into the ledger",),
            )
        ends = relied_on and change.loosens is not False
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

    def kept(self, name: str) -> list[Kept]:
        """Earlier policies that new answers have to fit under too, oldest first."""
        found = []
        for promise in self.policies.kept(name):
            policy = self.records.policy(name, promise.version)
            assert policy is not None  # no version is ever deleted
            found.append(Kept(promise.version, policy, promise.total, promise.remaining))
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

    def _history(self, record: DatasetRecord) -> History:
        def policy(version: int) -> Policy | None:
            return self.records.policy(record.name, version)

        lasting = record.declared_kind.combined
        return history(self.ledger, record.name, policy, people=record.rows_per_person, lasting=lasting)


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
