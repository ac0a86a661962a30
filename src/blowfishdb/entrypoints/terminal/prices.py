"""Quotes, receipts and budgets: what things cost, and what is left."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from blowfishdb.adapters.ledger import Budget, Grant
from blowfishdb.answers import Receipt
from blowfishdb.core.budget import Epsilon
from blowfishdb.entrypoints.terminal.figures import loss, significant
from blowfishdb.entrypoints.terminal.screen import Framed, grid
from blowfishdb.messages import Quote

_METER = 20


def quote_panel(quote: Quote) -> RenderableType:
    """The price of an answer, before it is paid."""
    lines = [Text(quote.promise)]
    if quote.owned:
        lines.append(Text("Already answered: this answer costs nothing.", style="bold green"))
    elif not quote.epsilon:
        lines.append(Text("Free.", style="bold green"))
    else:
        lines.append(Text.assemble(("ε ", "dim"), (loss(quote.epsilon), "bold"), *_share(quote)))
        if quote.alpha is not None:
            lines.append(Text(_dividend(quote)))
        lines += [
            Text(f"cheaper: ±{significant(other.alpha, 6)} → {loss(other.epsilon)}")
            for other in quote.alternatives
        ]
    lines += [Text(note) for note in quote.notes]
    if quote.binding is not None:
        lines.append(Text(quote.binding.words, style="bold"))
    lines.append(Text(f"{quote.mechanism}. {quote.explanation}", style="dim"))
    return Framed(f"QUOTE, free: {quote.question}", Group(*lines))


def _dividend(quote: Quote) -> str:
    """What the policy saves against the best plan without one; often something, sometimes nothing."""
    times = quote.dividend or 1.0
    if times < 1.05:
        return "plain DP would cost the same: no policy dividend here"
    plain = f"{quote.at_least}{loss(quote.plain_epsilon)}"
    return f"plain DP would cost {plain} → policy dividend {significant(times, 2)}×"


def _share(quote: Quote) -> list[str]:
    left = f" · {loss(quote.remaining)} left"
    if quote.affordable:
        return [left, f" · affordable {quote.affordable:,} time{'s' if quote.affordable != 1 else ''}"]
    return [left, " · more than is left"]


def receipt_line(receipt: Receipt) -> RenderableType:
    """What was paid, for what, and under which policy."""
    made = f"{receipt.mechanism} · policy v{receipt.policy_version}"
    return Text.assemble(("Receipt ", "bold"), f"#{receipt.charge} · charged {_paid(receipt)} · {made}")


def receipt_table(receipt: Receipt) -> RenderableType:
    """Everything that is on record about an answer."""
    table = grid("Receipt", f"#{receipt.charge}", wrap=(1,))
    rows = {
        "dataset": f"{receipt.dataset}, snapshot {receipt.snapshot}",
        "question": receipt.question,
        "asked by": receipt.user or "not shown",
        "cost": f"ε {loss(receipt.epsilon)}" if receipt.epsilon else "nothing",
        "mechanism": receipt.mechanism,
        "policy": f"v{receipt.policy_version}: {receipt.policy}",
        "settled": receipt.settled,
    }
    for name, value in rows.items():
        table.add_row(Text(name, style="dim"), value)
    return table


def _paid(receipt: Receipt) -> str:
    if receipt.cost:
        return f"ε {loss(receipt.cost)}"
    return "nothing: this answer was already paid for" if receipt.epsilon else "nothing: this answer is free"


def budget_line(total: Epsilon, remaining: Epsilon) -> RenderableType:
    """The meter that is always visible."""
    used = float(total - remaining) / float(total) if total else 0.0
    filled = round(used * _METER)
    style = "blue" if used < 0.9 else "red"
    return Text.assemble(
        ("Budget ", "bold"),
        ("▓" * filled + "░" * (_METER - filled), style),
        f"  {loss(total - remaining)} of {loss(total)} spent, {loss(remaining)} left",
    )


def budget_table(budget: Budget, left: Epsilon, grants: list[Grant]) -> RenderableType:
    """The meter, what is held for questions under way, and who may spend what."""
    parts: list[RenderableType] = [budget_line(budget.total, budget.remaining)]
    if budget.held:
        parts.append(Text(f"{loss(budget.held)} of it is held for questions under way.", style="dim"))
    parts.append(Text(f"You can still spend {loss(left)}."))
    if grants:
        table = grid("user", "granted", "spent", "held", right=(1, 2, 3))
        for grant in grants:
            granted = "no limit" if grant.granted is None else loss(grant.granted)
            table.add_row(grant.user, granted, loss(grant.spent), loss(grant.held))
        parts += [Text(), table]
    return Group(*parts)
