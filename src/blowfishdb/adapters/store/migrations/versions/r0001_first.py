"""The first format: budgets, grants, charges, the event chain, and the catalogue."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "1"
down_revision = None

_NAME = sa.String(255)
_MOMENT = sa.String(40)
_DIGEST = sa.String(64)


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "blowfish_meta",
        sa.Column("name", _NAME, primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
    op.create_table(
        "heads",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("hash", _DIGEST, nullable=False),
    )
    op.create_table(
        "budgets",
        sa.Column("dataset", _NAME, primary_key=True),
        sa.Column("total", sa.BigInteger, nullable=False),
        sa.Column("spent", sa.BigInteger, nullable=False),
        sa.Column("held", sa.BigInteger, nullable=False),
        sa.CheckConstraint("spent >= 0 AND held >= 0 AND spent + held <= total", name="within_budget"),
    )
    op.create_table(
        "accounts",
        sa.Column("dataset", _NAME, sa.ForeignKey("budgets.dataset"), nullable=False),
        sa.Column("analyst", _NAME, nullable=False),
        sa.Column("granted", sa.BigInteger),
        sa.Column("spent", sa.BigInteger, nullable=False),
        sa.Column("held", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("dataset", "analyst"),
    )
    op.create_table(
        "charges",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("dataset", _NAME, sa.ForeignKey("budgets.dataset"), nullable=False),
        sa.Column("analyst", _NAME, nullable=False),
        sa.Column("amount", sa.BigInteger, nullable=False),
        sa.Column("question", _NAME, nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
        sa.Column("holder", _NAME, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("reserved_at", _MOMENT, nullable=False),
        sa.Column("changed_at", _MOMENT, nullable=False),
        sa.Column("answer", sa.Text),
        sa.Column("reason", sa.Text),
    )
    op.create_index("charges_by_question", "charges", ["question", "state", "id"])
    op.create_index("charges_by_dataset", "charges", ["dataset", "state", "id"])
    op.create_table(
        "events",
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("at", _MOMENT, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("dataset", _NAME, nullable=False),
        sa.Column("analyst", _NAME, nullable=False),
        sa.Column("charge", sa.BigInteger),
        sa.Column("amount", sa.BigInteger, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("previous", _DIGEST, nullable=False),
        sa.Column("hash", _DIGEST, nullable=False),
    )
    op.create_table(
        "catalogue",
        sa.Column("kind", _NAME, nullable=False),
        sa.Column("name", _NAME, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("created", _MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("kind", "name", "version"),
    )
