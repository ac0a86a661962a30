"""The public names with their signatures, wherever in the tree they live.

``bf.*`` comes first, then whatever its functions, methods and fields hand out: a dataset, an answer, a quote.
A class shows what the class it extends does not show already. Nothing here says in which file anything is.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cached_property
from types import FunctionType, MemberDescriptorType, ModuleType
from typing import Any

import blowfishdb as bf

INNER = frozenset(
    {
        "And", "Atom", "Axis", "Between", "Bits", "ClusterPlan", "ClusterQuestion", "Clustering",
        "Comparison", "Gateway", "IsIn", "IsMissing", "Kind", "LinearErrors", "Not", "Observation", "Op",
        "Or", "PointSpace", "Question", "QuestionForm", "Request", "Simulation", "UnitScales",
    }
)  # fmt: skip
"""What only passes from one of our parts to another: people may hold it, and nobody promised its inside."""
OPERATORS = frozenset(
    {
        "__add__", "__and__", "__call__", "__contains__", "__enter__", "__eq__", "__exit__", "__ge__",
        "__getitem__", "__gt__", "__invert__", "__iter__", "__le__", "__len__", "__lt__", "__matmul__",
        "__mul__", "__ne__", "__or__", "__sub__",
    }
)  # fmt: skip
_WORD = re.compile(r"[A-Za-z_]\w*")
_PREFIX = re.compile(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z_])")
_PLACE = re.compile(r" at 0x[0-9a-f]+")
_ENUM = re.compile(r"<(\w+\.\w+): .*?>(?=[,)]|$)")
_QUOTED = re.compile(r"((?::|->) )(['\"])(.*?)\2(?=[,)]| =|$)")
_SET = re.compile(r"^\s+self\.([a-z]\w*)(?:: [^=]+)? = ", re.MULTILINE)


def text() -> str:
    """Every public name and what it takes and gives."""
    public = dict(_public())
    handed = _handed_out(public)
    found = {each: each.__name__ for each in handed}
    found |= {value: name for name, value in public.items() if isinstance(value, type)}
    listed = [_shown(name, value, found) for name, value in public.items()]
    classes = [[f"class {each.__name__}{_bases(each, found)}", *_members(each, found)] for each in handed]
    return "\n\n".join([*listed, "# What these hand out", *sorted(map("\n".join, classes))]) + "\n"


def _public() -> Iterator[tuple[str, Any]]:
    """Names below ``bf``, those of its modules behind a dot."""
    for name in sorted(bf.__all__):
        value = getattr(bf, name)
        if not isinstance(value, ModuleType):
            yield f"bf.{name}", value
            continue
        listed = getattr(value, "__all__", None) or [
            each for each in vars(value) if not each.startswith("_") and _is_ours(getattr(value, each))
        ]
        for each in sorted(listed):
            yield f"bf.{name}.{each}", getattr(value, each)


def _is_ours(value: object) -> bool:
    return callable(value) and (getattr(value, "__module__", "") or "").startswith(bf.__name__)


def _shown(name: str, value: Any, found: Mapping[type, str]) -> str:
    if isinstance(value, type):
        return "\n".join([f"class {name}{_made_by(value)}{_bases(value, found)}", *_members(value, found)])
    if isinstance(value, FunctionType):
        return f"{name}{_signature(value)}"
    inside = sorted(each if isinstance(each, str) else type(each).__name__ for each in value)
    return f"{name}: {', '.join(inside)}"


# --- what is reached from there ---------------------------------------------------------------


def _handed_out(public: Mapping[str, Any]) -> list[type]:
    """Classes of ours that public functions, methods and fields return, and what these return in turn."""
    seen: dict[int, Any] = {id(value): value for value in public.values()}
    waiting, handed = list(public.values()), []
    while waiting:
        for said, known in _returned(waiting.pop()):
            for word in _WORD.findall(said):
                each = known.get(word)
                if not isinstance(each, type) or not _is_ours(each) or id(each) in seen:
                    continue
                seen[id(each)] = each
                if each.__name__ not in INNER and not _is_listed_elsewhere(each):
                    handed.append(each)
                    waiting.append(each)
    return handed


def _is_listed_elsewhere(each: type) -> bool:
    """Plans are known by what every plan can do."""
    return issubclass(each, bf.mechanisms.Plan | bf.mechanisms.DataDependentPlan)


def _returned(value: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Annotations as they are written, with the names that are known where they stand."""
    if isinstance(value, FunctionType):
        yield str(value.__annotations__.get("return", "")), value.__globals__
    if not isinstance(value, type):
        return
    for name in _member_names(value):
        function = _function(inspect.getattr_static(value, name))
        if function is not None:
            yield str(function.__annotations__.get("return", "")), function.__globals__
    for base in filter(_is_ours, value.__mro__):
        for name, said in inspect.get_annotations(base).items():
            if not name.startswith("_"):
                yield str(said), vars(sys.modules[base.__module__])


# --- one class --------------------------------------------------------------------------------


def _bases(each: type, found: Mapping[type, str]) -> str:
    """The public classes that it extends, and Python's own, whatever lies between."""
    named = dict.fromkeys(_nearest(each, found))
    return f" extends {', '.join(named)}" if named else ""


def _nearest(each: type, found: Mapping[type, str]) -> Iterator[str]:
    for base in each.__bases__:
        if base in found or (base.__module__ == "builtins" and base is not object):
            yield found.get(base, base.__name__)
        elif _is_ours(base):
            yield from _nearest(base, found)


def _made_by(each: type) -> str:
    """What it is made from; an abstract class is not made."""
    if inspect.isabstract(each):
        return " (abstract)"
    if issubclass(each, Enum) or (issubclass(each, Exception) and "__init__" not in each.__dict__):
        return ""
    return _signature(each).partition(" -> ")[0]


def _own(each: type) -> set[str]:
    return {name for base in each.__mro__ if _is_ours(base) for name in base.__dict__}


def _members(each: type, found: Mapping[type, str]) -> list[str]:
    shown = set().union(*(_lines(base) for base in each.__mro__[1:] if base in found))
    return [f"    {line}" for line in sorted(_lines(each) - shown)]


def _lines(each: type) -> set[str]:
    if issubclass(each, Enum):
        return {f"{name} = {member.value!r}" for name, member in each.__members__.items()} | {
            _member(name, inspect.getattr_static(each, name))
            for name in _member_names(each)
            if name not in each.__members__
        }
    lines = {_member(name, inspect.getattr_static(each, name)) for name in _member_names(each)}
    if is_dataclass(each):
        return lines | {_field(field) for field in fields(each) if not field.name.startswith("_")}
    return lines | set(_set_when_made(each))


def _set_when_made(each: type) -> Iterator[str]:
    """Attributes that an ``__init__`` of ours sets, by name alone, unless a member has that name."""
    for base in filter(_is_ours, each.__mro__):
        if "__init__" in base.__dict__:
            set_there = _SET.findall(inspect.getsource(base.__dict__["__init__"]))
            yield from (name for name in set_there if not hasattr(each, name))


def _member_names(each: type) -> list[str]:
    stored = {field.name for field in fields(each)} if is_dataclass(each) else set()
    asked = {name for name in _own(each) if not name.startswith("_") or name in OPERATORS}
    made_up = {"__eq__"} if is_dataclass(each) else set()  # dataclasses write it themselves
    return sorted(asked - stored - made_up)


def _member(name: str, member: Any) -> str:
    if isinstance(member, property | cached_property):
        function = _function(member)
        return f"{name}: {_tidy(str(function.__annotations__.get('return', '')))}" if function else name
    kind = {classmethod: "classmethod ", staticmethod: "staticmethod "}.get(type(member), "")
    function = _function(member)
    if function is not None:
        return f"{kind}{name}{_signature(function)}"
    return name if isinstance(member, MemberDescriptorType) else f"{name} = {_value(member)}"


def _function(member: Any) -> FunctionType | None:
    for way in ("fget", "func", "__func__"):
        member = getattr(member, way, member)
    return member if isinstance(member, FunctionType) else None


def _field(field: Any) -> str:
    default = "" if field.default is MISSING else f" = {_value(field.default)}"
    made = "" if field.default_factory is MISSING else " = …"
    return f"{field.name}: {_tidy(str(field.type))}{default}{made}"


def _value(value: Any) -> str:
    return _tidy(repr(value))


def _signature(made: Any) -> str:
    text = str(inspect.signature(made))
    unquoted = _QUOTED.sub(r"\1\3", _ENUM.sub(r"\1", text))
    return _tidy(re.sub(r"\((self|cls)(, |(?=\)))", "(", unquoted, count=1))


def _tidy(said: str) -> str:
    """Without the modules in front of names, and without places in memory."""
    return _PREFIX.sub("", _PLACE.sub("", _ENUM.sub(r"\1", said)))
