"""A real Chromium without a screen: found, installed from the distribution's packages if need be, started once."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium.webdriver import Chrome, ChromeOptions, ChromeService
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from listener.errors import UserError
from listener.postgres import packages
from listener.postgres.home import Say
from tests.waiting import wait_until

_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--disable-lcd-text",
    "--force-device-scale-factor=1",
)


def is_there() -> bool:
    return shutil.which("chromium") is not None and shutil.which("chromedriver") is not None


def why_not() -> str:
    """The reason to skip; empty if there is a browser."""
    return "" if is_there() else "needs chromium and chromedriver: apt-get install chromium chromium-driver"


def install(say: Say) -> None:
    """On Debian as root; elsewhere the tests say what they would need."""
    prefix = packages.root_prefix()
    if is_there() or not packages.is_debian() or prefix is None:
        return
    try:
        apt = packages.Apt(prefix, say)
        apt.install("chromium")
        apt.install("chromium-driver")
    except UserError as error:
        say(f"No browser: {error}")


class Browser:
    """What a person does at a screen, in few words."""

    def __init__(self, driver: Chrome) -> None:
        self.driver = driver

    def open(self, address: str) -> None:
        self.driver.get(address)

    def all(self, css: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, css)

    def one(self, css: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, css)

    def text(self, css: str) -> str:
        """What the page shows there; empty if it is not there or just being replaced."""
        return str(self.driver.execute_script("return document.querySelector(arguments[0])?.innerText ?? ''", css))

    def click(self, css: str) -> None:
        self.one(css).click()

    def sign_in(self, address: str, token: str) -> None:
        self.driver.delete_all_cookies()
        self.open(f"{address}/sign-in")
        self.one("input[name=token]").send_keys(token)
        self.click("button.go")
        # on a busy machine the click returns before the answer with its cookie is there
        wait_until(lambda: not self.driver.current_url.startswith(f"{address}/sign-in"), what="being signed in")


@contextmanager
def browser() -> Iterator[Browser]:
    with tempfile.TemporaryDirectory(prefix="scrapersky-chromium-", ignore_cleanup_errors=True) as profile:
        options = ChromeOptions()
        options.binary_location = str(shutil.which("chromium"))
        for flag in (*_FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        # named, so that nothing is looked up or fetched
        service = ChromeService(
            executable_path=str(shutil.which("chromedriver")), log_output=str(Path(profile) / "driver.log")
        )
        driver = Chrome(options=options, service=service)
        driver.set_page_load_timeout(30)
        try:
            yield Browser(driver)
        finally:
            driver.quit()
