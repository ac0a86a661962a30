"""Two columns that are a place: hidden together, within so many cells, with a map of how far that reaches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, final

from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import InvalidGraph
from blowfishdb.core.graphs import Grid
from blowfishdb.core.policy.columns import grouped, shown_cell, ungrouped
from blowfishdb.core.policy.policy import Policy, parts_of

_USUAL: Final = "5"
_SIDE: Final = 240  # of the map, along its longer side
_LEAST: Final = 48  # along the other one
_FEW: Final = 60  # cells of a side that are drawn one by one
_LONGEST: Final = 18  # digits


@final
@dataclass(frozen=True)
class PlaceForm:
    """The two columns, or none; ``offered`` are pairs that can be a place: neighbours with an order, whose
    values are never missing."""

    offered: tuple[tuple[str, str], ...]
    columns: tuple[str, ...] = ()
    within: str = _USUAL

    @classmethod
    def of(cls, policy: Policy) -> PlaceForm:
        """What a policy says, if it hides one place and says nothing else about several columns."""
        form = cls(_offered(policy.domain))
        several = [part for part in parts_of(policy).parts if len(part.columns) > 1]
        if len(several) != 1 or several[0].columns not in form.offered:
            return form
        graph, names = several[0].graph, several[0].columns
        shape = tuple(policy.domain[name].size for name in names)
        if not isinstance(graph, Grid) or graph.shape != shape or set(graph.widths) != {1}:
            return form
        return replace(form, columns=names, within=grouped(graph.theta))

    def changed(self, fields: Mapping[str, str]) -> PlaceForm:
        """After someone filled it in; a pair is named by its first column."""
        if "place" not in fields:
            return replace(self, columns=())
        chosen = next((pair for pair in self.offered if pair[0] == fields["place"]), ())
        return replace(self, columns=chosen, within=fields.get("place-within", self.within).strip())

    def query(self) -> dict[str, str]:
        """As it stands in an address."""
        if not self.offered:
            return {}
        first = self.columns[0] if self.columns else ""
        return {"place": first, "place-within": self.within} if first else {"place": ""}

    @property
    def radius(self) -> int:
        """How many cells apart, along both columns together."""
        typed = ungrouped(self.within)
        if not typed.isdecimal() or len(typed) > _LONGEST or not int(typed):
            raise InvalidGraph(
                "Say within how many cells two places are hidden from each other.",
                fixes=("a number such as 5",),
            )
        return int(typed)

    def graph(self, domain: Domain) -> Grid:
        """Places that are so near to each other are hidden from each other."""
        return Grid([domain[name].size for name in self.columns], self.radius)


def _offered(domain: Domain) -> tuple[tuple[str, str], ...]:
    fit = [name for name, each in domain.columns if each.ordered and not each.has_missing_cell]
    pairs = zip(domain.names, domain.names[1:], strict=False)
    return tuple((first, second) for first, second in pairs if first in fit and second in fit)


@final
@dataclass(frozen=True)
class PlaceMap:
    """All declared places in little, and which of them cannot be told from the one in the middle."""

    columns: tuple[str, ...]
    size: tuple[int, int]
    middle: tuple[int, int]
    radius: int
    corners: tuple[tuple[str, str], tuple[str, str]]
    """The lowest and the highest value of each column."""
    at: tuple[str, str]

    @classmethod
    def of(cls, form: PlaceForm, domain: Domain) -> PlaceMap:
        """The map of a form that makes sense."""
        first, second = (domain[name] for name in form.columns)
        size = (first.size, second.size)
        middle = (first.size // 2, second.size // 2)
        ends = [(shown_cell(each, 0), shown_cell(each, each.size - 1)) for each in (first, second)]
        at = (shown_cell(first, middle[0]), shown_cell(second, middle[1]))
        return cls(form.columns, size, middle, form.radius, (ends[0], ends[1]), at)

    @property
    def hidden(self) -> int:
        """How many places cannot be told from the middle one, itself among them."""
        (width, height), (x, y), total = self.size, self.middle, 0
        for column in range(max(0, x - self.radius), min(width, x + self.radius + 1)):
            left = self.radius - abs(column - x)
            total += min(height - 1, y + left) - max(0, y - left) + 1
        return total

    @property
    def sides(self) -> tuple[float, float]:
        """How large it is drawn: both columns alike, unless one would be too thin to be seen."""
        scale = _SIDE / max(self.size)
        return max(_LEAST, self.size[0] * scale), max(_LEAST, self.size[1] * scale)

    @property
    def cell(self) -> tuple[float, float]:
        """How large a cell is drawn."""
        return self.sides[0] / self.size[0], self.sides[1] / self.size[1]

    @property
    def lines(self) -> bool:
        """Whether cells are large enough to be drawn one by one."""
        return max(self.size) <= _FEW

    @property
    def center(self) -> tuple[float, float]:
        """Where the middle place is drawn, the second column upwards."""
        return (self.middle[0] + 0.5) * self.cell[0], self.sides[1] - (self.middle[1] + 0.5) * self.cell[1]

    @property
    def outline(self) -> str:
        """The points around all that is hidden."""
        reach, (x, y), (wide, high) = self.radius + 0.5, self.center, self.cell
        around = ((0, -1), (1, 0), (0, 1), (-1, 0))
        return " ".join(f"{x + a * reach * wide:.1f},{y + b * reach * high:.1f}" for a, b in around)

    @property
    def words(self) -> str:
        """What the map shows."""
        places = f"{grouped(self.hidden)} of {grouped(self.size[0] * self.size[1])} places"
        return f"Whoever is at {self.at[0]}, {self.at[1]} could as well be at any of {places}."
