"""Quotes, answers and receipts in a terminal. Plain text when the output is not a terminal."""

from __future__ import annotations

import itertools
import math

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from blowfishdb.core.budget import Epsilon
from blowfishdb.messages import Answer, Quote, Receipt

_BLOCKS = " ▏▎▍▌▋▊▉█"
_BAR_WIDTH = 36


def quote_panel(quote: Quote) -> RenderableType:
    """The price of an answer, before it is paid."""
    lines = [Text(_promise(quote.alpha, quote.beta, quote.simultaneous))]
    if quote.owned:
        lines.append(Text("You already own this answer: it costs nothing.", style="bold green"))
    else:
        lines.append(Text.assemble(("ε ", "dim"), (f"{quote.epsilon:.3g}", "bold"), *_share(quote)))
        if quote.dividend is not None:
            lines.append(
                Text(f"plain DP would cost {quote.plain_epsilon:.3g} → policy dividend {quote.dividend:.1f}×")
            )
    lines.append(Text(f"{quote.mechanism}. {quote.explanation}", style="dim"))
    return Panel(
        Group(*lines), title=f"QUOTE, free: {quote.question}", title_align="left", border_style="blue"
    )


def _share(quote: Quote) -> list[str]:
    left = f" · {quote.remaining:.3g} left"
    return [left, f" · affordable {quote.affordable} times"] if quote.affordable else [left]


def answer_chart(answer: Answer) -> RenderableType:
    """Bars with their noise intervals in numbers."""
    table = Table(box=None, padding=(0, 1), title=f"{answer.receipt.question}", title_justify="left")
    table.add_column(", ".join(answer.axes), justify="right", style="dim", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("people", justify="right", no_wrap=True)
    table.add_column("noise interval", justify="right", style="dim", no_wrap=True)
    most = max(1.0, float(answer.values.max()))
    names = itertools.product(*answer.labels)
    for name, value, low, high, exact in zip(
        names, answer.values, answer.low, answer.high, answer.exact, strict=True
    ):
        faded = "dim blue" if low <= 0 else "blue"
        interval = "exact" if exact else f"{math.floor(low):,} … {math.ceil(high):,}"
        table.add_row(" · ".join(name), Text(_bar(value / most), style=faded), f"{round(value):,}", interval)
    note = Text(_promise(answer.alpha, answer.beta, answer.simultaneous) + " Sampling error is not included.")
    return Group(table, note)


def _bar(share: float) -> str:
    eighths = round(max(0.0, share) * _BAR_WIDTH * 8)
    whole, part = divmod(eighths, 8)
    return "█" * whole + (_BLOCKS[part] if part else "")


def _promise(alpha: float, beta: float, simultaneous: bool) -> str:
    every = "every bar is" if simultaneous else "each bar is"
    return f"In {100 * (1 - beta):g} of 100 runs {every} within {alpha:g} people of the truth."


def receipt_line(receipt: Receipt) -> RenderableType:
    """What was paid, for what, and under which policy."""
    paid = f"ε {receipt.cost:.3g}" if receipt.cost else "nothing: this answer was already paid for"
    return Text.assemble(
        ("Receipt ", "bold"),
        f"#{receipt.charge} · charged {paid} · {receipt.mechanism} · policy v{receipt.policy_version}",
    )


def budget_line(total: Epsilon, remaining: Epsilon) -> RenderableType:
    """The meter that is always visible."""
    spent = float(total - remaining) / float(total) if total else 0.0
    filled = round(spent * 20)
    return Text.assemble(
        ("Budget ", "bold"),
        ("▓" * filled + "░" * (20 - filled), "blue"),
        f"  {total - remaining:.3g} of {total:.3g} spent, {remaining:.3g} left",
    )


def console() -> Console:
    """Standard output, as wide as people read; colours only where they can be seen."""
    out = Console(highlight=False)
    return out if out.is_terminal else Console(highlight=False, width=100)
