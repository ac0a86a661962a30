"""The house keeps its shape: no circles, four files that open a secret, a picture that is true."""

from __future__ import annotations

import ast
from collections import Counter

import pytest
from benchmarks import house

OPENERS = {
    "core.secret",
    "mechanisms.plan",
    "mechanisms.sums",
    "mechanisms.kmeans.rounds",
    "mechanisms.synthesis.rounds",
    "mechanisms.curator_view",
}
"""Where one is made; where counts, sums, clusters and synthetic tables get noise; what the curator sees."""
SMALL = 40
OWN_SUBJECT = {
    "core.secret": "what must not leak has a file that can be read in a minute",
    "mechanisms.curator_view": "the one place that shows true answers",
}


def test_six_files_open_a_secret() -> None:
    opening = {
        name
        for name, path in house.modules().items()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Attribute) and node.attr == "reveal")
        or (isinstance(node, ast.FunctionDef) and node.name == "reveal")
    }
    assert opening == OPENERS


def test_nobody_overrides_how_counts_are_opened() -> None:
    from blowfishdb.mechanisms.plan import DataDependentPlan, Plan

    for base in (Plan, DataDependentPlan):
        for name in ("observe", "release"):
            assert getattr(getattr(base, name), "__final__", False), f"{base.__name__}.{name} is not final"
            assert not [kind for kind in _below(base) if name in vars(kind)]


def _below(kind: type) -> list[type]:
    return [each for direct in kind.__subclasses__() for each in (direct, *_below(direct))]


def test_modules_do_not_import_each_other_in_circles() -> None:
    assert [
        group for group in house.cycles() if not all(name.startswith("core.graphs.") for name in group)
    ] == []


def test_a_small_file_that_only_one_imports_has_a_reason() -> None:
    importers = Counter(imported for _, imported in house.imports())
    small = {
        name
        for name, path in house.modules().items()
        if path.stem != "__init__" and len(path.read_text(encoding="utf-8").splitlines()) < SMALL
    }
    alone = {name for name in small if importers[name] <= 1 and "migrations" not in name}
    assert alone <= set(OWN_SUBJECT)


@pytest.mark.parametrize("name", sorted(OWN_SUBJECT))
def test_a_reason_is_about_a_file_that_is_there(name: str) -> None:
    assert name in house.modules()


def test_the_picture_is_drawn_from_these_imports() -> None:
    assert house.PICTURE.read_text(encoding="utf-8") == house.picture(), "python -m benchmarks.house --write"


def test_a_client_loads_no_planner_and_no_database() -> None:
    ours, heavy = house.loaded_by_a_client()
    assert heavy == []
    assert ours <= 60
