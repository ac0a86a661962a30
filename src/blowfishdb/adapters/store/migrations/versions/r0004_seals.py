"""The fourth format: seals of what lies outside the ledger, and the key that a charge was asked under."""

from __future__ import annotations

import secrets

import sqlalchemy as sa
from alembic import op

revision = "4"
down_revision = "3"

_DIGEST = sa.String(64)


def upgrade() -> None:
    """Make the table with a key of its own, and room for what a charge was asked under."""
    made = op.create_table(
        "seals",
        sa.Column("place", _DIGEST, primary_key=True),
        sa.Column("seal", _DIGEST, nullable=False),
    )
    op.bulk_insert(made, [{"place": "key", "seal": secrets.token_hex(32)}])
    op.add_column("charges", sa.Column("request", _DIGEST))
    op.add_column("charges", sa.Column("asked", _DIGEST))
    op.add_column("charges", sa.Column("part", sa.Integer))
    op.create_index("charges_by_request", "charges", ["request", "part"])
