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
        '"mark":{"type":"bar","fillOpacity":0.4,"style":"answer"},"encoding":{"tooltip":[{"field":"bin","',
        'title":"type":"nominal"},{"field":"residual","title":"noisy − made up","type":"quantitative"}],"',
        'height":80,"transform":[{"calculate":"round((datum.noisy - datum.true) * 1e0) / 1e0","as":"resid',
        'ual"}],{"type":"rule","aria":false,"opacity":0,"strokeWidth":14.2},{"type":"text","align":"left"',
        ',"baseline":"top","style":"watermark"},"x":{"value":8},"y":{"value":4}}}],"title":{"text":"Witho',
        'ut noise","fontSize":13},"title":{"text":"Noisy, one draw","fontSize":13},"words":"MADE-UP DATA"',
        '}],"people; ± is thinner than the line: % of the largest value.","tickCount":3,"true":"data":{"n',
        'ame":"0"},"mark":{"type":"rule","aria":false,"style":"interval"},"encoding":{"x2":{"field":"x2"}',
        ',"y2":{"field":"high"}},"transform":[{"filter":"datum.mark == \'band\'"},{"calculate":"as":"fillOp',
        'acity":{"condition":{"test":"datum.faint","value":0.1},"value":0.4},"strokeDash":{"condition":{"',
        'test":"datum.faint","value":[3,3]},"value":[1,0]},"type":"area","interpolate":"step","style":"ba',
        'nd"},{"type":"line","interpolate":"step","style":"answer-line"},{"type":"point","filled":true,"o',
        'pacity":1,"size":90,"style":"answer"},{"type":"text","align":"left","baseline":"middle","dx":28,',
        '"style":"words"},"text":{"field":"words","type":"nominal"},"type":"bar","style":"answer"},"axis"',
        ':null,"field":"x","scale":{"domain":[0,640],"nice":false},"type":"quantitative"},"y":{"axis":{"f',
        'ormat":",.6~f","tickCount":5,"title":"people (noisy)"},"field":"low","scale":{"domain":[0.0,],"n',
        'ice":true},"tooltip":[{"field":"bin","title":"type":"nominal"},{"field":"value","format":",.0f",',
        '"title":"noise interval from"},"x":{"axis":{"grid":false,"labelAngle":0,"labelOverlap":"parity",',
        '"values":["field":"bin","scale":{"type":"point","padding":0.5},"sort":null,"title":"type":"nomin',
        'al"}}},{"layer":[{"vconcat":[{"hconcat":[{"description":"height":220,"width":284,"spacing":16,"t',
        'itle":{"text":["subtitle":["In 95 of 100 runs every bar is within people of the truth. ε = "$sch',
        'ema":"https://vega.github.io/schema/vega-lite/v6.4.1.json","datasets":{"0":[{"mark":"band","word',
        's":"noise interval, 95 % of the time","x":0.0,"y":10.0,"x2":22.0,"x1":11.0,"y1":4.0,"y2":16.0},{',
        '"bin":"faint":false,"value":"noisy":"low":"high":',
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
