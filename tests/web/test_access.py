"""Who may see and do what."""

import time

import httpx
import psycopg
import pytest

from listener.errors import UserError
from listener.web.access import SESSION_SECONDS, Access, Person, refuse_exposure
from tests.sql.queue import Queue, one
from tests.web.serving import READER, TOKEN, Visitor, serving

ALICE = ("alice", "alices-own-token-1", True)


def actions_on_record(queue: Queue) -> int:
    return int(one(queue.db, "SELECT count(*) FROM scheduler.audit WHERE action <> 'create_workflow'"))


def test_without_a_token_the_page_shows_to_this_machine_and_does_nothing(database: str, queue: Queue) -> None:
    with serving(database, web_token=None, web_users="") as address, httpx.Client(base_url=address) as client:
        assert client.get("/").status_code == 200
        assert "/do/" not in client.get("/workflows/job").text
        assert client.get("/api/scheduler_status").status_code == 401
        assert client.get("/do/pause?workflow=job").status_code == 403
        assert client.post("/do/pause", data={"workflow": "job", "form_token": ""}).status_code == 403
        # what a page elsewhere reaches by a name of its own that points here
        assert client.get("/", headers={"Host": "rebound.example"}).status_code == 421
    assert actions_on_record(queue) == 0


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "page.example"])
def test_a_page_without_a_token_is_not_served_to_others(host: str) -> None:
    with pytest.raises(UserError, match="WEB_TOKEN"):
        refuse_exposure(host, Access())
    refuse_exposure(host, Access([ALICE]))


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_a_page_without_a_token_is_served_to_this_machine(host: str) -> None:
    refuse_exposure(host, Access())


@pytest.mark.parametrize(
    ("token", "users"),
    [
        ("short", ()),
        (None, ("alice:short",)),
        (None, ("alice",)),
        (None, ("alice:alices-own-token-1:write",)),
        ("alices-own-token-1", ("alice:alices-own-token-1",)),
    ],
)
def test_bad_tokens_are_refused_at_start_and_never_repeated(token: str | None, users: tuple[str, ...]) -> None:
    with pytest.raises(UserError) as refusal:
        Access.read(token, users)
    assert "short" not in str(refusal.value).replace("too short", "")
    assert "own-token" not in str(refusal.value)


def test_with_a_token_nothing_is_shown_to_those_who_have_not_signed_in(visitor: Visitor) -> None:
    for path in ("/", "/workflows/job", "/workflows/job/items/1", "/audit", "/doctor", "/data/contacts", "/do/pause"):
        answer = visitor.get(path)
        assert answer.status_code == 303, path
        assert answer.headers["location"].startswith("/sign-in")
    assert visitor.get("/metrics").status_code == 401
    assert visitor.get("/health").status_code == 200


@pytest.mark.slow
def test_the_page_for_signing_in_tells_nothing_of_what_is_behind_it(visitor: Visitor, queue: Queue) -> None:
    queue.db.execute("CREATE TABLE contact (email text); GRANT SELECT ON contact TO scheduler_monitor")
    queue.db.execute("SELECT scheduler.pause_all('the customer has left')")
    name = str(one(queue.db, "SELECT current_database()"))
    for page in (visitor.get("/sign-in").text, visitor.client.post("/sign-in", data={"token": "wrong" * 4}).text):
        assert not [secret for secret in ("customer", "Contacts", "Listeners", name) if secret in page]
    visitor.sign_in()
    assert not [shown for shown in ("customer", "Contacts", "Listeners", name) if shown not in visitor.get("/").text]


@pytest.mark.slow
def test_a_wrong_token_does_not_sign_in(visitor: Visitor) -> None:
    answer = visitor.sign_in("operators-own-token-2")
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


def test_the_session_cookie_is_out_of_reach_of_scripts_and_other_sites(visitor: Visitor) -> None:
    cookie = visitor.sign_in().headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert TOKEN not in cookie


def test_signing_in_never_leads_to_another_site(visitor: Visitor) -> None:
    for elsewhere in ("//evil.example/", "https://evil.example/", "/\\evil.example"):
        assert visitor.sign_in(next_page=elsewhere).headers["location"] == "/"
    assert visitor.sign_in(next_page="/doctor").headers["location"] == "/doctor"


def test_an_action_without_the_forms_own_proof_is_refused(visitor: Visitor, queue: Queue) -> None:
    visitor.sign_in()
    other = Access.read(TOKEN, ())
    strange = other.form_token(Person("operator", True, "another session"))
    for proof in ("", "0" * 64, strange):
        assert visitor.act("pause", proof, workflow="job").status_code == 403
    assert actions_on_record(queue) == 0


def test_an_action_sent_by_another_site_is_refused(visitor: Visitor, queue: Queue) -> None:
    visitor.sign_in()
    fields = {"form_token": visitor.form_token(), "workflow": "job"}
    answer = visitor.client.post("/do/pause", data=fields, headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 403
    assert actions_on_record(queue) == 0


def test_a_bearer_token_does_not_act_without_a_session(visitor: Visitor, queue: Queue) -> None:
    answer = visitor.client.post("/do/pause", data={"workflow": "job"}, headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 403
    assert actions_on_record(queue) == 0


def test_a_reader_looks_but_does_not_act(visitor: Visitor, queue: Queue) -> None:
    visitor.sign_in(READER)
    assert visitor.get("/").status_code == 200
    assert "/do/" not in visitor.get("/workflows/job").text
    assert visitor.get("/do/pause?workflow=job").status_code == 403
    assert visitor.act("pause", workflow="job").status_code == 403
    assert actions_on_record(queue) == 0


def test_signing_out_ends_it(visitor: Visitor) -> None:
    visitor.sign_in()
    assert visitor.client.post("/sign-out", data={"form_token": ""}).status_code == 403
    visitor.client.post("/sign-out", data={"form_token": visitor.form_token()})
    assert visitor.get("/").status_code == 303


def test_a_session_ends_with_its_time_its_person_or_a_changed_token(monkeypatch: pytest.MonkeyPatch) -> None:
    access = Access([ALICE])
    cookie = access.cookie_for(Person("alice", True))
    person = access.person_of(cookie)
    assert person is not None
    assert person.name == "alice"
    text, _, seal = cookie.partition(".")
    for forged in (f"{text}x.{seal}", f"{text}.{seal[::-1]}", "", ".", cookie.replace("session", "told")[:-1]):
        assert access.person_of(forged) is None
    assert Access([("alice", "alices-new-token-2", True)]).person_of(cookie) is None
    # a signed value of another kind is no session
    assert access.person_of(access.sign("told", {"name": "alice", "until": time.time() + 60, "n": "1"})) is None
    late = time.time() + SESSION_SECONDS + 1
    monkeypatch.setattr(time, "time", lambda: late)
    assert access.person_of(cookie) is None


def test_new_tokens_count_at_once_and_end_old_sessions() -> None:
    access = Access([ALICE])
    cookie = access.cookie_for(Person("alice", True))
    access.become(Access([("alice", "alices-new-token-2", True)]))
    assert access.person_of(cookie) is None
    assert access.person_with("alices-own-token-1") is None
    assert access.person_with("alices-new-token-2") is not None


def test_every_answer_carries_the_headers_that_keep_others_out(visitor: Visitor) -> None:
    visitor.sign_in()
    for path in ("/", "/workflows/job", "/nothing", "/static/style.css", "/health"):
        headers = visitor.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"], path
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
    assert visitor.get("/").headers["cache-control"] == "no-store"


def test_a_login_that_may_not_operate_says_which_grant_is_missing(
    database: str, queue: Queue, db: psycopg.Connection
) -> None:
    role = f"web_{db.info.dbname}"
    db.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'monitor' IN ROLE scheduler_monitor")
    try:
        url = psycopg.conninfo.make_conninfo(database, user=role, password="monitor")
        with serving(url) as address, httpx.Client(base_url=address) as client:
            visitor = Visitor(client)
            visitor.sign_in()
            assert visitor.get("/workflows/job").status_code == 200
            answer = visitor.act("pause", workflow="job")
        assert answer.status_code == 403
        assert "GRANT scheduler_admin" in answer.text
        assert actions_on_record(queue) == 0
    finally:
        db.execute(f"DROP ROLE {role}")
