"""What the rows of a source demand of every policy over them.

A column that says whose row it is, or that leaves out rows, is the same in all neighbouring databases only
if no policy hides it. Rows that come and go with hidden values make their number a secret, too: someone's
presence then has to be hidden, and no total is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from blowfishdb.core.domain import Domain
from blowfishdb.core.errors import PolicyConflict
from blowfishdb.core.graphs import Explicit, PolicyGraph, Product
from blowfishdb.core.policy import Policy
from blowfishdb.core.policy_parts import own_graph, without_presence


@final
@dataclass(frozen=True)
class RowRules:
    """``public``: declared columns that no policy may hide. ``vary``: hidden values decide which rows there
    are, so every policy hides presence."""

    public: frozenset[str] = frozenset()
    vary: bool = False

    def first_policy(self, domain: Domain) -> Policy:
        """Everything that may be hidden is: the policy of a dataset for which nothing was said yet."""
        whole = Policy.whole_record(domain)
        graph = whole.graph
        if self.public:
            factors: list[PolicyGraph] = [
                Explicit(domain[name].size, ()) if name in self.public else own_graph(whole, name)
                for name in domain.names
            ]
            graph = factors[0] if len(factors) == 1 else Product(*factors)
        return Policy(domain, graph.hide_presence() if self.vary else graph)

    def check(self, policy: Policy) -> None:
        """Refuse a policy that the rows do not bear."""
        if self.vary and not policy.hides_presence:
            raise PolicyConflict(
                "Which rows there are depends on values that may be hidden, so how many there are must not "
                "be known: a policy for this dataset has to hide presence as well.",
                fixes=("hide presence: hide_presence=True", "declare what leaves out rows as public"),
            )
        hidden = [name for name in policy.domain if name in self.public and _hides(policy, name)]
        if hidden:
            raise PolicyConflict(
                f"'{hidden[0]}' was declared public, because it decides which rows there are or whose they "
                "are; no policy for this dataset can hide it.",
                fixes=(f"hide nothing of '{hidden[0]}'", "a dataset without that column"),
            )
        if self.public and policy.constraints is not None:
            raise PolicyConflict(
                "Counts that everyone knows tie records together, so that a public column could change with "
                "others; this dataset has columns that must not.",
                fixes=("a policy that says nothing about what is known",),
            )


def _hides(policy: Policy, column: str) -> bool:
    return without_presence(own_graph(policy, column)).edge_count > 0
