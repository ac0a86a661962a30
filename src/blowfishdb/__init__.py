"""BlowfishDB: private answers from any relational database, under a policy.

import blowfishdb as bf

ws = bf.open("demo.blowfish")
q = ws["salaries"]["salary"].cumulative(bins=20).accurate_to(50, confidence=0.95)
q.quote(); q.ask()
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from blowfishdb import mechanisms as mechanisms
    from blowfishdb import noise as noise
    from blowfishdb.adapters.store.backup import delete as delete
    from blowfishdb.adapters.store.backup import restore as restore
    from blowfishdb.core import errors as errors
    from blowfishdb.core import graphs as graphs
    from blowfishdb.core import workloads as workloads
    from blowfishdb.core.budget import Epsilon as Epsilon
    from blowfishdb.core.cancellation import Cancellation as Cancellation
    from blowfishdb.core.constraints import Constraints as Constraints
    from blowfishdb.core.constraints.under_policy import sensitivity as sensitivity
    from blowfishdb.core.domain.attributes import Boolean as Boolean
    from blowfishdb.core.domain.attributes import Category as Category
    from blowfishdb.core.domain.attributes import Integer as Integer
    from blowfishdb.core.domain.attributes import Real as Real
    from blowfishdb.core.domain.bins import Bins as Bins
    from blowfishdb.core.domain.conditions import col as col
    from blowfishdb.core.domain.dates import Date as Date
    from blowfishdb.core.domain.domain import Domain as Domain
    from blowfishdb.core.domain.tables import Child as Child
    from blowfishdb.core.domain.tables import Lookup as Lookup
    from blowfishdb.core.domain.tables import People as People
    from blowfishdb.core.domain.tables import Tables as Tables
    from blowfishdb.core.lower_bound import lower_bound as lower_bound
    from blowfishdb.core.policy.policy import Policy as Policy
    from blowfishdb.language.known import read_graph as read_graph
    from blowfishdb.mechanisms.check import check_mechanism as check_mechanism
    from blowfishdb.workspace.embedded import open_workspace as open  # noqa: A004
    from blowfishdb.workspace.remote import connect as connect

# Where each public name lives. Names are imported when they are first used, so `import blowfishdb`
# stays light whatever libraries a part of it needs.
_HOMES: dict[str, tuple[str, str | None]] = {
    "mechanisms": ("blowfishdb.mechanisms", None),
    "noise": ("blowfishdb.noise", None),
    "errors": ("blowfishdb.core.errors", None),
    "graphs": ("blowfishdb.core.graphs", None),
    "workloads": ("blowfishdb.core.workloads", None),
    "Bins": ("blowfishdb.core.domain.bins", "Bins"),
    "Epsilon": ("blowfishdb.core.budget", "Epsilon"),
    "Integer": ("blowfishdb.core.domain.attributes", "Integer"),
    "Real": ("blowfishdb.core.domain.attributes", "Real"),
    "Category": ("blowfishdb.core.domain.attributes", "Category"),
    "Date": ("blowfishdb.core.domain.dates", "Date"),
    "Boolean": ("blowfishdb.core.domain.attributes", "Boolean"),
    "Domain": ("blowfishdb.core.domain.domain", "Domain"),
    "Tables": ("blowfishdb.core.domain.tables", "Tables"),
    "People": ("blowfishdb.core.domain.tables", "People"),
    "Child": ("blowfishdb.core.domain.tables", "Child"),
    "Lookup": ("blowfishdb.core.domain.tables", "Lookup"),
    "Constraints": ("blowfishdb.core.constraints", "Constraints"),
    "Policy": ("blowfishdb.core.policy.policy", "Policy"),
    "col": ("blowfishdb.core.domain.conditions", "col"),
    "sensitivity": ("blowfishdb.core.constraints.under_policy", "sensitivity"),
    "read_graph": ("blowfishdb.language.known", "read_graph"),
    "check_mechanism": ("blowfishdb.mechanisms.check", "check_mechanism"),
    "lower_bound": ("blowfishdb.core.lower_bound", "lower_bound"),
    "open": ("blowfishdb.workspace.embedded", "open_workspace"),
    "connect": ("blowfishdb.workspace.remote", "connect"),
    "Cancellation": ("blowfishdb.core.cancellation", "Cancellation"),
    "restore": ("blowfishdb.adapters.store.backup", "restore"),
    "delete": ("blowfishdb.adapters.store.backup", "delete"),
}

__all__ = [
    "Bins",
    "Boolean",
    "Cancellation",
    "Category",
    "Child",
    "Constraints",
    "Date",
    "Domain",
    "Epsilon",
    "Integer",
    "Lookup",
    "People",
    "Policy",
    "Real",
    "Tables",
    "check_mechanism",
    "col",
    "connect",
    "delete",
    "errors",
    "graphs",
    "lower_bound",
    "mechanisms",
    "noise",
    "open",
    "read_graph",
    "restore",
    "sensitivity",
    "workloads",
]


@contextmanager
def _nothing_is_garbage() -> Iterator[None]:
    """No search for garbage while modules load: there is none, and looking takes a tenth of the time."""
    searches = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if searches:
            gc.enable()


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'blowfishdb' has no attribute '{name}'")
    module, attribute = _HOMES[name]
    with _nothing_is_garbage():
        home = import_module(module)
    value = home if attribute is None else getattr(home, attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
