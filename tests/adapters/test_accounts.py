"""Who may come in: passwords, guesses, tokens, and what a workspace of format 1 becomes."""

from __future__ import annotations

import hashlib
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pwdlib import PasswordHash
from pwdlib.hashers.argon2 import Argon2Hasher
from sqlalchemy import inspect, select, text

from blowfishdb.adapters.accounts import Accounts, Limits, network
from blowfishdb.adapters.store.backup import backup, restore
from blowfishdb.adapters.store.database import Store
from blowfishdb.adapters.store.ledger import Ledger
from blowfishdb.adapters.store.tables import SCHEMA_VERSION, login_attempts, tokens, users
from blowfishdb.adapters.tokens import PREFIX, Account, Role, Token, Tokens, csrf, csrf_matches
from blowfishdb.core.errors import BlowfishError, InvalidInput, NotAllowed, NotSignedIn, TooManyAttempts
from tests.adapters.workspaces import HandClock, make_format_1

QUICK = PasswordHash((Argon2Hasher(time_cost=1, memory_cost=8, parallelism=1),))
PASSWORD = "correct horse battery"
WRONG = "incorrect horse battery"
HOUR = timedelta(hours=1)


@pytest.fixture
def accounts(store: Store, clock: HandClock) -> Accounts:
    made = Accounts(store, clock, hasher=QUICK)
    made.add("ana", Role.ANALYST, PASSWORD)
    return made


@pytest.fixture
def issued(store: Store, clock: HandClock, accounts: Accounts) -> Tokens:
    return Tokens(store, clock)


def everything(store: Store) -> str:
    """All that the tables hold, as text."""
    with store.reading() as connection:
        rows = [connection.execute(select(table)).all() for table in (users, tokens, login_attempts)]
    return repr(rows)


# --- users ------------------------------------------------------------------------------------


def test_users_come_and_go(accounts: Accounts, clock: HandClock) -> None:
    assert accounts.find("ana") == Account("ana", Role.ANALYST, clock.now, True)
    assert accounts.find("nobody") is None and accounts.find("\x00") is None
    carla = accounts.add("Carla Ünal", Role.CURATOR, None)
    assert accounts.list() == sorted([carla, accounts.find("ana")], key=lambda each: each.user)  # type: ignore[union-attr]
    accounts.set_role("ana", Role.AUDITOR)
    accounts.revoke("ana")
    gone = accounts.find("ana")
    assert gone is not None and (gone.role, gone.active) == (Role.AUDITOR, False)
    with pytest.raises(NotSignedIn):
        accounts.check_password("ana", PASSWORD)
    for change in (
        lambda: accounts.revoke("ana"),
        lambda: accounts.set_role("ana", Role.CURATOR),
        lambda: accounts.set_password("ana", PASSWORD),
        lambda: accounts.revoke("nobody"),
        lambda: accounts.revoke("\ud800"),
    ):
        with pytest.raises(InvalidInput, match="There is no"):
            change()
    with pytest.raises(InvalidInput, match="not given away twice"):
        accounts.add("ana", Role.ANALYST, PASSWORD)
    assert gone == accounts.find("ana")


def test_names_are_one_text_however_they_are_composed(accounts: Accounts) -> None:
    accounts.add("Zoe\u0308", Role.ANALYST, PASSWORD)
    assert accounts.check_password("Zo\u00eb", PASSWORD).user == "Zo\u00eb"
    with pytest.raises(InvalidInput, match="already a user"):
        accounts.add("Zo\u00eb", Role.ANALYST, PASSWORD)


@pytest.mark.parametrize("name", ["", " ana", "a\nb", "x" * 256, "\ud800", "a\x00", 7])
def test_names_that_cannot_be(accounts: Accounts, name: Any) -> None:
    with pytest.raises(InvalidInput, match="printable"):
        accounts.add(name, Role.ANALYST, None)
    with pytest.raises(NotSignedIn):
        accounts.check_password(name, PASSWORD)


@pytest.mark.parametrize("password", ["ninechars", " " * 12, "x" * 1001, b"bytes and bytes"])
def test_passwords_that_cannot_be(accounts: Accounts, password: Any) -> None:
    for change in (
        lambda: accounts.add("bo", Role.ANALYST, password),
        lambda: accounts.set_password("ana", password),
    ):
        with pytest.raises(InvalidInput, match="A password") as caught:
            change()
        assert str(password) not in str(caught.value)
    assert accounts.find("bo") is None
    with pytest.raises(InvalidInput, match="A role"):
        accounts.add("bo", "curator", None)  # type: ignore[arg-type]


def test_one_of_many_gets_a_name(accounts: Accounts) -> None:
    def attempt(number: int) -> bool:
        try:
            accounts.add("bo", Role.ANALYST, f"{PASSWORD} {number}")
        except InvalidInput:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(attempt, range(6))) == 1


def test_roles_are_checked(accounts: Accounts) -> None:
    ana = accounts.check_password("ana", PASSWORD)
    ana.check_role(Role.CURATOR, Role.ANALYST)
    with pytest.raises(NotAllowed, match="curator or auditor; 'ana' has the role analyst"):
        ana.check_role(Role.CURATOR, Role.AUDITOR)


# --- passwords --------------------------------------------------------------------------------


def test_passwords(accounts: Accounts, store: Store) -> None:
    assert accounts.check_password("ana", PASSWORD).role is Role.ANALYST
    accounts.add("bot", Role.ANALYST, None)
    for name, password in (("ana", WRONG), ("nobody", PASSWORD), ("bot", ""), ("ana", PASSWORD + "\ud800")):
        with pytest.raises(NotSignedIn, match="The name or the password is wrong"):
            accounts.check_password(name, password)
    accounts.set_password("ana", "ﬁve plain words")
    assert accounts.check_password("ana", "five plain words").user == "ana"  # the same characters
    accounts.set_password("ana", "x" * 1000)
    with pytest.raises(NotSignedIn):
        accounts.check_password("ana", "x" * 1001)
    assert accounts.check_password("ana", "x" * 1000).user == "ana"
    with store.reading() as connection:
        stored = connection.execute(select(users.c.password).where(users.c.name == "ana")).scalar_one()
    assert stored.startswith("$argon2id$")


def test_a_name_that_does_not_exist_costs_as_much_work(store: Store, clock: HandClock) -> None:
    """Every refusal verifies exactly one hash of the same costs."""
    checked: list[str] = []

    class Counting(Argon2Hasher):
        def verify(self, password: str | bytes, hash: str | bytes) -> bool:  # noqa: A002
            checked.append(str(hash).rsplit("$", 2)[0])
            return super().verify(password, hash)

    hasher = PasswordHash((Counting(time_cost=1, memory_cost=8, parallelism=1),))
    accounts = Accounts(store, clock, hasher=hasher)
    accounts.add("ana", Role.ANALYST, PASSWORD)
    accounts.add("bot", Role.ANALYST, None)
    accounts.add("gone", Role.ANALYST, PASSWORD)
    accounts.revoke("gone")
    for name in ("ana", "nobody", "bot", "gone", "\x00"):
        with pytest.raises(NotSignedIn):
            accounts.check_password(name, WRONG)
    assert len(checked) == 5 and len(set(checked)) == 1


def test_hashes_follow_the_costs(accounts: Accounts, store: Store) -> None:
    dearer = PasswordHash((Argon2Hasher(time_cost=2, memory_cost=8, parallelism=1),))
    Accounts(store, hasher=dearer).check_password("ana", PASSWORD)
    assert "t=2" in everything(store)
    assert accounts.check_password("ana", PASSWORD).user == "ana"


def test_the_usual_costs(store: Store) -> None:
    accounts = Accounts(store)
    accounts.add("ana", Role.ANALYST, PASSWORD)
    assert accounts.check_password("ana", PASSWORD).user == "ana"
    assert "m=65536,t=3,p=4" in everything(store)


# --- guessing ---------------------------------------------------------------------------------


def guess(
    accounts: Accounts,
    name: str,
    address: str | None = None,
    password: str = WRONG,
    browser: str | None = None,
) -> int | None:
    """How long to wait; None for a password that was looked at and found wrong."""
    try:
        accounts.check_password(name, password, address=address, browser=browser)
    except TooManyAttempts as refusal:
        return refusal.wait
    except NotSignedIn:
        return None
    return 0


@pytest.mark.parametrize("name", ["ana", "nobody", "a name\n"])
def test_five_guesses_and_then_waits_that_grow(
    accounts: Accounts, clock: HandClock, address: str, name: str
) -> None:
    for _ in range(5):
        assert guess(accounts, name, "192.0.2.1") is None
    assert guess(accounts, name, "192.0.2.1") == 30
    with closing(Store.open(address)) as other:  # as another process would
        again = Accounts(other, clock, hasher=QUICK)
        assert guess(again, name, "192.0.2.1", PASSWORD) == 30
        for wait in (30, 60, 120, 240, 480, 900, 900):
            clock.move(seconds=wait - 1)
            assert guess(again, name, "192.0.2.1") == 1  # asking too early does not make it longer
            clock.move(seconds=1)
            assert guess(again, name, "192.0.2.1") is None
        assert guess(again, name, "192.0.2.1") == 900
        clock.move(days=1)
        assert [guess(again, name, "192.0.2.1") for _ in range(6)] == [None] * 5 + [30]


def test_a_day_of_guessing_from_one_address_is_a_hundred_guesses(
    accounts: Accounts, clock: HandClock
) -> None:
    looked_at, passed = 0, 0
    while passed < 24 * 3600:
        wait = guess(accounts, "ana", "192.0.2.1")
        looked_at += wait is None
        passed += wait or 0
        clock.move(seconds=wait or 0)
    assert 90 < looked_at < 110


def test_a_stranger_cannot_keep_anybody_out(accounts: Accounts, clock: HandClock) -> None:
    for _ in range(200):  # as fast as it goes, and again whenever a wait is over
        clock.move(seconds=guess(accounts, "ana", "198.51.100.66") or 0)
        assert guess(accounts, "ana", "192.0.2.1", PASSWORD) == 0


def test_guessing_from_everywhere_is_slowed_and_still_keeps_nobody_out(
    accounts: Accounts, clock: HandClock
) -> None:
    browser = accounts.remember(accounts.check_password("ana", PASSWORD, address="192.0.2.1"), None)
    addresses = [f"198.51.{high}.{low}" for high in range(4) for low in range(250)]
    outcomes = [guess(accounts, "ana", address) for address in addresses]
    assert outcomes[:300] == [None] * 300 and outcomes[300:] == [1] * 700
    for spacing in (1, 2, 4, 8, 10, 10):
        clock.move(seconds=spacing)
        assert guess(accounts, "ana", addresses.pop()) is None
    assert guess(accounts, "ana", "203.0.113.5", PASSWORD) == 10  # somewhere new, seconds at most
    assert guess(accounts, "ana", "192.0.2.1", PASSWORD, browser) == 0
    assert guess(accounts, "ana", "203.0.113.5", PASSWORD, browser) == 0


def test_where_many_share_an_address_a_known_browser_is_not_kept_out(
    accounts: Accounts, clock: HandClock
) -> None:
    here = "192.0.2.1"
    browser = accounts.remember(accounts.check_password("ana", PASSWORD, address=here), None)
    while guess(accounts, "ana", here) is None:
        pass
    assert guess(accounts, "ana", here, PASSWORD) == 30
    assert guess(accounts, "ana", here, PASSWORD, browser) == 0
    assert accounts.remember(accounts.check_password("ana", PASSWORD, browser=browser), browser) == browser
    outcomes = [guess(accounts, "ana", here, WRONG, browser) for _ in range(6)]
    assert outcomes == [None] * 5 + [30]  # it is known, not trusted
    accounts.add("ben", Role.ANALYST, PASSWORD)
    for number in range(20):
        guess(accounts, f"name{number}", here)
    assert guess(accounts, "ben", here, PASSWORD, browser) == 30  # for others it is no known browser
    assert guess(accounts, "ben", here, PASSWORD, "made up") == 30


def test_browsers_are_known_by_few_texts_and_not_after_a_new_password(
    accounts: Accounts, store: Store
) -> None:
    ana = accounts.check_password("ana", PASSWORD)
    texts = [accounts.remember(ana, None) for _ in range(25)]
    with store.reading() as connection:
        assert len(connection.execute(select(login_attempts)).all()) == 20
    assert not any(text in everything(store) for text in texts)
    accounts.set_password("ana", PASSWORD)
    with store.reading() as connection:
        assert connection.execute(select(login_attempts)).all() == []


def test_the_right_password_resets(accounts: Accounts, clock: HandClock, store: Store) -> None:
    for _ in range(3):
        assert [guess(accounts, "ana", "192.0.2.1") for _ in range(4)] == [None] * 4
        assert guess(accounts, "ana", "192.0.2.1", password=PASSWORD) == 0
    for _ in range(5):
        guess(accounts, "ana", "192.0.2.1")
    with pytest.raises(TooManyAttempts, match="again in 30 seconds"):
        accounts.check_password("ana", PASSWORD, address="192.0.2.1")
    accounts.set_password("ana", PASSWORD)
    assert guess(accounts, "ana", "192.0.2.2", password=PASSWORD) == 0


def test_an_address_has_twenty_guesses_for_all_names(accounts: Accounts) -> None:
    for number in range(19):
        assert guess(accounts, f"name{number}", "192.0.2.1") is None
    assert guess(accounts, "ana", "192.0.2.1", PASSWORD) == 0  # does not buy more
    assert guess(accounts, "name19", "192.0.2.1") is None
    assert guess(accounts, "name20", "192.0.2.1") == 30
    assert guess(accounts, "ana", "192.0.2.1", PASSWORD) == 30
    assert guess(accounts, "ana", "192.0.2.2", PASSWORD) == 0


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("testclient", "testclient", True),
    ],
)
def test_addresses_that_one_person_has_count_as_one(one: str, other: str, same: bool) -> None:
    assert (network(one) == network(other)) is same


def test_guesses_at_the_same_time_are_counted(accounts: Accounts, address: str, clock: HandClock) -> None:
    def attempt(_: int) -> int | None:
        with closing(Store.open(address)) as mine:
            return guess(Accounts(mine, clock, hasher=QUICK), "ana")

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(attempt, range(12)))
    assert sorted(outcomes, key=str) == [30] * 7 + [None] * 5


def test_guesses_of_another_process_count(accounts: Accounts, address: str) -> None:
    script = """
import sys
from blowfishdb.adapters.accounts import Accounts
from blowfishdb.adapters.store.database import Store
from blowfishdb.core.errors import NotSignedIn
store = Store.open(sys.argv[1])
for _ in range(5):
    try: Accounts(store).check_password("ana", "not this one")
    except NotSignedIn: pass
store.close()
"""
    subprocess.run([sys.executable, "-W", "error", "-c", script, address], check=True)
    with closing(Store.open(address)) as mine, pytest.raises(TooManyAttempts):
        Accounts(mine, hasher=QUICK).check_password("ana", PASSWORD)


def test_limits_can_be_chosen_but_not_absent(store: Store, clock: HandClock) -> None:
    strict = Accounts(store, clock, hasher=QUICK, limits=Limits(1, timedelta(seconds=20)))
    assert [guess(strict, "ana"), guess(strict, "ana")] == [None, 20]
    for failures, longest in ((0, HOUR), (1, timedelta(0))):
        with pytest.raises(InvalidInput):
            Limits(failures, longest)


# --- tokens -----------------------------------------------------------------------------------


def test_a_token_is_its_owner_while_it_lasts(issued: Tokens, accounts: Accounts, clock: HandClock) -> None:
    text, token = issued.issue("ana", purpose="api", lifetime=HOUR, label="notebook")
    assert text.startswith(PREFIX) and len(text) == 46
    assert token == Token(token.id, "ana", "api", "notebook", clock.now, clock.now + HOUR, True)
    assert issued.who(text) == issued.who(text, purpose="api") == accounts.find("ana")
    assert issued.who(text, purpose="session") is None
    accounts.set_role("ana", Role.CURATOR)
    found = issued.who(text)
    assert found is not None and found.role is Role.CURATOR
    clock.move(minutes=60)
    assert issued.who(text) is None
    assert [each.active for each in issued.tokens("ana")] == [False]


def test_tokens_are_different(issued: Tokens) -> None:
    made = [issued.issue("ana", purpose="session", lifetime=HOUR) for _ in range(20)]
    assert len({text for text, _ in made}) == len({token.id for _, token in made}) == 20
    assert {each.id for each in issued.tokens("ana")} == {token.id for _, token in made}
    assert issued.tokens("nobody") == []


def test_tokens_end(issued: Tokens, accounts: Accounts) -> None:
    (first, one), (second, two), (third, _), (page, _) = (
        issued.issue("ana", purpose=purpose, lifetime=HOUR)  # type: ignore[arg-type]
        for purpose in ("api", "api", "api", "session")
    )
    accounts.add("bo", Role.ANALYST, None)
    with pytest.raises(InvalidInput, match="no such token"):
        issued.revoke_token(one.id, owner="bo")
    issued.revoke_token(one.id, owner="ana")
    issued.revoke_token(one.id)
    issued.revoke_text(second)
    issued.revoke_text(second)
    issued.revoke_text("bf_unknown")
    assert [issued.who(each) is None for each in (first, second, third, page)] == [True, True, False, False]
    accounts.set_password("ana", PASSWORD)
    assert [issued.who(each) is None for each in (third, page)] == [False, True]
    accounts.revoke("ana")
    assert issued.who(third) is None
    assert not any(each.active for each in issued.tokens("ana")) and two.id in {
        each.id for each in issued.tokens("ana")
    }
    with pytest.raises(InvalidInput, match="no active user 'ana'"):
        issued.issue("ana", purpose="api", lifetime=HOUR)


def test_texts_that_are_no_token(issued: Tokens) -> None:
    text, _ = issued.issue("ana", purpose="api", lifetime=HOUR)
    other = text[:-1] + ("A" if text[-1] != "A" else "B")
    digest = hashlib.sha256(text.encode()).hexdigest()
    for wrong in ("", "bf_", text[:-1], text + "x", text[3:], other, digest, "é" * 46, None, b"x"):
        assert issued.who(wrong) is None  # type: ignore[arg-type]
        issued.revoke_text(wrong)  # type: ignore[arg-type]
    assert issued.who(text) is not None


def test_tokens_that_cannot_be(issued: Tokens) -> None:
    for options in (
        {"purpose": "other", "lifetime": HOUR},
        {"purpose": "api", "lifetime": timedelta(0)},
        {"purpose": "api", "lifetime": timedelta.max},
        {"purpose": "api", "lifetime": 3600},
        {"purpose": "api", "lifetime": HOUR, "label": "a\nb"},
        {"purpose": "api", "lifetime": HOUR, "label": "x" * 256},
    ):
        with pytest.raises(InvalidInput):
            issued.issue("ana", **options)  # type: ignore[arg-type]
    assert issued.tokens("ana") == []


def test_old_tokens_are_forgotten(issued: Tokens, clock: HandClock) -> None:
    issued.issue("ana", purpose="api", lifetime=HOUR)
    clock.move(days=31)
    _, newer = issued.issue("ana", purpose="api", lifetime=HOUR)
    assert [each.id for each in issued.tokens("ana")] == [newer.id]


def test_forms_prove_for_whom_they_were_made(issued: Tokens) -> None:
    (mine, _), (other, _) = (issued.issue("ana", purpose="session", lifetime=HOUR) for _ in range(2))
    assert csrf(mine) == csrf(mine) != csrf(other)
    assert csrf_matches(mine, csrf(mine))
    for given in (csrf(other), "", mine, "é", "\ud800"):
        assert not csrf_matches(mine, given)
    assert mine not in csrf(mine) and hashlib.sha256(mine.encode()).hexdigest() != csrf(mine)


# --- nothing secret is kept or shown ----------------------------------------------------------


def test_secrets_are_neither_stored_nor_shown(accounts: Accounts, issued: Tokens, store: Store) -> None:
    secret, token = issued.issue("ana", purpose="session", lifetime=HOUR)
    typed_as_name = "my password as a name"
    for name, password in (("ana", WRONG), (typed_as_name, "x")):
        with pytest.raises(BlowfishError) as caught:
            accounts.check_password(name, password, address="192.0.2.7")
        shown = f"{caught.value!s}{caught.value!r}{caught.value.__dict__}"
        assert not any(each in shown for each in (WRONG, typed_as_name, "argon2"))
        assert caught.value.__cause__ is caught.value.__context__ is None
    kept = everything(store)
    for each in (secret, secret[3:], PASSWORD, WRONG, csrf(secret), typed_as_name, "192.0.2.7"):
        assert each not in kept
    digest = hashlib.sha256(secret.encode()).hexdigest()
    assert digest in kept  # or the test above looks in the wrong address
    account = issued.who(secret)
    for each in (account, token, accounts, issued, issued.tokens("ana")):
        assert not any(hidden in repr(each) for hidden in (secret, digest, "argon2"))


def test_a_damaged_hash_is_no_password_and_is_not_shown(accounts: Accounts, store: Store) -> None:
    with store.writing() as connection:
        connection.execute(users.update().values(password="damaged hash"))
    with pytest.raises(NotSignedIn) as caught:
        accounts.check_password("ana", PASSWORD)
    assert "damaged" not in f"{caught.value!r}{caught.value.__context__!r}"


# --- with the rest of the workspace -----------------------------------------------------------


def test_users_are_in_backups(tmp_path: Path, clock: HandClock) -> None:
    path, saved, back = tmp_path / "workspace.db", tmp_path / "saved", tmp_path / "back.db"
    with closing(Store.open(path)) as store:
        accounts = Accounts(store, clock, hasher=QUICK)
        accounts.add("ana", Role.ANALYST, PASSWORD)
        text, _ = Tokens(store, clock).issue("ana", purpose="api", lifetime=HOUR)
        backup(store, saved)
    restore(saved, back)
    with closing(Store.open(back)) as store:
        assert Accounts(store, clock, hasher=QUICK).check_password("ana", PASSWORD).user == "ana"
        assert Tokens(store, clock).who(text) is None  # it may have been revoked after the backup


def test_users_are_not_the_analysts_of_the_ledger(accounts: Accounts, store: Store) -> None:
    ledger = Ledger(store)
    accounts.revoke("ana")
    assert ledger.verify() == [] and ledger.charges() == []


def test_a_workspace_of_format_1_is_upgraded(address: str, clock: HandClock) -> None:
    before = make_format_1(address)
    with closing(Store.open(address)) as store:
        with store.reading() as connection:
            said = connection.execute(text("SELECT value FROM blowfish_meta")).scalar()
            present = set(inspect(connection).get_table_names())
        assert said == str(SCHEMA_VERSION)
        assert {"users", "tokens", "login_attempts", "idempotency", "accounts"} <= present
        ledger = Ledger(store)
        assert [ledger.charges(), ledger.grants("people"), ledger.budget("people")] == before
        assert ledger.verify() == []
        accounts = Accounts(store, clock, hasher=QUICK)
        ana = accounts.add("ana", Role.ANALYST, PASSWORD)
        secret, _ = Tokens(store, clock).issue("ana", purpose="api", lifetime=HOUR)
    with closing(Store.open(address)) as store:
        assert Tokens(store, clock).who(secret) == ana


def test_a_backup_of_format_1_is_upgraded_by_restoring(tmp_path: Path) -> None:
    saved, back = tmp_path / "saved.db", tmp_path / "back.db"
    before = make_format_1(str(saved))
    restore(saved, back)
    with closing(sqlite3.connect(back)) as file:
        assert file.execute("SELECT value FROM blowfish_meta").fetchone() == (str(SCHEMA_VERSION),)
    with closing(Ledger.open(back)) as ledger:
        assert ledger.charges() == before[0] and ledger.verify() == []
