"""True values stay inside: who may open a Secret, and who may choose a seed."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "blowfishdb"
FILES = sorted(PACKAGE.rglob("*.py"))


def attributes_used(path: Path) -> set[str]:
    return {node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)}


def names_used(path: Path) -> set[str]:
    tree = ast.walk(ast.parse(path.read_text()))
    imported = {alias.name for node in tree if isinstance(node, ast.ImportFrom) for alias in node.names}
    loaded = {n.id for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Name)}
    return imported | loaded


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_mechanisms_open_a_secret(path: Path) -> None:
    inside = path.is_relative_to(PACKAGE / "mechanisms") or path.name == "secret.py"
    assert inside or "reveal" not in attributes_used(path)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_way_in_reaches_a_seed(path: Path) -> None:
    outside = path.parent == PACKAGE and path.name == "noise.py"
    used = names_used(path) | attributes_used(path)
    assert outside or "seeded" not in used or path.is_relative_to(PACKAGE / "adapters")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_nothing_prints(path: Path) -> None:
    assert "print" not in {
        node.func.id
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
