"""The seventh format: releases that were refined, and questions apart from how accurate they are."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "7"
down_revision = "6"


def upgrade() -> None:
    """Make room; nothing that is older was refined, or says what its question is without its accuracy."""
    op.add_column("charges", sa.Column("refines", sa.BigInteger))
    op.create_index("charges_by_refined", "charges", ["refines"])
    op.add_column("releases", sa.Column("replaces", sa.BigInteger))
    op.add_column("releases", sa.Column("about", sa.String(64)))
    op.create_index("releases_by_question", "releases", ["about"])
