"""`make screenshots`: the main pages as pictures, light and dark and on a phone, into docs/images/."""

import base64
import sys
from pathlib import Path

import psycopg

from listener.schema import migrate
from tests.browser import stage
from tests.browser.chromium import Browser, browser, install, why_not
from tests.servers import prepare, running
from tests.waiting import wait_until
from tests.web.serving import TOKEN, serving

IMAGES = Path(__file__).parents[2] / "docs" / "images"
A_BAD_DAY = """
DROP INDEX scheduler_page_curation_queued;
ALTER TABLE place DISABLE TRIGGER scheduler_deep_scan_update;
UPDATE scheduler.state SET breaker_state = 'open', breaker_until = now() + interval '3 minutes'
WHERE workflow = 'sitemap_analysis';
"""
DESKTOP, SHORT, TALL, PHONE = (1440, 900), (1440, 560), (1440, 1240), (390, 1000)


def main() -> None:
    install(print)
    if reason := why_not():
        sys.exit(reason)
    prepare("private", print)
    with running("private") as postgres:
        # the database of pg_cron where there is one: its schedules are real
        cron = postgres.server.cron_database
        url = postgres.url(cron) if cron else postgres.create_database("scrapersky")
        with psycopg.connect(url, autocommit=True) as db:
            if cron:
                db.execute("CREATE EXTENSION IF NOT EXISTS pg_cron")
            migrate(url)
            stage.prepare(db)
            item = f"/workflows/domain_metadata/items/{stage.a_dead_item(db, 'domain_metadata')}"
        with serving(url) as address, browser() as opened:
            opened.sign_in(address, TOKEN)
            for name, path, size, dark in (
                ("pipeline", "/", DESKTOP, False),
                ("pipeline-dark", "/", DESKTOP, True),
                ("pipeline-phone", "/", PHONE, False),
                ("workflow", "/workflows/domain_metadata", TALL, False),
                ("workflow-phone", "/workflows/domain_metadata", PHONE, True),
                ("item", item, DESKTOP, False),
                ("listeners", "/listeners", DESKTOP, False),
                ("contacts", "/data/contacts", SHORT, True),
            ):
                opened.open(address + path)
                shoot(opened, name, size, dark=dark)
            opened.open(f"{address}/workflows/domain_metadata")
            opened.click("#errors tbody tr:nth-child(2) a[data-confirm]")
            wait_until(lambda: opened.text("#dialog[open] pre"), what="the dialog")
            shoot(opened, "confirm", DESKTOP, dark=False)
            with psycopg.connect(url, autocommit=True) as db:
                db.execute(A_BAD_DAY)
        # a new server has asked the doctor nothing yet
        with serving(url) as address, browser() as opened:
            opened.sign_in(address, TOKEN)
            opened.open(f"{address}/doctor")
            shoot(opened, "doctor", DESKTOP, dark=False)


def shoot(opened: Browser, name: str, size: tuple[int, int], *, dark: bool) -> None:
    width, height = size
    driver = opened.driver
    scheme = "dark" if dark else "light"
    still = [{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": still})
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    driver.execute_script("scrollTo(0, 0)")  # a dialog stands in the window, the picture begins at the top of the page
    whole = int(driver.execute_script("return Math.ceil(document.body.getBoundingClientRect().height)"))
    clip = {"x": 0, "y": 0, "width": width, "height": min(whole, height), "scale": 1}
    shot = driver.execute_cdp_cmd(
        "Page.captureScreenshot",
        {"format": "png", "clip": clip, "captureBeyondViewport": True, "optimizeForSpeed": False},
    )
    picture = base64.b64decode(shot["data"])
    (IMAGES / f"{name}.png").write_bytes(picture)
    print(f"docs/images/{name}.png  {len(picture) // 1024} KB")


if __name__ == "__main__":
    main()
