"""Long work that the caller does not wait for. Its state is in the store, so that any worker can tell it."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, final

from fastapi import APIRouter, BackgroundTasks
from fastapi.responses import JSONResponse

from blowfishdb.adapters.scratch import Scratch
from blowfishdb.core.errors import BlowfishError, NotFound
from blowfishdb.entrypoints.api import problems
from blowfishdb.entrypoints.api.access import Caller, Curator
from blowfishdb.messages import Progress

router: Final = APIRouter()

Work = Callable[[Progress], dict[str, Any]]
"""Does it, tells how far it is, and returns the result."""
PREFIX: Final = "/api/v1/jobs/"


@router.get("/jobs/{job}", summary="How far a job is")
def job(job: str, caller: Curator) -> JSONResponse:
    """How far a job of yours is; its result once it is done, the problem if it failed."""
    found = Scratch(caller.gateway.store).get(caller.name, _name(job))
    if found is None:
        raise NotFound("There is no such job of yours.", fixes=("start it again",))
    return JSONResponse(json.loads(found), headers={"Cache-Control": "no-store"})


def started(work: Work, caller: Caller, tasks: BackgroundTasks) -> JSONResponse:
    """Begin once the response is out; 202 says where to look."""
    new = _Job(Scratch(caller.gateway.store), caller, secrets.token_urlsafe(12))
    new.tell("running", 0, 0)
    tasks.add_task(new.run, work)
    headers = {"Location": f"{PREFIX}{new.id}", "Preference-Applied": "respond-async"}
    return JSONResponse({"id": new.id, "state": "running", "done": 0, "of": 0}, 202, headers=headers)


@final
@dataclass(frozen=True, eq=False)
class _Job:
    scratch: Scratch
    caller: Caller
    id: str

    def tell(self, state: str, done: int, of: int, **more: Any) -> None:
        body = {"id": self.id, "state": state, "done": done, "of": of, **more}
        self.scratch.put(self.caller.name, _name(self.id), json.dumps(body))

    def run(self, work: Work) -> None:
        """Nobody waits for an error here, so it is stored; what nobody foresaw is raised for the log too."""
        seen = [0, 0]

        def progress(done: int, of: int) -> None:
            seen[:] = [done, of]
            self.tell("running", done, of)

        try:
            result = work(progress)
        except BlowfishError as error:
            refusal = problems.problem_of(error, shown_places=True, reference=self.id)
            self.tell("failed", seen[0], seen[1], problem=json.loads(bytes(refusal.body)))
        except Exception:
            unforeseen = problems.unexpected(self.id)
            self.tell("failed", seen[0], seen[1], problem=json.loads(bytes(unforeseen.body)))
            raise
        else:
            self.tell("done", seen[1], seen[1], result=result)


def _name(job: str) -> str:
    return f"job {job[:64]}"
