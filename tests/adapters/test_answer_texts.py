"""Answers as texts say what Python's own writer would, numbers that are none included."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blowfishdb.adapters.store.releases import _described
from blowfishdb.adapters.store.texts import read, written

NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**70), 2**70)
DATA = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), DATA, max_size=4))
def test_what_is_written_reads_as_by_python(data: dict[str, Any]) -> None:
    read = json.loads(written(data))
    assert read == json.loads(json.dumps(data))
    assert repr(read) == repr(json.loads(json.dumps(data)))  # 1 is not 1.0, and -0.0 not 0.0


@pytest.mark.parametrize("odd", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("shape", [lambda x: x, lambda x: [1.5, x], lambda x: {"a": [[0.5], [x, None]]}])
def test_what_is_no_number_is_not_lost(odd: float, shape: Any) -> None:
    assert written({"values": shape(odd)}) == json.dumps({"values": shape(odd)})


def test_what_only_python_writes() -> None:
    halves = {"a": "\ud800", "b": 2**80, "c": [1e308, 1e308], "d": [math.inf, -math.inf]}
    assert json.loads(written(halves))["b"] == 2**80
    assert written(halves) == json.dumps(halves)


@pytest.mark.parametrize(
    "text", ['{"a": [1, 2.5, null, "ä"], "b": -0.0}', '{"a": NaN, "b": [-Infinity]}', '"\\ud800"']
)
def test_what_is_read_is_what_python_reads(text: str) -> None:
    assert repr(read(text)) == repr(json.loads(text))


@pytest.mark.parametrize("broken", ["", "{", "[1,]", None, 7])
def test_what_is_no_text_is_refused_as_by_python(broken: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        read(broken)


@pytest.mark.parametrize("large", [2**64, -(2**63) - 1, 2**80])
def test_rows_that_differ_beyond_64_bits_have_shapes_of_their_own(large: int) -> None:
    """Releases of one shape are added up as one: a shape must not be rounded."""

    def shape(coefficient: int) -> str:
        release = {"values": [1], "which": None, "scales": ["1"], "axes": [], "rows": [[0, coefficient]]}
        text = written({"release": release, "answer": {"receipt": {"snapshot": 1}}})
        told = _described(text, "salaries")
        assert told is not None
        return str(told[0]["shape"])

    assert float(large) == float(large + 1) and shape(large) != shape(large + 1)
    assert shape(large) == shape(large) and shape(7) != shape(8)
