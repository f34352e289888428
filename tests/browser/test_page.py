"""The page in a real Chromium."""

from typing import Any

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser.chromium import Browser
from tests.sql.queue import Queue, one
from tests.waiting import wait_until
from tests.web.serving import READER, TOKEN, serving

pytestmark = pytest.mark.slow

DEPTH = "[data-depth=job]"
PATIENCE = 30


def until(chrome: Browser, css: str, text: str) -> None:
    wait_until(lambda: text in chrome.text(css), PATIENCE, what=f"{text!r} in {css}")


def confirm(chrome: Browser) -> None:
    wait_until(lambda: chrome.all("#dialog[open] #do"), PATIENCE, what="the dialog")
    chrome.click("#dialog #do")


def kill(queue: Queue, key: int, error: str = "boom") -> None:
    queue.set("Queued", key)
    claimed = queue.claim(1)
    queue.fail(claimed.run, *claimed.keys, error=error, permanent=True)


def audited(queue: Queue) -> list[Any]:
    rows = queue.db.execute("SELECT action, who FROM scheduler.audit WHERE action <> 'create_workflow' ORDER BY id")
    return rows.fetchall()


def test_a_queue_drains_before_ones_eyes_without_a_reload(chrome: Browser, address: str, queue: Queue) -> None:
    queue.set("Queued")
    chrome.sign_in(address, TOKEN)
    until(chrome, DEPTH, "5")
    chrome.driver.execute_script("window.sameDocument = true")
    queue.succeed(queue.claim(3).run)
    until(chrome, DEPTH, "2")
    queue.succeed(queue.claim().run)
    until(chrome, DEPTH, "0")
    until(chrome, "#workflows tbody tr", "100")
    assert chrome.driver.execute_script("return window.sameDocument") is True


def test_a_workflow_is_paused_and_resumed_in_a_dialog(chrome: Browser, address: str, queue: Queue) -> None:
    chrome.sign_in(address, TOKEN)
    chrome.open(f"{address}/workflows/job")
    chrome.click("#tools a[href^='/do/pause']")
    wait_until(lambda: chrome.all("#dialog[open] input[name=reason]"), PATIENCE)
    chrome.one("#dialog input[name=reason]").send_keys("API down")
    confirm(chrome)
    until(chrome, "#told", "job is paused")
    until(chrome, "#numbers", "API down")
    assert one(queue.db, "SELECT paused_reason FROM scheduler.workflow") == "API down"
    chrome.click("#tools a[href^='/do/resume']")
    confirm(chrome)
    until(chrome, "#told", "job goes on")
    assert one(queue.db, "SELECT paused_at FROM scheduler.workflow") is None
    assert audited(queue) == [("pause", "postgres for operator"), ("resume", "postgres for operator")]


def test_a_ticked_dead_letter_is_requeued_though_the_list_moved_meanwhile(
    chrome: Browser, address: str, queue: Queue
) -> None:
    kill(queue, 1)
    chrome.sign_in(address, TOKEN)
    chrome.open(f"{address}/workflows/job")
    chrome.click("#dead input[value='1']")
    kill(queue, 2)
    until(chrome, "#dead tbody tr:first-child", "2")
    ticked = "return [...document.querySelectorAll('#dead input[name=key]:checked')].map(box => box.value)"
    assert chrome.driver.execute_script(ticked) == ["1"]
    chrome.click("#dead button")
    until(chrome, "#dialog[open] pre", "scheduler.requeue(name => 'job', ids => '{1}'::text[])")
    confirm(chrome)
    until(chrome, "#told", "requeue: 1")
    assert (queue.status(1), queue.status(2)) == ("Queued", "Failed")


def test_why_an_item_waits_is_a_key_away(chrome: Browser, address: str, queue: Queue) -> None:
    queue.set("Queued", 1, 2)
    chrome.sign_in(address, TOKEN)
    chrome.open(f"{address}/workflows/job")
    chrome.one("#find").send_keys("2", Keys.ENTER)
    until(chrome, "#why", "It is queued behind one other")
    queue.claim(1)
    until(chrome, "#why", "the next to be claimed")


def test_those_without_the_right_find_no_button_and_a_forged_form_is_refused(
    chrome: Browser, address: str, queue: Queue
) -> None:
    chrome.driver.delete_all_cookies()
    chrome.open(f"{address}/do/pause?workflow=job")
    until(chrome, "h1", "Sign in")
    chrome.sign_in(address, READER)
    chrome.open(f"{address}/workflows/job")
    until(chrome, ".who", "looks only")
    assert chrome.all("a[href^='/do/']") == []
    forged = """
        const proof = document.querySelector("input[name=form_token]").value;
        const body = new URLSearchParams({workflow: "job", form_token: proof});
        return (await fetch("/do/pause", {method: "POST", body})).status;
    """
    assert chrome.driver.execute_script(forged) == 403
    assert audited(queue) == []


def test_a_scraped_script_stays_text(chrome: Browser, address: str, queue: Queue) -> None:
    hostile = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    queue.db.execute("GRANT SELECT ON item TO scheduler_monitor")
    kill(queue, 1, hostile)
    chrome.sign_in(address, TOKEN)
    chrome.driver.get_log("browser")  # type: ignore[no-untyped-call]
    for path, css in (("/workflows/job", "#dead"), ("/workflows/job/items/1", "#row")):
        chrome.open(address + path)
        until(chrome, css, "<script>document.title='owned'</script>")
        assert chrome.driver.title != "owned"
    # once more through the script that renews the page
    chrome.open(f"{address}/workflows/job")
    kill(queue, 2, hostile)
    until(chrome, "#dead tbody tr:first-child", "<img src=x")
    assert chrome.driver.title != "owned"
    # nothing of the page itself runs into its own policy
    assert [line for line in chrome.driver.get_log("browser") if "Content Security" in line["message"]] == []  # type: ignore[no-untyped-call]


def test_a_phone_scrolls_only_down_and_a_keyboard_is_enough(chrome: Browser, address: str, queue: Queue) -> None:
    kill(queue, 1, "a rather long error that says a lot about https://somewhere.example/" + "x" * 200)
    chrome.sign_in(address, TOKEN)
    metrics = {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": True}
    chrome.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        for path in ("/", "/workflows/job", "/workflows/job/items/1", "/doctor", "/audit", "/listeners"):
            chrome.open(address + path)
            wide = chrome.driver.execute_script("return document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, path
    finally:
        chrome.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    chrome.open(f"{address}/workflows/job")
    chrome.one("#tools a[href^='/do/dispatch']").send_keys(Keys.ENTER)
    wait_until(lambda: chrome.all("#dialog[open]"), PATIENCE, what="the dialog")
    chrome.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    wait_until(lambda: not chrome.all("#dialog[open]"), PATIENCE, what="the dialog closed")
    assert audited(queue) == []


def test_a_page_that_has_lost_its_server_says_so(chrome: Browser, database: str, queue: Queue) -> None:
    with serving(database) as address:
        chrome.sign_in(address, TOKEN)
        until(chrome, "#pulse", "live")
    until(chrome, "#stale", "No answer from the server")
