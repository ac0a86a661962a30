"""Once: a request that carries a key is answered once, however often it is sent.

The first response is kept and sent again byte for byte, so that trying again after a lost connection is
never charged twice. A refusal that charged nothing is not kept: the request may come again under its key.
After a crash there may be no response: then the ledger says what was charged under the key. What was settled
is sent, what was lost is refused every time, and nothing is charged a second time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Annotated, Any, Final

from fastapi import Header, Request, Response
from fastapi.responses import JSONResponse

from blowfishdb.adapters.backends import Cancellation
from blowfishdb.adapters.idempotency import SILENCE
from blowfishdb.adapters.ledger_values import RequestKey
from blowfishdb.answers import Answer
from blowfishdb.core.codec import digest
from blowfishdb.core.errors import BlowfishError
from blowfishdb.entrypoints.api import problems
from blowfishdb.entrypoints.api.access import Caller
from blowfishdb.entrypoints.api.cancelling import RunningQuestions

REPLAYED: Final = "Idempotent-Replayed"
Key = Annotated[
    str | None,
    Header(alias="Idempotency-Key", min_length=1, max_length=255, description="The same key charges once."),
]


def answered_once(
    caller: Caller,
    request: Request,
    key: str | None,
    said: Mapping[str, Any],
    respond: Callable[[Cancellation | None, RequestKey | None], JSONResponse],
    recall: Callable[[Answer], JSONResponse] | None = None,
) -> Response:
    """What ``respond`` answers to ``said``, or what it answered when this key came before.

    ``recall`` makes the response of one answer; of several, ``respond`` finds those that are there.
    """
    if key is None:
        return respond(None, None)
    memory, sent = caller.server.idempotency, RequestKey(key, digest(said))
    kept = memory.kept(caller.name, key, sent.asked)
    if kept is None:
        found = _recalled(caller, sent)
        if recall is not None and 0 in found:
            kept = _kept(recall(found[0]))
            memory.keep(caller.name, key, sent.asked, kept)
        else:
            kept = memory.once(caller.name, key, sent.asked)
    if kept is not None:
        return _replayed(kept)
    try:
        running = RunningQuestions(caller.gateway.store)
        with running.running(caller.name, key, lambda: memory.renew(caller.name, key)) as cancel:
            response = respond(cancel, sent)
    except BlowfishError as error:
        if not error.charged:
            memory.give_up(caller.name, key)
            raise
        request.state.problem = type(error).__name__
        reference = problems.reference_of(request)
        response = problems.problem_of(error, shown_places=caller.curator, reference=reference)
    except BaseException:
        memory.give_up(caller.name, key)
        raise
    if response.status_code == 409:  # the policy changed: nothing was done that could be repeated
        memory.give_up(caller.name, key)
    else:
        memory.keep(caller.name, key, sent.asked, _kept(response))
    return response


def _recalled(caller: Caller, sent: RequestKey) -> dict[int, Answer]:
    """What the ledger has under a key; a charge that nobody works on any more is lost, and so refused."""
    alive = caller.server.idempotency.alive(caller.name, sent.text)
    return caller.gateway.answered_under(sent, silence=timedelta.max if alive else SILENCE)


def _kept(response: Response) -> str:
    """A response as it is stored: sent again byte for byte."""
    return json.dumps({"status": response.status_code, "body": bytes(response.body).decode()})


def _replayed(kept: str) -> Response:
    stored = json.loads(kept)
    media = "application/json" if stored["status"] < 400 else problems.MEDIA_TYPE
    headers = {REPLAYED: "true", "Cache-Control": "no-store"}
    return Response(stored["body"], stored["status"], headers=headers, media_type=media)
