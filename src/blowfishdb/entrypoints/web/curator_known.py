"""The part of the policy page about what the world already knows: kept in the draft, checked on demand."""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Request, Response

from blowfishdb.core.constraints import Constraints
from blowfishdb.core.errors import BlowfishError
from blowfishdb.entrypoints.web.curator_policy import show_policy
from blowfishdb.entrypoints.web.forms import Sent, text
from blowfishdb.entrypoints.web.frame import dataset_address, redirect, told
from blowfishdb.entrypoints.web.gates import PageCurator
from blowfishdb.entrypoints.web.known_form import CHECK, Said, changed

router: Final = APIRouter(include_in_schema=False)


@router.post("/datasets/{dataset}/policy/known")
def change_known(request: Request, dataset: str, form: Sent, caller: PageCurator) -> Response:
    """Add to what is known or take something back, in the draft; or compare it with the rows.

    CURATOR VIEW, TRUE DATA: what a comparison finds is in its answer, and in no address.
    """
    pairs = parse_qsl(text(form, "state"), keep_blank_values=True)
    try:
        if text(form, "do") == CHECK:
            found = caller.gateway.check_known(dataset)
            return show_policy(request, dataset, caller, dict(pairs), known=Said(checked=found.sentences))
        draft = caller.gateway.draft(dataset)
        known = changed(draft.constraints or Constraints(), form, draft.domain)
        caller.gateway.save_draft(dataset, draft.knowing(known))
    except BlowfishError as error:
        said = Said.of(form, told(request, error))
        return show_policy(request, dataset, caller, dict(pairs), known=said)
    address = dataset_address(dataset, f"/policy?{urlencode(pairs)}#known")
    return redirect(address, flash="Kept in the draft. Nothing follows it before it is published.")
