"""True values stay inside: who may open a Secret, and who may choose a seed."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import final

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "blowfishdb"
FILES = sorted(PACKAGE.rglob("*.py"))


@final
@dataclass(frozen=True)
class Used:
    """What a file uses, by name."""

    attributes: frozenset[str]
    names: frozenset[str]
    """Imported or looked up."""
    called: frozenset[str]


@cache
def used_in(path: Path) -> Used:
    nodes = list(ast.walk(ast.parse(path.read_text())))
    imported = {each.name for node in nodes if isinstance(node, ast.ImportFrom) for each in node.names}
    loaded = {node.id for node in nodes if isinstance(node, ast.Name)}
    called = {
        node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    attributes = frozenset(node.attr for node in nodes if isinstance(node, ast.Attribute))
    return Used(attributes, frozenset(imported | loaded), frozenset(called))


def opens_no_secret(path: Path) -> bool:
    """Only mechanisms do."""
    inside = path.is_relative_to(PACKAGE / "mechanisms") or path.name == "secret.py"
    return inside or "reveal" not in used_in(path).attributes


def reaches_no_seed(path: Path) -> bool:
    """No way in does."""
    outside = path.parent == PACKAGE and path.name == "noise.py"
    used = used_in(path).names | used_in(path).attributes
    return outside or "seeded" not in used or path.is_relative_to(PACKAGE / "adapters")


def prints_nothing(path: Path) -> bool:
    """What there is to say is returned."""
    return "print" not in used_in(path).called


@pytest.mark.parametrize("rule", [opens_no_secret, reaches_no_seed, prints_nothing], ids=lambda r: r.__name__)
def test_every_file_keeps_the_rule(rule: Callable[[Path], bool]) -> None:
    assert len(FILES) > 300
    assert [str(path.relative_to(PACKAGE)) for path in FILES if not rule(path)] == []
