"""How people reach a server safely: by TLS of its own, or through a server in front that speaks it.

What a request says about where it came from (``X-Forwarded-For``, ``X-Forwarded-Proto``) can be written by
anybody, so it is believed only from addresses that whoever starts the server names.
"""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from blowfishdb.core.errors import InvalidInput

_THIS_MACHINE: Final = ("127.0.0.1", "::1")


@final
@dataclass(frozen=True)
class Doors:
    """The files of a certificate, or the servers in front; neither for plain HTTP.

    ``https`` says that people come through TLS, here or at a server in front.
    """

    certificate: str | None = None
    key: str | None = None
    proxies: tuple[str, ...] = ()
    https: bool = False

    @classmethod
    def of(
        cls,
        *,
        certificate: Path | None = None,
        key: Path | None = None,
        behind_proxy: bool = False,
        proxies: Iterable[str] = (),
    ) -> Doors:
        """Checked before anything is started; ``behind_proxy`` means TLS at a server in front."""
        named = tuple(_network(text) for text in proxies)
        if certificate is None and key is None:
            return cls(None, None, named or (_THIS_MACHINE if behind_proxy else ()), behind_proxy)
        if behind_proxy:
            raise InvalidInput(
                "TLS is spoken either here or by a server in front.",
                fixes=("--tls-cert and --tls-key", "--https-behind-proxy"),
            )
        if certificate is None or key is None:
            raise InvalidInput(
                "TLS needs a certificate and its key.", fixes=("--tls-cert and --tls-key together",)
            )
        _check_files(certificate, key)
        return cls(str(certificate.resolve()), str(key.resolve()), named, True)


PLAIN: Final = Doors()


def _network(text: str) -> str:
    try:
        return str(ipaddress.ip_network(text.strip(), strict=False))
    except ValueError:
        raise InvalidInput(
            "A server in front is named by its address.", fixes=("127.0.0.1", "10.0.0.0/24", "fd00::/8")
        ) from None


def _check_files(certificate: Path, key: Path) -> None:
    for path, what in ((certificate, "certificate"), (key, "key")):
        if not path.is_file():
            raise InvalidInput(f"There is no {what} at '{path}'.", fixes=("a file in PEM form",))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except (ssl.SSLError, OSError, ValueError):
        raise InvalidInput(
            f"'{certificate}' and '{key}' cannot be used for TLS.",
            fixes=(
                "a certificate (with those that vouch for it) and the key that it was made for, in PEM form",
                "a key without a password, readable by the server alone",
            ),
        ) from None


def _no_password() -> str:
    """Nobody is there to type one when a server starts by itself."""
    raise ValueError
