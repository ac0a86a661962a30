"""Messages that no client would send: cut off, too long, out of order, random, and recorded ones changed."""

from __future__ import annotations

import base64
import hashlib
import hmac
import random
import socket
import struct
import time
from collections.abc import Iterator

from tests.pgwire.door import Opened

LETTERS = b"QPBDESHCFXpdcf"
STATEMENTS = (
    "SELECT 1",
    "SELECT region, COUNT(*) FROM salaries GROUP BY region WITH ERROR 50",
    "SELECT COUNT(*) FROM salaries WHERE age >= $1 WITH ERROR 50",
    "SET blowfishdb.error = '5'",
    "SHOW ALL",
    "BEGIN",
    "SELECT relname FROM pg_class WHERE oid = $1",
    "EXPLAIN SELECT COUNT(*) FROM salaries WITH ERROR 9",
    "COPY (SELECT 1) TO STDOUT",
    "PREPARE a (int) AS SELECT COUNT(*) FROM salaries WHERE age >= $1 WITH ERROR 50",
    "EXECUTE a (30)",
    "DECLARE p CURSOR WITH HOLD FOR SELECT region, COUNT(*) FROM salaries GROUP BY region WITH ERROR 50",
    "FETCH FORWARD 2 FROM p",
    "SAVEPOINT s",
    "ROLLBACK TO s",
    "SET LOCAL blowfishdb.intervals = on",
    "DISCARD ALL",
    "",
)


def message(letter: int | bytes, body: bytes = b"") -> bytes:
    """A message with its true length."""
    first = bytes([letter]) if isinstance(letter, int) else letter
    return first + struct.pack("!i", len(body) + 4) + body


def parse(name: str, text: str, *oids: int) -> bytes:
    """Parse."""
    told = struct.pack(f"!h{len(oids)}I", len(oids), *oids)
    return message(b"P", name.encode() + b"\0" + text.encode() + b"\0" + told)


def bind(portal: str, name: str, *values: bytes) -> bytes:
    """Bind, with values as text."""
    sent = b"".join(struct.pack("!i", len(value)) + value for value in values)
    told = struct.pack("!hh", 0, len(values)) + sent + struct.pack("!h", 0)
    return message(b"B", portal.encode() + b"\0" + name.encode() + b"\0" + told)


SYNC = message(b"S")
STILL = message(b"Q", b"ROLLBACK\0") + message(b"Q", b"SELECT 'still'\0")
SESSION = (
    message(b"Q", b"SELECT 1\0"),
    parse("a", STATEMENTS[2], 23),
    message(b"D", b"Sa\0"),
    bind("p", "a", b"30"),
    message(b"D", b"Pp\0"),
    message(b"E", b"p\0" + struct.pack("!i", 2)),
    message(b"C", b"Pp\0"),
    message(b"C", b"Sa\0"),
    message(b"H"),
    SYNC,
    *(message(b"Q", text.encode() + b"\0") for text in STATEMENTS if "$" not in text),
)
"""What a client says, message by message."""


def enter(there: Opened, user: str = "analyst") -> socket.socket:
    """A connection of someone who is signed in, by hand."""
    password = there.passwords[user].encode()
    line = socket.create_connection(("127.0.0.1", there.port), timeout=20)
    start = struct.pack("!i", 196_608) + b"user\0" + user.encode() + b"\0\0"
    line.sendall(struct.pack("!i", len(start) + 4) + start)
    letter, _ = read(line)
    assert letter == b"R"
    bare = "n=,r=abcdefgh"
    first = f"n,,{bare}".encode()
    line.sendall(message(b"p", b"SCRAM-SHA-256\0" + struct.pack("!i", len(first)) + first))
    challenge = read(line)[1][4:].decode()
    said = dict(part.split("=", 1) for part in challenge.split(","))
    salted = hashlib.pbkdf2_hmac("sha256", password, base64.b64decode(said["s"]), int(said["i"]))
    without = f"c=biws,r={said['r']}"
    key = hmac.digest(salted, b"Client Key", "sha256")
    auth = f"{bare},{challenge},{without}".encode()
    signature = hmac.digest(hashlib.sha256(key).digest(), auth, "sha256")
    proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True))).decode()
    line.sendall(message(b"p", f"{without},p={proof}".encode()))
    while read(line)[0] != b"Z":
        pass
    return line


def read(line: socket.socket) -> tuple[bytes, bytes]:
    """The next message of the server; nothing if it is gone."""
    head = exactly(line, 5)
    if len(head) < 5:
        return b"", b""
    return head[:1], exactly(line, struct.unpack("!i", head[1:])[0] - 4)


def exactly(line: socket.socket, count: int) -> bytes:
    """So many bytes, or what there was."""
    found = b""
    while len(found) < count and (more := line.recv(count - len(found))):
        found += more
    return found


def strange(random_: random.Random) -> bytes:
    """One strange message."""
    kind = random_.randrange(8)
    recorded = random_.choice(SESSION)
    if kind == 0:  # a byte of a recorded message is another one, behind its length
        at = random_.randrange(5, len(recorded)) if len(recorded) > 5 else 0
        return recorded[:at] + bytes([random_.randrange(256)]) + recorded[at + 1 :] if at else recorded
    if kind == 1:  # known letters, random bodies
        return message(random_.choice(b"QPBDESHCFdcf"), random_.randbytes(random_.randrange(40)))
    if kind == 2:
        return bind(
            random_.choice("pq"), random_.choice("ab"), *[random_.randbytes(3)] * random_.randrange(3)
        )
    if kind == 3:
        return parse(
            random_.choice(("a", "")), random_.choice(STATEMENTS), *[random_.choice((0, 23, 9999))] * 1
        )
    if kind == 4:
        return message(
            b"E", random_.choice((b"p\0", b"\0", b"q\0")) + struct.pack("!i", random_.randrange(-2, 9))
        )
    if kind == 5:
        return message(random_.choice((b"D", b"C")), random_.choice((b"S", b"P", b"x")) + b"a\0")
    if kind == 6:  # SQL with pieces exchanged
        words = random_.choice(STATEMENTS).split() + random_.choice(STATEMENTS).split()
        random_.shuffle(words)
        return message(b"Q", " ".join(words).encode() + b"\0")
    return recorded


def broken(random_: random.Random) -> bytes:
    """What ends a connection: a letter or a length that there is not."""
    return random_.choice(
        (
            bytes([random_.choice([b for b in range(256) if b not in LETTERS])]) + struct.pack("!i", 4),
            b"Q" + struct.pack("!i", random_.choice((-5, 0, 3, 2**31 - 1, 50_000_000))) + b"xxxx",
            b"p" + struct.pack("!i", 8) + b"abcd",
        )
    )


def first_messages(random_: random.Random) -> Iterator[bytes]:
    """What strangers send before anybody knows them."""
    while True:
        yield random_.choice(
            (
                struct.pack("!ii", 8, 80_877_103) + random_.randbytes(5),
                struct.pack("!ii", 16, 80_877_102) + random_.randbytes(8),
                struct.pack("!ii", random_.randrange(-9, 20_000), random_.randrange(2**31))
                + random_.randbytes(9),
                struct.pack("!ii", 20, 196_608) + b"user\0ana\0\0\0\0",
                struct.pack("!ii", 9, 196_608) + b"\0",
                random_.randbytes(random_.randrange(1, 30)),
                b"GET / HTTP/1.1\r\n\r\n",
            )
        )


def fuzz(there: Opened, messages: int, seed: int) -> int:
    """Send so many strange messages; how many were answered. It must go on answering all the while."""
    random_, sent, answered = random.Random(seed), 0, 0
    strangers = first_messages(random_)
    while sent < messages:
        line = enter(there)
        line.settimeout(20)
        for _ in range(12):
            batch = [strange(random_) for _ in range(30)]
            sent += len(batch)
            line.sendall(b"".join(batch) + SYNC + STILL)
            if not _until_still(line):
                break
            answered += len(batch)
        line.close()
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", there.port), timeout=20) as stranger:
                stranger.sendall(next(strangers))
                stranger.shutdown(socket.SHUT_WR)
                while stranger.recv(4096):
                    pass
                sent += 1
        with enter(there) as line:
            line.sendall(broken(random_))
            sent += 1
            until = time.monotonic() + 20
            while line.recv(4096):
                assert time.monotonic() < until
    return answered


def _until_still(line: socket.socket) -> bool:
    """Whether the last statement of a batch was answered; False if the connection was ended."""
    while True:
        letter, body = read(line)
        if not letter:
            return False
        if letter == b"D" and body.endswith(b"still"):
            while letter != b"Z":
                letter, _ = read(line)
            return True
        if letter == b"E" and b"FATAL" in body:
            return False
