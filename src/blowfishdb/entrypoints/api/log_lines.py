"""What happens to the server itself, as JSON lines like those of requests."""

from __future__ import annotations

import json
import logging
from typing import final

from blowfishdb.adapters.clock import stamp, utc_now


@final
class ServerLines(logging.Formatter):
    """One line for each record; of an exception only its kind, for its message may quote a value."""

    def format(self, record: logging.LogRecord) -> str:
        """A record as a line."""
        line = {"time": stamp(utc_now), "level": record.levelname.lower(), "message": record.getMessage()}
        if record.exc_info and record.exc_info[0] is not None:
            line["message"] = "Something went wrong inside the server."
            line["problem"] = record.exc_info[0].__name__
        return json.dumps(line)
