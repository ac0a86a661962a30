"""The fifth format: what answers under earlier policies lost is kept even where it exceeds the budget."""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

revision = "5"
down_revision = "4"

_NANO = 10**9


def upgrade() -> None:
    """Make room for a past above the total, and put back what the newest policies say of it."""
    with op.batch_alter_table("budgets") as table:
        table.drop_constraint("within_budget", type_="check")
        table.create_check_constraint(
            "within_budget", "spent >= 0 AND held >= 0 AND carried >= 0 AND spent + held <= total"
        )
    with op.batch_alter_table("promises") as table:
        table.drop_constraint("within_promise", type_="check")
        table.create_check_constraint("within_promise", "spent >= 0 AND held >= 0")
    connection = op.get_bind()
    events = sa.table("events", sa.column("seq"), sa.column("kind"), sa.column("dataset"), sa.column("body"))
    budgets = sa.table("budgets", sa.column("dataset"), sa.column("carried"))
    published = sa.select(events.c.dataset, events.c.body).where(events.c.kind == "policy")
    newest = {row.dataset: row.body for row in connection.execute(published.order_by(events.c.seq))}
    for dataset, body in newest.items():
        carried = _carried(json.loads(body))
        if carried is not None:
            this = budgets.update().where(budgets.c.dataset == dataset)
            connection.execute(this.values(carried=carried))


def _carried(facts: dict[str, object]) -> int | None:
    """What the policy lost before it was published, above what had been spent; None if it does not say."""
    past = facts.get("past")
    if not isinstance(past, dict):
        return None
    return 0 if past["epsilon"] is None else max(0, _nano(past["epsilon"]) - _nano(facts["spent_before"]))


def _nano(decimal: object) -> int:
    units, _, rest = str(decimal).partition(".")
    return int(units) * _NANO + int(rest.ljust(9, "0") or 0)
