"""The nearest statement that is answered, of one that is refused for a condition in it.

A condition that is not answered is refused with another one that is. In a statement that one takes its place,
wherever it stands (WHERE, FILTER, CASE), and all the rest stays as it was typed. A column that is not there
takes the name of the one that was meant.
"""

from __future__ import annotations

from sqlglot import exp

from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import BlowfishError, InvalidQuestion, UnknownColumn
from blowfishdb.language.condition import condition, condition_of, example_condition
from blowfishdb.language.text import name_text, sql_tree

_PARTED = (exp.And, exp.Or, exp.Not, exp.Paren)


def mended(tree: exp.Expr, domain: Domain) -> exp.Expr | None:
    """The statement with every condition that is refused put right; None where that is nothing new."""
    whole = tree.copy()
    changed = _named(whole, domain)
    for node in list(whole.find_all(exp.Where, exp.If)):
        if node.find(exp.Query) is None:
            changed |= _mend(node.this, domain)
    return whole if changed else None


def _mend(node: exp.Expr, domain: Domain) -> bool:
    """The smallest parts of a condition that are refused, each in its place."""
    refused = _refusal(node, domain)
    if refused is None:
        return False
    if isinstance(node, _PARTED):
        parts = [node.this, *([node.expression] if isinstance(node, exp.Connector) else [])]
        changed = [_mend(part, domain) for part in parts]
        if any(changed):
            return True
    instead = next((fix for fix in refused.fixes if _reads(fix, domain)), None)
    if instead is None:
        folded = {name.casefold(): name for name in domain.names}
        named = (folded.get(column.name.casefold()) for column in node.find_all(exp.Column))
        column = next((name for name in named if name is not None), None)
        if column is None:
            return False
        instead = example_condition(domain, column)
    tree = sql_tree(instead, exp.Condition, instead)
    node.replace(exp.paren(tree) if isinstance(tree, exp.Connector) else tree)
    return True


def _refusal(node: exp.Expr, domain: Domain) -> BlowfishError | None:
    try:
        condition_of(node.copy(), domain)
    except BlowfishError as error:
        return error
    return None


def _reads(typed: str, domain: Domain) -> bool:
    try:
        condition(typed, domain)
    except BlowfishError:
        return False
    return True


def _named(whole: exp.Expr, domain: Domain) -> bool:
    """Names of columns that are not there, as those that were meant."""
    folded = {name.casefold() for name in domain.names}
    aliases = {alias.alias.casefold() for alias in whole.find_all(exp.Alias)}
    changed = False
    for column in whole.find_all(exp.Column):
        name = column.name
        if name.casefold() in folded or name.casefold() in aliases or not name:
            continue
        try:
            domain[name]
        except UnknownColumn as error:
            meant = next((known for known in domain.names if repr(known) in error.fixes[:1]), None)
            if meant is not None:
                column.set("this", exp.to_identifier(meant, quoted=name_text(meant) != meant))
                changed = True
        except InvalidQuestion:
            continue
    return changed
