"""Once: a request that carries a key is answered once, however often it is sent.

The first response is kept and sent again byte for byte, so that trying again after a lost connection is
never charged twice. A refusal that charged nothing is not kept: the request may come again under its key.
After a crash there may be no response: then the ledger says what was charged under the key. What was settled
is sent, what was lost is refused every time, and nothing is charged a second time.

Giving a running question up, from whichever worker the request to do so reaches.

Long work that the caller does not wait for. Its state is in the store, so that any worker can tell it.
"""

from __future__ import annotations

import itertools
import json
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, Final, final

from fastapi import BackgroundTasks, Header, Request
from fastapi.responses import JSONResponse

from blowfishdb.adapters.store.once import SILENCE, Scratch
from blowfishdb.adapters.store.values import RequestKey
from blowfishdb.core.cancellation import Cancellation, Progress
from blowfishdb.core.errors import BlowfishError, NotFound, WorkspaceError
from blowfishdb.core.policy.codec import digest
from blowfishdb.entrypoints.server import problems
from blowfishdb.entrypoints.server.access import Caller, Curator
from blowfishdb.entrypoints.server.problems import Problem
from blowfishdb.entrypoints.server.routing import PREFIX, Router
from blowfishdb.entrypoints.server.server import Server
from blowfishdb.messages.answers import Answer

_EVERY: Final = 0.5  # seconds between looks at what other workers were told
_BEAT: Final = 10  # looks between two signs of life
_RUNNING, _STOP = "running", "stop"

_here: dict[tuple[str, str, str], Cancellation] = {}
"""What runs in this very process, by workspace, user and key; it need not wait for the next look."""


@final
class RunningQuestions:
    """The questions that are being answered now, by user and idempotency key."""

    def __init__(self, server: Server) -> None:
        self._workspace = server.workspace.place
        self._scratch = server.scratch

    @contextmanager
    def running(self, user: str, key: str, beat: Callable[[], None] = lambda: None) -> Iterator[Cancellation]:
        """While inside, whoever calls ``stop`` with the same names cancels the question.

        ``beat`` is called every few seconds, to tell others that somebody is still at work.
        """
        cancel, over = Cancellation(), threading.Event()
        self._scratch.put(user, _name(key), _RUNNING)
        watch = threading.Thread(
            target=self._watch, args=(user, key, cancel, over, beat), name="blowfishdb-cancel", daemon=True
        )
        watch.start()
        _here[self._workspace, user, key] = cancel
        try:
            yield cancel
        finally:
            _here.pop((self._workspace, user, key), None)
            over.set()
            watch.join()
            self._scratch.drop(user, _name(key))

    def stop(self, user: str, key: str) -> None:
        """Ask for a question to be given up."""
        if not self._scratch.replace(user, _name(key), _STOP):
            raise NotFound(
                "No question of yours is running under this key.", fixes=("look whether its answer is there",)
            )
        if (cancel := _here.get((self._workspace, user, key))) is not None:
            cancel.cancel()

    def _watch(
        self, user: str, key: str, cancel: Cancellation, over: threading.Event, beat: Callable[[], None]
    ) -> None:
        looks, stopped = itertools.count(1), False
        while not over.wait(_EVERY):
            if not stopped and self._scratch.get(user, _name(key)) == _STOP:
                stopped = True
                cancel.cancel()
            if next(looks) % _BEAT == 0:
                with suppress(WorkspaceError):  # others hold the workspace: the next beat may come through
                    beat()


def _name(key: str) -> str:
    return f"running {key}"


REPLAYED: Final = "Idempotent-Replayed"
Key = Annotated[
    str | None,
    Header(alias="Idempotency-Key", min_length=1, max_length=255, description="The same key charges once."),
]


@final
@dataclass(frozen=True)
class Reply:
    """What a request is answered, now and whenever it is sent again under its key."""

    status: int
    body: dict[str, Any]
    replayed: bool = False

    @classmethod
    def of(cls, problem: Problem) -> Reply:
        """A problem that counts as an answer: it was charged, or comes with a new price."""
        return cls(problem.status, problem.body)

    @classmethod
    def stored(cls, text: str) -> Reply:
        """The reply from the text that ``text`` gave."""
        stored = json.loads(text)
        return cls(stored["status"], json.loads(stored["body"]), replayed=True)

    @property
    def text(self) -> str:
        """The reply as it is stored: read again and sent, it is the same byte for byte."""
        return json.dumps({"status": self.status, "body": json.dumps(self.body, ensure_ascii=False)})

    def response(self) -> JSONResponse:
        """The reply as programs get it."""
        headers = {"Cache-Control": "no-store"} | ({REPLAYED: "true"} if self.replayed else {})
        media = "application/json" if self.status < 400 else problems.MEDIA_TYPE
        return JSONResponse(self.body, self.status, headers=headers, media_type=media)


def answered_once(
    caller: Caller,
    request: Request,
    key: str | None,
    asked: Mapping[str, Any],
    answer: Callable[[Cancellation | None, RequestKey | None], Reply],
    recall: Callable[[Answer], Reply] | None = None,
) -> Reply:
    """What ``answer`` replies to what was asked, or what it replied when this key came before.

    ``recall`` makes the reply of one answer; of several, ``answer`` finds those that are there.
    """
    if key is None:
        with caller.server.underway.question() as alone:
            return answer(alone, None)
    memory, sent = caller.server.idempotency, RequestKey(key, digest(asked))
    stored = memory.kept(caller.name, key, sent.asked)
    if stored is None:
        answers = _recalled(caller, sent)
        if recall is not None and 0 in answers:
            stored = recall(answers[0]).text
            memory.keep(caller.name, key, sent.asked, stored)
        else:
            stored = memory.once(caller.name, key, sent.asked)
    if stored is not None:
        return Reply.stored(stored)
    try:
        running = RunningQuestions(caller.server)
        with (
            running.running(caller.name, key, lambda: memory.renew(caller.name, key)) as cancel,
            caller.server.underway.question(cancel),
        ):
            reply = answer(cancel, sent)
    except BlowfishError as error:
        if not error.charged:
            memory.give_up(caller.name, key)
            raise
        reply = Reply.of(problems.told(request, error))
    except BaseException:
        memory.give_up(caller.name, key)
        raise
    if reply.status == 409:  # the policy changed: nothing was done that could be repeated
        memory.give_up(caller.name, key)
    else:
        memory.keep(caller.name, key, sent.asked, reply.text)
    return reply


def _recalled(caller: Caller, sent: RequestKey) -> dict[int, Answer]:
    """What the ledger has under a key; a charge that nobody works on any more is lost, and so refused."""
    alive = caller.server.idempotency.alive(caller.name, sent.text)
    return caller.gateway.answered_under(sent, silence=timedelta.max if alive else SILENCE)


jobs: Final = Router(PREFIX)

Work = Callable[[Progress], dict[str, Any]]
"""Does it, tells how far it is, and returns the result."""
_JOBS: Final = f"{PREFIX}/jobs/"


@jobs.get("/jobs/{job}", summary="How far a job is")
def job(job: str, caller: Curator) -> JSONResponse:
    """How far a job of yours is; its result once it is done, the problem if it failed."""
    return told(job, caller)


def told(job: str, caller: Caller) -> JSONResponse:
    """How far a job is, for whoever started it."""
    state = caller.server.scratch.get(caller.name, _job_name(job))
    if state is None:
        raise NotFound("There is no such job of yours.", fixes=("start it again",))
    return JSONResponse(json.loads(state), headers={"Cache-Control": "no-store"})


def started(work: Work, caller: Caller, tasks: BackgroundTasks, at: str = _JOBS) -> JSONResponse:
    """Begin once the response is out; 202 says where to look."""
    new = _Job(caller.server.scratch, caller, secrets.token_urlsafe(12))
    new.tell("running", 0, 0)
    tasks.add_task(new.run, work)
    headers = {"Location": f"{at}{new.id}", "Preference-Applied": "respond-async"}
    return JSONResponse({"id": new.id, "state": "running", "done": 0, "of": 0}, 202, headers=headers)


@final
@dataclass(frozen=True, eq=False)
class _Job:
    scratch: Scratch
    caller: Caller
    id: str

    def tell(self, state: str, done: int, of: int, **more: Any) -> None:
        body = {"id": self.id, "state": state, "done": done, "of": of, **more}
        self.scratch.put(self.caller.name, _job_name(self.id), json.dumps(body))

    def run(self, work: Work) -> None:
        """Nobody waits for an error here, so it is stored; what nobody foresaw is raised for the log too."""
        seen = [0, 0]

        def progress(done: int, of: int) -> None:
            seen[:] = [done, of]
            self.tell("running", done, of)

        try:
            result = work(progress)
        except BlowfishError as error:
            refusal = problems.problem_of(error, shown_places=self.caller.curator, reference=self.id)
            self.tell("failed", *seen, problem=refusal.body)
        except Exception:
            self.tell("failed", *seen, problem=problems.unexpected(self.id).body)
            raise
        else:
            self.tell("done", seen[1], seen[1], result=result)


def _job_name(job: str) -> str:
    return f"job {job[:64]}"
