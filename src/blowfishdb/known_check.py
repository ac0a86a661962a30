"""Whether the data satisfies the counts that a policy takes to be known; for the curator only.

True counts are shown, so that somebody looked is written into the ledger, as for a preview.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from blowfishdb.core.axis import Axis
from blowfishdb.core.constraints import Constraints, Count, Marginal, Range
from blowfishdb.core.constraints.declared import table_bins
from blowfishdb.core.constraints.known_cells import known_on_boxes, refined
from blowfishdb.core.domain import Domain
from blowfishdb.core.policy import Policy
from blowfishdb.core.projection import CellQuery
from blowfishdb.mechanisms.curator_view import true_counts
from blowfishdb.service import Service


@final
@dataclass(frozen=True)
class Unsatisfied:
    """A declared count that the data does not satisfy."""

    what: str
    declared: int
    true: int


@final
@dataclass(frozen=True)
class KnownCheck:
    """CURATOR VIEW, TRUE DATA: how many declared counts were looked at, and which are wrong."""

    checked: int
    wrong: tuple[Unsatisfied, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was found, in words."""
        if not self.checked:
            return ("Nothing is declared with an answer, so there is nothing to check.",)
        if not self.wrong:
            return (f"The data satisfies all {self.checked:,} declared counts.",)
        first = f"The data does not satisfy {len(self.wrong):,} of {self.checked:,} declared counts."
        return (first, *(f"{w.what}: declared {w.declared:,}, counted {w.true:,}." for w in self.wrong))

    def to_plain(self) -> dict[str, Any]:
        """JSON-ready data; for the curator only."""
        wrong = [{"what": w.what, "declared": w.declared, "true": w.true} for w in self.wrong]
        return {"checked": self.checked, "wrong": wrong, "sentences": list(self.sentences)}

    @classmethod
    def from_plain(cls, said: Mapping[str, Any]) -> KnownCheck:
        """From its plain form."""
        return cls(said["checked"], tuple(Unsatisfied(**wrong) for wrong in said["wrong"]))


def check_known(service: Service, dataset: str, user: str, policy: Policy) -> KnownCheck:
    """Counts what is declared with an answer, each thing by itself: one statement for each."""
    record = service.datasets(dataset)
    parts = [] if policy.constraints is None else [*_answered(policy.constraints)]
    if not parts:
        return KnownCheck(0, ())
    service.ledger.note(dataset, user, "preview", {"question": "whether the declared counts are true"})
    backend, checked = service.backend(record), 0
    wrong: list[Unsatisfied] = []
    for part in parts:
        boxes = refined(part, policy.domain, {})
        known = known_on_boxes(part, policy.domain, boxes)
        axes = tuple(Axis(name, policy.domain[name], bins) for name, bins in boxes.items())
        counted = true_counts(known, backend.prepare(CellQuery(axes)).count())
        for row, (declared, true) in enumerate(zip(known.answers[0], counted.tolist(), strict=True)):
            checked += declared is not None
            if declared is not None and declared != true:
                wrong.append(Unsatisfied(_row(part, policy.domain, row), declared, int(true)))
    return KnownCheck(checked, tuple(wrong))


def _answered(known: Constraints) -> Iterator[Constraints]:
    """Everything that is declared with an answer, one thing at a time."""
    yield from (Constraints(marginals=[table]) for table in known.marginals if table.answers is not None)
    yield from (Constraints(counts=[count]) for count in known.counts if count.answer is not None)
    yield from (Constraints(ranges=[box]) for box in known.ranges if box.answer is not None)


def _row(part: Constraints, domain: Domain, row: int) -> str:
    """What one declared count is about, in words."""
    match (*part.marginals, *part.counts, *part.ranges):
        case (Marginal() as table,):
            bins = table_bins(table, domain)
            places = np.unravel_index(row, tuple(group.count for group in bins.values()))
            named = (
                f"'{name}' {Axis(name, domain[name], group).labels()[int(place)]}"
                for (name, group), place in zip(bins.items(), places, strict=True)
            )
            return ", ".join(named)
        case (Count() as count,):
            return str(count.where)
        case (Range() as box,):
            return str(box.where)
    raise AssertionError
