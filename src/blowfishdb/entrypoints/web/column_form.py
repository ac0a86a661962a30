"""The columns of an import as a form: what is proposed, what the curator typed, and what is wrong with it.

A form has no types: every field is a text, and stays the text that was typed until all columns can be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, final, get_args

from starlette.datastructures import FormData

from blowfishdb.adapters.schema_guess import OTHER
from blowfishdb.adapters.schema_proposal import Proposal, ProposedColumn
from blowfishdb.core import codec
from blowfishdb.core.attribute import Attribute
from blowfishdb.core.dates import Unit
from blowfishdb.core.errors import InvalidInput
from blowfishdb.entrypoints.api.reading import read
from blowfishdb.entrypoints.web.forms import text, ticked
from blowfishdb.missing_prices import missing_prices

KINDS: Final = (
    ("integer", "whole numbers"),
    ("real", "numbers"),
    ("date", "dates"),
    ("category", "a list of values"),
    ("boolean", "false and true"),
)
UNITS: Final = tuple((unit, f"one {unit}") for unit in get_args(Unit))
MISSING: Final = (
    ("none", "there are none"),
    ("value", "a place of their own; who has none is secret"),
    ("public", "a place of their own; who has none is not secret"),
    ("drop", "the row is left out"),
    ("clamp", "count as the lowest value, and every answer says so"),
)
SOME_MISSING: Final = (
    ("value", "Yes, secret: a place of their own, as hidden as the values"),
    ("public", "No, everyone may know who has none: their number is exact and free"),
    ("drop", "Leave these rows out of questions about this column"),
    ("clamp", "Count them as the lowest value (the last one of a list); every answer says so"),
)
OUTSIDE: Final = (("clamp", "count as the nearest limit"), ("drop", "the row is left out"))
_MOST_COLUMNS: Final = 2_000


@final
@dataclass(frozen=True)
class ColumnForm:
    """One column as the page shows it; ``problem`` says what to mend."""

    name: str
    type_text: str
    note: str
    use: bool
    kind: str = "integer"
    lo: str = ""
    hi: str = ""
    step: str = ""
    unit: str = "day"
    values: str = ""
    ordered: bool = False
    missing: str = ""
    outside: str = ""
    confirmed: bool = False
    problem: str = ""
    some: bool = False
    """Whether values are missing, so that there is a question about them."""
    prices: str = ""
    rare: str = ""
    """Values that are folded into "other" because few rows have them, one on each line."""

    @classmethod
    def proposed(cls, column: ProposedColumn) -> ColumnForm:
        """As proposed, with nothing confirmed; what looks like an identifier is left out."""
        use = column.attribute is not None and not column.looks_like_id
        form = cls(column.name, column.type_text, column.note, use)
        if column.attribute is None:
            return form
        said = codec.plain(column.attribute)
        return replace(
            form,
            kind=said["kind"],
            lo=_shown(said.get("lo", "")),
            hi=_shown(said.get("hi", "")),
            step=_shown(said.get("step", said.get("grid", ""))),
            unit=said.get("unit", "day"),
            values="\n".join(str(value) for value in said.get("values", ())),
            ordered=bool(said.get("ordered", False)),
            missing=said["missing"],
            outside=said["outside"],
            some=column.some_missing,
            prices=str(missing_prices(column.attribute)) if column.some_missing else "",
            rare="\n".join(column.rare),
        )

    @classmethod
    def sent(cls, form: FormData, number: int) -> ColumnForm:
        """As typed; fields end with the number of their column."""

        def of(field: str) -> str:
            return text(form, f"{field}-{number}")

        return cls(
            name=of("name"),
            type_text=of("type"),
            note=of("note"),
            use=ticked(form, f"use-{number}"),
            kind=of("kind"),
            lo=of("lo"),
            hi=of("hi"),
            step=of("step"),
            unit=of("unit") or "day",
            values=of("values").replace("\r\n", "\n"),
            ordered=ticked(form, f"ordered-{number}"),
            missing=of("missing"),
            outside=of("outside"),
            confirmed=ticked(form, f"confirmed-{number}"),
            some=ticked(form, f"some-{number}"),
            prices=of("prices"),
            rare=of("rare").replace("\r\n", "\n"),
        )

    def attribute(self) -> Attribute:
        """The declaration; raises with what to mend."""
        if self.kind != "boolean" and not self.confirmed:
            raise InvalidInput(f"Confirm that the limits of '{self.name}' may be known, or leave it out.")
        said: dict[str, Any] = {"kind": self.kind}
        if self.kind in ("integer", "real", "date"):
            if not self.lo or not self.hi:
                raise InvalidInput(f"'{self.name}' has no limits: type the lowest and the highest value.")
            whole = self.kind == "integer"
            said |= {"lo": _whole(self.lo), "hi": _whole(self.hi)} if whole else self._ends()
            if self.kind == "date":
                said["unit"] = self.unit
            elif self.step:
                said["step" if whole else "grid"] = _whole(self.step) if whole else self.step.replace(",", "")
        if self.kind == "category":
            listed = [line.strip() for line in self.values.splitlines() if line.strip()]
            folded = bool(self.rare) and self.outside == "clamp" and OTHER in listed
            said |= {"values": [*(v for v in listed if v != OTHER), OTHER] if folded else listed}
            said["ordered"] = self.ordered
        said |= {
            name: given for name, given in (("missing", self.missing), ("outside", self.outside)) if given
        }
        return read(f"declaration of '{self.name}'", lambda: codec.attribute(said))

    def _ends(self) -> dict[str, str]:
        ends = {"lo": self.lo, "hi": self.hi}
        return ends if self.kind == "date" else {name: end.replace(",", "") for name, end in ends.items()}


def proposed_columns(proposal: Proposal) -> list[ColumnForm]:
    """Every column of a source, as it is proposed."""
    return [ColumnForm.proposed(column) for column in proposal.columns]


def sent_columns(form: FormData) -> list[ColumnForm]:
    """Every column, as it came back."""
    count = text(form, "columns", "0")
    if not count.isdecimal() or int(count) > _MOST_COLUMNS:
        raise InvalidInput("This is not the form that was made for this source.", fixes=("start over",))
    return [ColumnForm.sent(form, number) for number in range(int(count))]


def checked(columns: Sequence[ColumnForm]) -> tuple[list[ColumnForm], dict[str, Attribute]]:
    """The columns with what is wrong about each, and those that could be read."""
    shown: list[ColumnForm] = []
    found: dict[str, Attribute] = {}
    for column in columns:
        if not column.use:
            shown.append(column)
            continue
        try:
            found[column.name] = column.attribute()
            shown.append(column)
        except InvalidInput as error:
            shown.append(replace(column, problem=str(error)))
    return shown, found


def _shown(value: object) -> str:
    """A number as people type it: a fraction with a power of ten below the line as a decimal."""
    from fractions import Fraction

    said = str(value)
    if "/" not in said:
        return said
    exact = Fraction(said)
    return said if Fraction(str(float(exact))) != exact else f"{float(exact):.12f}".rstrip("0")


def _whole(typed: str) -> int:
    try:
        return int(typed.replace(",", "").replace("_", "").replace("$", ""))
    except ValueError:
        raise InvalidInput(f"'{typed[:40]}' is not a whole number.") from None
