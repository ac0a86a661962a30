"""Specifications of charts, packed: short enough to be part of an address.

All of them share most of their words, so both sides know these beforehand.
"""

from __future__ import annotations

import json
import zlib
from typing import Any, Final

_LEVEL: Final = 9
_SHARED: Final = "".join(
    (
        '"data":{"name":"0"},"mark":{"type":"rule","aria":false,"style":"interval"},"encoding":{"x2":{"fi',
        'eld":"x2"},"y2":{"field":"high"}},"transform":[{"filter":"datum.mark == \'band\'"},{"calculate":"a',
        's":"fillOpacity":{"condition":{"test":"datum.faint","value":0.1},"value":0.4},"strokeDash":{"con',
        'dition":{"test":"datum.faint","value":[3,3]},"value":[1,0]},"type":"area","interpolate":"step","',
        'style":"band"},{"type":"line","interpolate":"step","style":"answer-line"},{"type":"point","fille',
        'd":true,"opacity":1,"size":90,"style":"answer"},{"type":"text","align":"left","baseline":"middle',
        '","dx":28,"style":"words"},"text":{"field":"words","type":"nominal"},"type":"bar","style":"answe',
        'r"},"axis":null,"field":"x","scale":{"domain":[0,640],"nice":false},"type":"quantitative"},"y":{',
        '"axis":{"format":",.6~f","tickCount":5,"title":"people (noisy)"},"field":"low","scale":{"domain"',
        ':[0.0,],"nice":true},"tooltip":[{"field":"bin","title":"type":"nominal"},{"field":"value","forma',
        't":",.0f","title":"noise interval from"},"x":{"axis":{"grid":false,"labelAngle":0,"labelOverlap"',
        ':"parity","values":["field":"bin","scale":{"type":"point","padding":0.5},"sort":null,"title":"ty',
        'pe":"nominal"}}},{"layer":[{"vconcat":[{"hconcat":[{"description":"height":220,"width":284,"spac',
        'ing":16,"title":{"text":["subtitle":["In 95 of 100 runs every bar is within people of the truth.',
        ' ε = "$schema":"https://vega.github.io/schema/vega-lite/v6.4.1.json","datasets":{"0":[{"mark":"b',
        'and","words":"noise interval, 95 % of the time","x":0.0,"y":10.0,"x2":22.0,"x1":11.0,"y1":4.0,"y',
        '2":16.0},{"bin":"faint":false,"value":"noisy":"low":"high":',
    )
).encode()
"""What specifications have in common; if it changes, what was packed before cannot be unpacked."""


class NotPacked(Exception):
    """These bytes were not packed here, or with other shared words."""


def packed(specification: dict[str, Any]) -> bytes:
    """A specification in few bytes."""
    text = json.dumps(specification, separators=(",", ":"), ensure_ascii=False)
    packing = zlib.compressobj(_LEVEL, zdict=_SHARED)
    return packing.compress(text.encode()) + packing.flush()


def unpacked(body: bytes) -> dict[str, Any]:
    """The specification again."""
    try:
        specification: dict[str, Any] = json.loads(zlib.decompressobj(zdict=_SHARED).decompress(body))
    except (zlib.error, ValueError) as error:
        raise NotPacked from error
    return specification
