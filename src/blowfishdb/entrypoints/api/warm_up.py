"""Getting ready in the background, so that the first question is not the slow one."""

from __future__ import annotations

import threading

from blowfishdb.core.graphs import Threshold
from blowfishdb.core.workloads import Cumulative
from blowfishdb.entrypoints.web import static_files
from blowfishdb.mechanisms import Best


def warm_up() -> threading.Thread:
    """Start the charts' engine, make what pages draw with, and compile the planner.

    A server may be stopped before it is through.
    """
    thread = threading.Thread(target=_prepare, name="warm-up", daemon=True)
    thread.start()
    return thread


def _prepare() -> None:
    Best().plan(Cumulative(64), Threshold(64, 4))
    import vl_convert

    static_files.vega()
    vl_convert.vegalite_to_svg({"data": {"values": [{"a": 1}]}, "mark": "bar", "encoding": {}})
