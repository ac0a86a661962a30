"""Doors: TLS by the server itself and in front of it, and whose word counts about where it came from."""

from __future__ import annotations

import datetime
import ipaddress
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from blowfishdb.core.errors import InvalidInput
from blowfishdb.entrypoints.serve import PLAIN, Doors
from tests.entrypoints.server import PASSWORD, make_workspace

PROGRAM = str(Path(sys.executable).with_name("blowfishdb"))
SESSION = "/api/v1/session"


def write_certificate(folder: Path, *, password: bytes | None = None) -> tuple[Path, Path]:
    """A certificate for this machine that vouches for itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now - datetime.timedelta(days=1))
    builder = builder.not_valid_after(now + datetime.timedelta(days=1)).add_extension(here, critical=False)
    certificate = builder.sign(key, hashes.SHA256())
    locked = (
        serialization.NoEncryption() if password is None else serialization.BestAvailableEncryption(password)
    )
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    files = folder / "certificate.pem", folder / "key.pem"
    files[0].write_bytes(certificate.public_bytes(pem))
    files[1].write_bytes(key.private_bytes(pem, form, locked))
    return files


@contextmanager
def served(place: Path, *options: str, verify: ssl.SSLContext | None = None) -> Iterator[httpx.Client]:
    """``blowfishdb serve`` in a process of its own, and a client of it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [PROGRAM, "-w", str(place), "serve", "--port", str(port), *options]
    scheme = "http" if verify is None else "https"
    client = httpx.Client(base_url=f"{scheme}://127.0.0.1:{port}", verify=verify or True, timeout=60)
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process, client:
        try:
            while True:
                assert process.poll() is None, "the server ended before it answered"
                try:
                    assert client.get("/api/v1/health").status_code == 200
                    break
                except httpx.TransportError:
                    time.sleep(0.1)
            yield client
        finally:
            process.send_signal(signal.SIGTERM)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_workspace(tmp_path_factory.mktemp("doors"), rows=100)


def guesses(client: httpx.Client, name: str) -> list[int]:
    """Seven wrong passwords, each said to come from elsewhere; after five from one address come waits."""
    body = {"user": name, "password": "not the password"}
    headers = [{"X-Forwarded-For": f"203.0.113.{number}"} for number in range(7)]
    return [client.post(SESSION, json=body, headers=each).status_code for each in headers]


def test_it_speaks_tls_itself(place: Path, tmp_path: Path) -> None:
    certificate, key = write_certificate(tmp_path)
    trusting = ssl.create_default_context(cafile=str(certificate))
    files = ("--tls-cert", str(certificate), "--tls-key", str(key))
    with served(place, *files, verify=trusting) as client:
        done = client.post(SESSION, json={"user": "curator", "password": PASSWORD})
        assert done.status_code == 200 and client.get("/api/v1/me").json()["user"] == "curator"
        cookies = done.headers.get_list("Set-Cookie")
        assert len(cookies) == 2 and all("; Secure" in each for each in cookies)
        assert all(each.startswith("__Host-blowfishdb") for each in cookies)
        assert done.headers["Strict-Transport-Security"].startswith("max-age=31536000")
        assert (
            guesses(client, "nobody") == [401] * 5 + [429] * 2
        )  # what they say of themselves is not believed
        with pytest.raises(httpx.TransportError):
            httpx.get(str(client.base_url).replace("https", "http") + "/api/v1/health")


def test_behind_a_server_that_speaks_tls_its_word_counts(place: Path) -> None:
    with served(place, "--https-behind-proxy") as client:
        passed_on = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https"}
        body = {"user": "curator", "password": PASSWORD}
        done = client.post(SESSION, json=body, headers=passed_on)
        assert done.status_code == 200 and "; Secure" in done.headers["Set-Cookie"]
        assert "Strict-Transport-Security" in done.headers
        assert guesses(client, "somebody") == [401] * 7
        assert client.get("/metrics").status_code == 401


@pytest.mark.thorough
def test_nobody_elses_word_counts(place: Path) -> None:
    with served(place, "--https-behind-proxy", "--trust-proxy", "192.0.2.0/24") as client:
        assert guesses(client, "anybody") == [401] * 5 + [429] * 2
    with served(place) as client:
        assert guesses(client, "whoever") == [401] * 5 + [429] * 2
        done = client.post(SESSION, json={"user": "analyst", "password": PASSWORD})
        assert "Secure" not in done.headers["Set-Cookie"]
        assert "Strict-Transport-Security" not in done.headers


def test_doors_are_checked_before_anything_starts(tmp_path: Path) -> None:
    certificate, key = write_certificate(tmp_path)
    assert Doors.of() == PLAIN
    assert Doors.of(behind_proxy=True).proxies == ("127.0.0.1", "::1")
    assert Doors.of(proxies=["10.0.0.1", "10.1.2.3/8"]).proxies == ("10.0.0.1/32", "10.0.0.0/8")
    assert Doors.of(certificate=certificate, key=key).https
    wrong = tmp_path / "empty.pem"
    wrong.write_text("")
    (tmp_path / "other").mkdir()
    _, locked = write_certificate(tmp_path / "other", password=b"secret")
    for refused in (
        {"certificate": certificate},
        {"key": key},
        {"certificate": certificate, "key": key, "behind_proxy": True},
        {"certificate": certificate, "key": tmp_path / "none.pem"},
        {"certificate": certificate, "key": wrong},
        {"certificate": certificate, "key": locked},
        {"certificate": certificate, "key": certificate},
        {"proxies": ["*"]},
        {"proxies": ["proxy.example"]},
    ):
        with pytest.raises(InvalidInput) as told:
            Doors.of(**refused)  # type: ignore[arg-type]
        assert told.value.fixes
