"""The third format: earlier policies that are still kept, and what every charge costs under them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "3"
down_revision = "2"

_NAME = sa.String(255)


def upgrade() -> None:
    """Make the tables, and room for what is carried over."""
    with op.batch_alter_table("budgets") as table:
        table.add_column(sa.Column("carried", sa.BigInteger, nullable=False, server_default="0"))
        table.drop_constraint("within_budget", type_="check")
        table.create_check_constraint(
            "within_budget",
            "spent >= 0 AND held >= 0 AND carried >= 0 AND spent + held + carried <= total",
        )
    op.create_table(
        "promises",
        sa.Column("dataset", _NAME, sa.ForeignKey("budgets.dataset"), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("total", sa.BigInteger, nullable=False),
        sa.Column("spent", sa.BigInteger, nullable=False),
        sa.Column("held", sa.BigInteger, nullable=False),
        sa.Column("withdrawn", sa.String(40)),
        sa.PrimaryKeyConstraint("dataset", "version"),
        sa.CheckConstraint("spent >= 0 AND held >= 0 AND spent + held <= total", name="within_promise"),
    )
    op.create_table(
        "losses",
        sa.Column("charge", sa.BigInteger, sa.ForeignKey("charges.id"), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("amount", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("charge", "version"),
    )
