"""The tables of a workspace. Amounts are whole nano-ε, moments are ISO texts in UTC: nothing here rounds."""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
)

SCHEMA_VERSION: Final = 9
"""Counted up by every script in ``migrations/versions``."""
START: Final = "0" * 64
"""What stands in front of the first event."""
SEAL_KEY: Final = "key"
"""Where the key of the seals stands among them."""

metadata = MetaData()
_NAME = String(255)
_MOMENT = String(40)
_DIGEST = String(64)

meta = Table(
    "blowfish_meta", metadata, Column("name", _NAME, primary_key=True), Column("value", Text, nullable=False)
)

heads = Table(
    "heads",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, nullable=False),
    Column("hash", _DIGEST, nullable=False),
)
"""One row: the last event. Whoever writes locks it first."""

budgets = Table(
    "budgets",
    metadata,
    Column("dataset", _NAME, primary_key=True),
    Column("total", BigInteger, nullable=False),
    Column("spent", BigInteger, nullable=False),
    Column("held", BigInteger, nullable=False),
    Column("carried", BigInteger, nullable=False, server_default="0"),
    CheckConstraint(
        "spent >= 0 AND held >= 0 AND carried >= 0 AND spent + held <= total", name="within_budget"
    ),
)
"""``carried``: what answers under earlier policies lost under this one, above what was spent on them. With it
the budget may be exceeded, and then nothing is left."""

accounts = Table(
    "accounts",
    metadata,
    Column("dataset", _NAME, ForeignKey("budgets.dataset"), nullable=False),
    Column("analyst", _NAME, nullable=False),
    Column("granted", BigInteger),
    Column("spent", BigInteger, nullable=False),
    Column("held", BigInteger, nullable=False),
    PrimaryKeyConstraint("dataset", "analyst"),
)
"""What each analyst spent; ``granted`` is NULL for one without a grant."""

charges = Table(
    "charges",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("dataset", _NAME, ForeignKey("budgets.dataset"), nullable=False),
    Column("analyst", _NAME, nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("question", _NAME, nullable=False),
    Column("detail", Text, nullable=False),
    Column("holder", _NAME, nullable=False),
    Column("state", String(16), nullable=False),
    Column("reserved_at", _MOMENT, nullable=False),
    Column("changed_at", _MOMENT, nullable=False),
    Column("answer", Text),
    Column("reason", Text),
    Column("request", _DIGEST),
    Column("asked", _DIGEST),
    Column("part", Integer),
    Column("refines", BigInteger),
    Index("charges_by_request", "request", "part"),
    Index("charges_by_question", "question", "state", "id"),
    Index("charges_by_refined", "refines"),
    Index("charges_by_dataset", "dataset", "state", "id", "amount"),
)
"""``id`` is the number of the event that reserved the charge. ``request`` is the digest of the key that it
was asked under, ``asked`` that of what was asked, ``part`` its place in a batch; NULL without a key.
``refines`` is the charge whose release it makes more accurate: no two that are not void name the same."""

promises = Table(
    "promises",
    metadata,
    Column("dataset", _NAME, ForeignKey("budgets.dataset"), nullable=False),
    Column("version", Integer, nullable=False),
    Column("total", BigInteger, nullable=False),
    Column("spent", BigInteger, nullable=False),
    Column("held", BigInteger, nullable=False),
    Column("withdrawn", _MOMENT),
    PrimaryKeyConstraint("dataset", "version"),
    CheckConstraint("spent >= 0 AND held >= 0", name="within_promise"),
)
"""Earlier policies that are still kept, by their version, until someone withdraws them."""

losses = Table(
    "losses",
    metadata,
    Column("charge", BigInteger, ForeignKey("charges.id"), nullable=False),
    Column("version", Integer, nullable=False),
    Column("amount", BigInteger, nullable=False),
    PrimaryKeyConstraint("charge", "version"),
)
"""What a charge costs under each of these promises."""

events = Table(
    "events",
    metadata,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("at", _MOMENT, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("dataset", _NAME, nullable=False),
    Column("analyst", _NAME, nullable=False),
    Column("charge", BigInteger),
    Column("amount", BigInteger, nullable=False),
    Column("body", Text, nullable=False),
    Column("previous", _DIGEST, nullable=False),
    Column("hash", _DIGEST, nullable=False),
    Index("events_by_dataset", "dataset", "seq"),
    Index("events_by_kind", "dataset", "kind", "seq"),
)
"""What happened, in order; never updated, never deleted."""

releases = Table(
    "releases",
    metadata,
    Column("charge", BigInteger, ForeignKey("charges.id"), primary_key=True, autoincrement=False),
    Column("seq", BigInteger, nullable=False),
    Column("dataset", _NAME, nullable=False),
    Column("snapshot", Integer, nullable=False),
    Column("grid", _DIGEST, nullable=False),
    Column("shape", _DIGEST, nullable=False),
    Column("scales", Text, nullable=False),
    Column("noisy", Integer, nullable=False),
    Column("exact", Integer, nullable=False),
    Column("replaces", BigInteger),
    Column("about", _DIGEST),
    Index("releases_in_order", "dataset", "seq"),
    Index("releases_by_grid", "dataset", "snapshot", "grid"),
    Index("releases_by_question", "about"),
)
"""What was measured for every stored answer that others may follow from, without what came out
(``releases.py``)."""

grids = Table(
    "grids",
    metadata,
    Column("grid", _DIGEST, primary_key=True),
    Column("axes", Text, nullable=False),
)
"""The boxes that releases speak of: columns, their declarations, bins."""

seals = Table(
    "seals",
    metadata,
    Column("place", _DIGEST, primary_key=True),
    Column("seal", _DIGEST, nullable=False),
)
"""The last seal of every row outside the ledger (``chain.py``), and at ``SEAL_KEY`` the key of them all."""

catalogue = Table(
    "catalogue",
    metadata,
    Column("kind", _NAME, nullable=False),
    Column("name", _NAME, nullable=False),
    Column("version", Integer, nullable=False),
    Column("body", Text, nullable=False),
    Column("created", _MOMENT, nullable=False),
    PrimaryKeyConstraint("kind", "name", "version"),
)

# --- who may come in --------------------------------------------------------------------------

users = Table(
    "users",
    metadata,
    Column("name", _NAME, primary_key=True),
    Column("role", String(16), nullable=False),
    Column("password", Text),
    Column("created", _MOMENT, nullable=False),
    Column("ended", _MOMENT),
)
"""``password`` is an argon2id hash, NULL for someone who has tokens only; ``ended`` is NULL while active."""

tokens = Table(
    "tokens",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("owner", _NAME, ForeignKey("users.name"), nullable=False),
    Column("digest", _DIGEST, nullable=False),
    Column("purpose", String(16), nullable=False),
    Column("label", _NAME, nullable=False),
    Column("created", _MOMENT, nullable=False),
    Column("expires", _MOMENT, nullable=False),
    Column("ended", _MOMENT),
    Index("tokens_by_digest", "digest", unique=True),
    Index("tokens_by_owner", "owner", "created"),
)
"""Only the SHA-256 of a token is known here."""

login_attempts = Table(
    "login_attempts",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("subject", _DIGEST, nullable=False),
    Column("at", _MOMENT, nullable=False),
    Index("login_attempts_by_subject", "subject", "at"),
    Index("login_attempts_by_time", "at"),
)
"""Wrong passwords of the last day, and browsers that people signed in with (``accounts.py``).

``subject`` is made of digests: a password typed as a name is not kept.
"""

idempotency = Table(
    "idempotency",
    metadata,
    Column("owner", _NAME, nullable=False),
    Column("key", _NAME, nullable=False),
    Column("digest", _DIGEST, nullable=False),
    Column("body", Text),
    Column("created", _MOMENT, nullable=False),
    PrimaryKeyConstraint("owner", "key"),
    Index("idempotency_by_time", "created"),
)
"""What was answered to a request that may be sent again; ``body`` is NULL while it is under way."""
