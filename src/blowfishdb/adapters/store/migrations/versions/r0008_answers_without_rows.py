"""The eighth format: answers are known by their question, also those that are no list of rows."""

from __future__ import annotations

revision = "8"
down_revision = "7"


def upgrade() -> None:
    """No table changes; the index is made anew from the answers after every upgrade."""
