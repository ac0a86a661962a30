"""Columns as people declare them: a kind, limits or values, and what becomes of everything else."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from blowfishdb.core.errors import InvalidInput
from blowfishdb.entrypoints.cli.here import read_text

if TYPE_CHECKING:
    from blowfishdb.core.attribute import Attribute
    from blowfishdb.core.domain import Domain


class Kind(StrEnum):
    """What a column holds."""

    integer = "integer"
    real = "real"
    category = "category"
    date = "date"
    boolean = "boolean"


class Missing(StrEnum):
    """What becomes of a missing value."""

    none = "none"
    value = "value"
    public = "public"
    drop = "drop"
    clamp = "clamp"


class Outside(StrEnum):
    """What becomes of a value beyond the limits."""

    clamp = "clamp"
    drop = "drop"


@final
@dataclass(frozen=True)
class Declaration:
    """What was typed about a column; None where nothing was."""

    kind: Kind | None = None
    limits: str | None = None
    step: str | None = None
    unit: str | None = None
    ordered: bool | None = None
    missing: Missing | None = None
    outside: Outside | None = None

    def over(self, now: Attribute | None) -> Attribute:
        """The column as it was, with what was typed in place of it."""
        from blowfishdb.core import codec

        said: dict[str, Any] = {} if now is None else codec.plain(now)
        if self.kind is not None and said.get("kind") != self.kind.value:
            said = {"kind": self.kind.value}
        if "kind" not in said:
            raise InvalidInput("Say what the column holds.", fixes=tuple(f"--type {k.value}" for k in Kind))
        said |= self._values(said["kind"])
        for name, choice in (("missing", self.missing), ("outside", self.outside)):
            if choice is not None:
                said[name] = choice.value
        try:
            return codec.attribute(said)
        except (TypeError, ValueError, KeyError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput(
                f"A column of kind {said['kind']} is not declared like that.",
                fixes=(
                    "--domain 0:200000 --step 1",
                    "--domain north,south --ordered",
                    "--domain 2020-01-01..2024-12-31",
                ),
            ) from None

    def _values(self, kind: str) -> dict[str, Any]:
        said: dict[str, Any] = {}
        read = _whole if kind == "integer" else str.strip
        if self.limits is not None and kind == "category":
            said["values"] = [value.strip() for value in self.limits.split(",")]
        elif self.limits is not None:
            said["lo"], said["hi"] = (read(end) for end in _ends(self.limits))
        if self.step is not None:
            said["grid" if kind == "real" else "step"] = read(self.step)
        if self.unit is not None:
            said["unit"] = self.unit
        if self.ordered is not None:
            said["ordered"] = self.ordered
        return said


def _ends(limits: str) -> tuple[str, str]:
    low, found, high = limits.partition(".." if ".." in limits else ":")
    if not found:
        raise InvalidInput(
            f"'{limits}' is not a lowest and a highest value.", fixes=("0:200000", "0..200000")
        )
    return low, high


def _whole(text: str) -> int:
    try:
        return int(text.replace(",", "").replace("_", ""))
    except ValueError:
        raise InvalidInput(f"'{text.strip()}' is not a whole number.") from None


def domain_file(file: Path) -> Domain:
    """Columns from a YAML or JSON file, in the form in which ``schema show --json`` writes them."""
    import yaml

    from blowfishdb.core import codec

    try:
        said = yaml.safe_load(read_text(file))
        return codec.domain(said["domain"] if "domain" in said and "kind" not in said["domain"] else said)
    except InvalidInput:
        raise
    except (yaml.YAMLError, TypeError, ValueError, KeyError, AttributeError):
        raise InvalidInput(
            f"'{file}' does not declare columns.",
            fixes=("salary: {kind: integer, lo: 0, hi: 200000, step: 1}",),
        ) from None
