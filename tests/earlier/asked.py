"""Questions in the words in which they are written beside a workspace, so that they can be asked again."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from blowfishdb.workspace.asking import Asking
from blowfishdb.workspace.embedded import Workspace


@dataclass(frozen=True)
class Asked:
    """A question in its short form, on its terms, by someone."""

    dataset: str
    question: str
    error: float | None = None
    confidence: float = 0.95
    each: bool = False
    epsilon: str | None = None
    mechanism: str | None = None
    key: str | None = None
    user: str = "ana"

    def of(self, workspace: Workspace) -> Asking:
        """The question, about to be asked."""
        asking = workspace.as_user(self.user)[self.dataset].question(self.question).using(self.mechanism)
        if self.error is not None:
            return asking.accurate_to(self.error, confidence=self.confidence, each=self.each)
        return asking.spend(str(self.epsilon))

    def to_plain(self) -> dict[str, Any]:
        """Without what was not said."""
        usual = {"confidence": 0.95, "each": False, "user": "ana"}
        said = asdict(self).items()
        return {name: value for name, value in said if value is not None and value != usual.get(name)}
