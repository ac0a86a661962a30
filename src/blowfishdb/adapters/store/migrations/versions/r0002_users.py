"""The second format: users, their tokens, wrong passwords, and requests that may be sent again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "2"
down_revision = "1"

_NAME = sa.String(255)
_MOMENT = sa.String(40)
_DIGEST = sa.String(64)


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "users",
        sa.Column("name", _NAME, primary_key=True),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("password", sa.Text),
        sa.Column("created", _MOMENT, nullable=False),
        sa.Column("ended", _MOMENT),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("owner", _NAME, sa.ForeignKey("users.name"), nullable=False),
        sa.Column("digest", _DIGEST, nullable=False),
        sa.Column("purpose", sa.String(16), nullable=False),
        sa.Column("label", _NAME, nullable=False),
        sa.Column("created", _MOMENT, nullable=False),
        sa.Column("expires", _MOMENT, nullable=False),
        sa.Column("ended", _MOMENT),
    )
    op.create_index("tokens_by_digest", "tokens", ["digest"], unique=True)
    op.create_index("tokens_by_owner", "tokens", ["owner", "created"])
    op.create_table(
        "login_attempts",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("subject", _DIGEST, nullable=False),
        sa.Column("at", _MOMENT, nullable=False),
    )
    op.create_index("login_attempts_by_subject", "login_attempts", ["subject", "at"])
    op.create_index("login_attempts_by_time", "login_attempts", ["at"])
    op.create_table(
        "idempotency",
        sa.Column("owner", _NAME, nullable=False),
        sa.Column("key", _NAME, nullable=False),
        sa.Column("digest", _DIGEST, nullable=False),
        sa.Column("body", sa.Text),
        sa.Column("created", _MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("owner", "key"),
    )
    op.create_index("idempotency_by_time", "idempotency", ["created"])
