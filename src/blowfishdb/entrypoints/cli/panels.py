"""The headings under which help lists the commands: who mostly uses them."""

from typing import Final

CURATOR: Final = "Curator: import data, decide what stays hidden"
ANALYST: Final = "Analyst: ask, look, compare"
AUDITOR: Final = "Auditor: what was promised and what was spent"
SYSTEM: Final = "System"


def examples(*lines: str) -> str:
    """An epilog with one example a line."""
    return "\n\n".join(("Examples:" if len(lines) > 1 else "Example:", *(f"  {line}" for line in lines)))
