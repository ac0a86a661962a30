"""Samples: synthetic datasets to try things with, about nobody."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from blowfishdb.adapters.private_files import make_private
from blowfishdb.adapters.synthetic import PEOPLE, salary_domain, write_salaries
from blowfishdb.adapters.synthetic_checkins import CHECKINS, checkin_domain, write_checkins
from blowfishdb.core.domain import Domain


@final
@dataclass(frozen=True)
class Sample:
    """A synthetic dataset: how it is made, and what its rows may hold."""

    name: str
    about: str
    write: Callable[[Path], None]
    domain: Callable[[], Domain]

    def file(self, folder: Path) -> Path:
        """Where its rows are."""
        return folder / f"{self.name}.duckdb"

    def make(self, folder: Path) -> None:
        """Its file; half a file is never mistaken for it."""
        part = folder / f"{self.name}.part"
        part.unlink(missing_ok=True)
        self.write(part)
        make_private(part)
        part.replace(self.file(folder))


SAMPLES: Final = (
    Sample("salaries", f"{PEOPLE:,} synthetic salaries", write_salaries, salary_domain),
    Sample("checkins", f"{CHECKINS:,} synthetic check-ins on a map", write_checkins, checkin_domain),
)
