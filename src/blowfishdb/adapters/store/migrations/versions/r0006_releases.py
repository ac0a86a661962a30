"""The sixth format: an index of what was measured for stored answers, events and sums by dataset.

The index is filled in from the answers whenever a workspace is upgraded.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "6"
down_revision = "5"

_DIGEST = sa.String(64)


def upgrade() -> None:
    """Make room for the index."""
    op.create_table(
        "releases",
        sa.Column(
            "charge", sa.BigInteger, sa.ForeignKey("charges.id"), primary_key=True, autoincrement=False
        ),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("dataset", sa.String(255), nullable=False),
        sa.Column("snapshot", sa.Integer, nullable=False),
        sa.Column("grid", _DIGEST, nullable=False),
        sa.Column("shape", _DIGEST, nullable=False),
        sa.Column("scales", sa.Text, nullable=False),
        sa.Column("noisy", sa.Integer, nullable=False),
        sa.Column("exact", sa.Integer, nullable=False),
    )
    op.create_index("releases_in_order", "releases", ["dataset", "seq"])
    op.create_index("releases_by_grid", "releases", ["dataset", "snapshot", "grid"])
    op.create_table(
        "grids",
        sa.Column("grid", _DIGEST, primary_key=True),
        sa.Column("axes", sa.Text, nullable=False),
    )
    op.drop_index("charges_by_dataset", "charges")
    op.create_index("charges_by_dataset", "charges", ["dataset", "state", "id", "amount"])
    op.create_index("events_by_dataset", "events", ["dataset", "seq"])
    op.create_index("events_by_kind", "events", ["dataset", "kind", "seq"])
