"""The one error tree.

Every message says what happened, why, and what to try, in the user's words, and never contains a
value from the data. Unless ``charged`` says otherwise, nothing was charged.
"""

from __future__ import annotations

import re

_LONG_WORD = re.compile(r"\S{300,}")


class BlowfishError(Exception):
    """The root of every error that BlowfishDB raises on purpose.

    ``fixes`` lists what the user can try, most promising first; ``charged`` says whether budget
    was spent although no answer came back.
    """

    charged: bool = False

    def __init__(self, message: str, *, fixes: tuple[str, ...] = ()) -> None:
        self.message = _LONG_WORD.sub(_shortened, message)
        self.fixes = fixes
        super().__init__(self.message)

    def __str__(self) -> str:
        return " ".join((self.message, *(f"Try: {fix}." for fix in self.fixes)))


def _shortened(word: re.Match[str]) -> str:
    """The ends of a word that nobody would read: thousands of digits, say, that someone typed."""
    return f"{word[0][:40]}…{word[0][-20:]}"


# --- what a user typed ------------------------------------------------------------------------


class InvalidInput(BlowfishError, ValueError):
    """Something that was typed cannot be used; nothing ran."""


class EmptyDomain(InvalidInput):
    """A domain, attribute, graph or workload without a single cell."""


class ReversedBounds(InvalidInput):
    """A lower bound above its upper bound."""


class NotFinite(InvalidInput):
    """NaN or infinity where a finite number is needed."""


class InvalidAttribute(InvalidInput):
    """An attribute that contradicts itself (a step of zero, the same category twice)."""


class InvalidValue(InvalidInput):
    """A value that is not in the declared domain."""


class InvalidThreshold(InvalidInput):
    """A distance threshold that is not a positive number."""


class InvalidGraph(InvalidInput):
    """Edges, labels or reaches that do not describe a policy graph."""


class InvalidBins(InvalidInput):
    """Bins that do not cover the domain, overlap, or are empty."""


class InvalidWorkload(InvalidInput):
    """A set of counting questions that cannot be formed."""


class InvalidPredicate(InvalidInput):
    """A condition that does not fit the column it is about."""


class SizeMismatch(InvalidInput):
    """Two parts that speak of different numbers of cells."""


class UnknownColumn(InvalidInput):
    """A column that the dataset does not declare."""


class UnknownDataset(InvalidInput):
    """A dataset that the workspace does not hold."""


class NameTaken(InvalidInput):
    """A dataset has this name already, or had it once."""


class NotFound(InvalidInput):
    """There is no such answer, user, token or other thing with a name of its own."""


class InvalidAlpha(InvalidInput):
    """An accuracy that is not a positive number."""


class InvalidBeta(InvalidInput):
    """A failure probability outside (0, 1)."""


class InvalidEpsilon(InvalidInput):
    """A privacy loss that is not a positive number, or is finer than one billionth."""


class InvalidScale(InvalidInput):
    """A noise scale that is not a positive rational number."""


class InvalidQuestion(InvalidInput):
    """Text that cannot be read as a question or as SQL."""


class TooLarge(InvalidInput):
    """Materialising this would need more memory or time than the caller allowed."""


class KeyReused(InvalidInput):
    """A key that was given to one request came back with another."""


# --- what the policy or the budget forbids ----------------------------------------------------


class Refused(BlowfishError):
    """The request is well formed, but answering it is not allowed or not possible."""


class UnsupportedSql(Refused):
    """SQL that was understood, but that no private question stands for."""


class NotProven(Refused):
    """No proof covers this mechanism under this policy, so it does not run."""


class NotCounted(NotProven):
    """What needs the number of rows, which is public, but not on record: asking for it costs nothing."""


class NoGuarantee(Refused):
    """The mechanism cannot promise an error before it sees the data."""


class Infeasible(Refused):
    """No privacy loss that can be expressed reaches the requested accuracy."""


class BudgetExhausted(Refused):
    """The question costs more than is left; ``needed`` and ``left`` are exact decimal texts."""

    def __init__(
        self,
        message: str,
        *,
        needed: object = None,
        left: object = None,
        fixes: tuple[str, ...] = (),
    ) -> None:
        self.needed = None if needed is None else str(needed)
        self.left = None if left is None else str(left)
        super().__init__(message, fixes=fixes)


class MaxCostExceeded(Refused):
    """The question costs more than the caller was willing to spend; ``cost`` is an exact decimal text."""

    def __init__(self, message: str, *, cost: object = None, fixes: tuple[str, ...] = ()) -> None:
        self.cost = None if cost is None else str(cost)
        super().__init__(message, fixes=fixes)


class AnswerInProgress(Refused):
    """The very same question is being answered right now; soon its answer will be free.

    ``wait`` is the number of seconds after which it is worth asking again.
    """

    def __init__(self, message: str, *, wait: int = 1, fixes: tuple[str, ...] = ()) -> None:
        self.wait = wait
        super().__init__(message, fixes=fixes)


class AlreadyRefined(Refused):
    """A release that was to be made more accurate is being refined, or was: that is possible once."""


class AnswerLost(Refused):
    """What was asked under this key was charged, and its answer was lost; it is not charged a second time."""

    charged = True


class PolicyConflict(Refused):
    """A policy change that would break a promise already made."""


class NotOpen(Refused):
    """A question about a dataset that is not open yet, or is closed."""


class NotSignedIn(Refused):
    """Nobody is known to be asking: no valid token, or a wrong name or password."""


class NotAllowed(Refused):
    """The one who asks is known, but has another role."""


class TooManyAttempts(Refused):
    """Too many wrong passwords; ``wait`` is the number of seconds after which another try counts."""

    def __init__(self, message: str, *, wait: int, fixes: tuple[str, ...] = ()) -> None:
        self.wait = wait
        super().__init__(message, fixes=fixes)


# --- what the world did -----------------------------------------------------------------------


class SourceError(BlowfishError):
    """The data source could not be used."""


class SourceMissing(SourceError):
    """The file or table is not there."""


class SourceCorrupt(SourceError):
    """The file is there but is not a readable database."""


class QueryFailed(SourceError):
    """The database refused or lost the query after the budget had been committed."""

    charged = True


class Cancelled(QueryFailed):
    """The question was given up by whoever waited for it; ``charged`` says whether that was in time."""


class WorkspaceError(BlowfishError):
    """The workspace file could not be used."""


class SecretLeak(BlowfishError, TypeError):
    """Code tried to print, serialise or compare a true value."""
