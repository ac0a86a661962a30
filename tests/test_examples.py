"""Every example in a docstring runs, and every public class has one.

An example is written as in a Python session (``>>>``) in the docstring of a class or of a function, and this
test finds it there. It sees ``bf``, ``np`` and, if it mentions one of them, ``ws`` (a workspace of its own),
``people`` (a dataset in it) and ``folder`` (where both are). Another name is a function in ``NAMES``; a class
that must have an example is a line in ``SHOWN``. Noise is secure, so an example prints prices and promises,
never noisy numbers; ``...`` stands for any text.
"""

from __future__ import annotations

import doctest
import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import house

import blowfishdb as bf
from blowfishdb import mechanisms
from blowfishdb.core import graphs, workloads
from blowfishdb.messages import answers, policies, quotes
from blowfishdb.workspace import asking, datasets, embedded


def is_kind(value: object, base: type) -> bool:
    """Whether it is a class below ``base`` that can be made."""
    return isinstance(value, type) and issubclass(value, base) and value is not base


SHOWN: tuple[type, ...] = (
    embedded.Workspace,
    datasets.Dataset,
    datasets.DatasetBudget,
    datasets.Batch,
    asking.Columns,
    asking.Asking,
    answers.Answer,
    answers.Receipt,
    answers.Comparison,
    policies.EarlierPolicy,
    policies.PastLoss,
    quotes.Quote,
    quotes.Explanation,
    quotes.Tradeoff,
    *(bf.Integer, bf.Real, bf.Category, bf.Boolean, bf.Date, bf.Domain, bf.Bins, bf.Epsilon),
    *(bf.Policy, bf.Constraints),
    *(kind for kind in vars(graphs).values() if is_kind(kind, graphs.PolicyGraph)),
    *(kind for kind in vars(workloads).values() if is_kind(kind, workloads.Workload)),
    *(type(mechanism) for mechanism in (*mechanisms.NAMED.values(), *mechanisms.DATA_DEPENDENT.values())),
)
"""Public classes: whoever reads ``help`` sees how one is used."""

REGIONS = ("north", "south", "west")


class Names:
    """What examples are about: made when an example mentions it, ended after it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ws: embedded.Workspace | None = None

    def ws(self) -> embedded.Workspace:
        """2,000 people; salaries are hidden within 1,000, everything else altogether; the budget is 5."""
        if self._ws is None:
            rows = "".join(f"{18 + i % 60},{137 * i % 100_000},{REGIONS[i % 3]}\n" for i in range(2_000))
            (self.folder / "people.csv").write_text(f"age,salary,region\n{rows}")
            domain = bf.Domain(
                age=bf.Integer(18, 90), salary=bf.Integer(0, 99_999), region=bf.Category(REGIONS)
            )
            self._ws = bf.open(self.folder / "work.blowfish")
            people = self._ws.add_dataset("people", self.folder / "people.csv", domain=domain)
            people.publish(people.hiding_within("salary", 1_000))
            people.budget.set(5)
        return self._ws

    def people(self) -> datasets.Dataset:
        """The dataset of the workspace."""
        return self.ws()["people"]

    def end(self) -> None:
        """Let go of the files."""
        if self._ws is not None:
            self._ws.close()


NAMES: dict[str, Callable[[Names], Any]] = {
    "ws": Names.ws,
    "people": Names.people,
    "folder": lambda names: names.folder,
}


@cache
def examples() -> dict[str, doctest.DocTest]:
    """Every docstring of the package that has an example, by where it stands."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    written = [name for name, path in house.modules().items() if ">>> " in path.read_text(encoding="utf-8")]
    found = {
        test.name: test
        for name in written
        for test in finder.find(import_module(f"blowfishdb.{name}"))
        if test.examples
    }
    assert found
    return found


@pytest.fixture
def names(tmp_path: Path) -> Iterator[Names]:
    made = Names(tmp_path)
    yield made
    made.end()


@pytest.mark.parametrize("where", sorted(examples()))
def test_an_example_runs(where: str, names: Names) -> None:
    test = examples()[where]
    words = set(re.findall(r"\w+", "".join(example.source for example in test.examples)))
    given = {name: make(names) for name, make in NAMES.items() if name in words}
    test.globs = {"bf": bf, "np": np, **given}
    told: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).run(
        test, out=told.append
    )
    assert not told, "".join(told)


@pytest.mark.parametrize("kind", SHOWN, ids=lambda kind: kind.__name__)
def test_a_public_class_has_an_example(kind: type) -> None:
    assert f"{kind.__module__}.{kind.__qualname__}" in examples()
