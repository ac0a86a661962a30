"""What only the demonstration has: starting over; and the salary demo for a workspace with nothing in it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Final

from fastapi import APIRouter, FastAPI, Request, Response

from blowfishdb.adapters.accounts import Role
from blowfishdb.core.errors import InvalidInput, NotFound
from blowfishdb.entrypoints.api import signing
from blowfishdb.entrypoints.api.access import Caller
from blowfishdb.entrypoints.api.bodies import DemoRole
from blowfishdb.entrypoints.api.server import Server
from blowfishdb.entrypoints.samples import SAMPLES
from blowfishdb.entrypoints.web.frame import dataset_address, redirect
from blowfishdb.entrypoints.web.gates import PageCurator, PageReader

router: Final = APIRouter(include_in_schema=False)

_resetting: Final = threading.Lock()


@router.post("/demo/reset")
def reset(request: Request, caller: PageReader) -> Response:
    """Forget every answer and every change of policy, and stay in the same role."""
    if not caller.server.settings.demo or request.app.state.reset is None:
        raise NotFound("This is not the demonstration, so nothing is forgotten here.")
    role = caller.role
    with _resetting:
        start_over(request.app)
    response = redirect("/datasets", flash="The demonstration starts over: plain privacy, nothing asked.")
    _play(request, response, role)
    return response


@router.post("/datasets/salary-demo")
def salary_demo(caller: PageCurator) -> Response:
    """Synthetic salaries beside an empty workspace, as something to try things with."""
    folder = _folder(caller)
    sample = SAMPLES[0]
    if not sample.file(folder).exists():
        sample.make(folder)
    caller.gateway.add_dataset(sample.name, sample.file(folder), domain=sample.domain(), table=sample.name)
    return redirect(dataset_address(sample.name), flash=f"{sample.about}; about nobody.")


def start_over(app: FastAPI) -> None:
    """A new workspace in place of the old one, and a server for it in place of the old one."""
    before: Server = app.state.server
    before.workspace.close()
    place = Path(before.workspace.store.name)
    app.state.reset(place)
    app.state.server = Server.open(place, before.settings)


def _play(request: Request, response: Response, role: Role) -> None:
    signing.play(request, response, DemoRole(role=role), None)


def _folder(caller: Caller) -> Path:
    if caller.gateway.datasets() or not caller.gateway.store.sqlite:
        raise InvalidInput(
            "The salary demo is for a workspace in a file with nothing in it yet.", fixes=("blowfishdb demo",)
        )
    return Path(caller.gateway.store.name).resolve().parent
