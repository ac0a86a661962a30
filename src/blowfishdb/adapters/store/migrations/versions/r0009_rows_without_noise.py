"""The ninth format: nothing follows from what was kept of exact answers, for which no noise was drawn."""

from __future__ import annotations

revision = "9"
down_revision = "8"


def upgrade() -> None:
    """No table changes; the index is made anew from the answers after every upgrade."""
