"""The secret of a workspace from which every worker derives the same keys: for quotes, for pictures.

It is made once and kept in the catalogue. A server makes it when it starts, so that no quote has to write.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Final

from blowfishdb.adapters.catalogue import Catalogue
from blowfishdb.adapters.store import Store

_KIND, _NAME = "key", "quotes"
_BYTES: Final = 32


def key(store: Store, purpose: str) -> bytes:
    """The key for one purpose; whoever has it learns nothing about the others."""
    return hmac.new(_secret(store), purpose.encode(), hashlib.sha256).digest()


def _secret(store: Store) -> bytes:
    """The first one that any worker entered; later ones do not count."""
    catalogue = Catalogue(store)
    if (stored := catalogue.get(_KIND, _NAME, 1)) is None:
        catalogue.put(_KIND, _NAME, secrets.token_hex(_BYTES))
        stored = catalogue.get(_KIND, _NAME, 1)
        assert stored is not None
    return bytes.fromhex(stored)
