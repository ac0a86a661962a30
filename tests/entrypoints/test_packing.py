"""What is packed into an address comes out the same, and nothing else does."""

from __future__ import annotations

import json
import zlib

import pytest

from blowfishdb.entrypoints.server.web.packing import NotPacked, packed, unpacked

SPECIFICATION = {
    "mark": {"type": "bar", "style": "answer"},
    "encoding": {"x": {"axis": {"grid": False, "labelAngle": 0}, "field": "bin", "type": "nominal"}},
    "title": {"text": ["Number of people, by Größe"]},
}


def test_a_specification_comes_out_the_same_and_is_short() -> None:
    body = packed(SPECIFICATION)
    assert unpacked(body) == SPECIFICATION
    assert len(body) < 0.7 * len(zlib.compress(json.dumps(SPECIFICATION, separators=(",", ":")).encode(), 9))


@pytest.mark.parametrize(
    "body", [b"", b"abc", zlib.compress(b"words"), zlib.compressobj(zdict=b"other words").flush()]
)
def test_what_was_packed_otherwise_is_refused(body: bytes) -> None:
    with pytest.raises(NotPacked):
        unpacked(body)
