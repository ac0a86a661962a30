"""A page that comes in two parts is read whole, by whoever asks for all that is there."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.web.settling import PATIENCE

HEAD = "<!doctype html><title>Slow</title><h1>Publish?</h1><input type=checkbox>".ljust(4096)
REST = "<input type=checkbox>" * 3


class Slow(ThreadingHTTPServer):
    """A server of one page: the heading and the first box, and when it is let go the other boxes."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), InTwoParts)
        self.rest = threading.Event()

    @property
    def address(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.server_port}/"


class InTwoParts(BaseHTTPRequestHandler):
    """The page."""

    server: Slow

    def do_GET(self) -> None:
        """One part, and later the other."""
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(HEAD + REST)))
        self.end_headers()
        self.wfile.write(HEAD.encode())
        self.wfile.flush()
        self.server.rest.wait(PATIENCE / 1000)
        self.wfile.write(REST.encode())

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@pytest.fixture
def slow() -> Iterator[Slow]:
    with Slow() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.rest.set()
        server.shutdown()
        thread.join()


def test_boxes_that_come_late_are_found(browser: Any, slow: Slow) -> None:
    page = browser.new_page()
    page.goto(slow.address, wait_until="commit")
    expect(page.locator("h1")).to_have_text("Publish?")
    boxes = page.locator("input")
    assert len(Locator.all.__wrapped__(boxes)) == 1  # type: ignore[attr-defined]  # what is there by now
    later = threading.Timer(0.2, slow.rest.set)
    later.start()
    assert len(boxes.all()) == 4
    later.join()
    page.close()
