"""The public names are a contract: added to, never renamed."""

from __future__ import annotations

import subprocess
import sys

import pytest

import blowfishdb as bf

NAMES = {
    "Bins",
    "Boolean",
    "Category",
    "Constraints",
    "Date",
    "Domain",
    "Epsilon",
    "Integer",
    "Policy",
    "Real",
    "check_mechanism",
    "Cancellation",
    "delete",
    "restore",
    "col",
    "connect",
    "errors",
    "graphs",
    "lower_bound",
    "mechanisms",
    "noise",
    "open",
    "read_graph",
    "sensitivity",
    "workloads",
}
GRAPHS = {"AddRemove", "Banded", "Explicit", "Full", "Grid", "Partitioned", "Product", "Threshold"}
WORKLOADS = {
    "AllRanges",
    "Cumulative",
    "Histogram",
    "Marginals",
    "Matrix",
    "Predicates",
    "Product",
    "Ranges",
    "Rectangles",
}
MECHANISMS = {
    "Adaptive",
    "AdaptiveTree",
    "Best",
    "Dawa",
    "DawaTransformed",
    "EdgeNoise",
    "Hierarchical",
    "KMeans",
    "Laplace",
    "MatchingTransformed",
    "Optimized",
    "Ordered",
    "OrderedDenoised",
    "OrderedHierarchical",
    "PolicyTree",
    "Privelet",
    "Transformed",
}


def test_the_top_level_is_exactly_this() -> None:
    assert set(bf.__all__) == NAMES
    for name in NAMES:
        assert getattr(bf, name) is not None
    assert set(dir(bf)) >= NAMES


@pytest.mark.parametrize(
    ("module", "names"), [(bf.graphs, GRAPHS), (bf.workloads, WORKLOADS), (bf.mechanisms, MECHANISMS)]
)
def test_the_families_hold_these(module: object, names: set[str]) -> None:
    assert all(hasattr(module, name) for name in names)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="banana"):
        _ = bf.banana


def test_importing_is_light() -> None:
    """Heavy libraries are imported by what needs them, not by `import blowfishdb`."""
    heavy = "('duckdb', 'sqlalchemy', 'numpy', 'scipy', 'altair', 'numba')"
    code = f"import blowfishdb, sys; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
