"""A child of a warm process: what it says on its way, until it ends or is killed."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable


def forked(work: Callable[[Callable[[str], object]], None]) -> tuple[int, int]:
    """The number of a child that does ``work``, and where every line that it reports can be read."""
    source, sink = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(source)
            work(lambda line: os.write(sink, f"{line}\n".encode()))
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(sink)
    return child, source


def was_killed(child: int) -> bool:
    """Wait for the end of a child: whether it was killed, where it did not end as it should."""
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code not in (0, -signal.SIGKILL):
        raise RuntimeError(f"The child ended with {code}.")
    return code != 0
