"""The static site in Chromium, from a web server and from the disk: what it says, and that it asks nobody."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from quizzes.certificates import identifier, site
from quizzes.certificates.registry import Registry
from quizzes.certificates.verify import file_bytes
from tests.browser.pages import ARTIFACTS, NEEDS_CHROMIUM, WORST_CONTRAST, chromium, open_page
from tests.certificates.issuing_place import signed

pytestmark = [pytest.mark.timeout(300), NEEDS_CHROMIUM]
NOW = datetime.now(UTC).replace(microsecond=0)
NAMES = {"good": "<img src=a onerror=hacked=1> Zoë 김민준", "revoked": "Bo", "expired": "Cy", "altered": "Di"}


class Handler(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

    def do_GET(self):
        self.server.asked.append(self.path)
        super().do_GET()


@contextmanager
def serving(folder):
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
    server.asked = []
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join(60)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("s ité")
    (root / "web").mkdir()
    with serving(root / "web") as server, pytest.MonkeyPatch.context() as patch:
        base = f"http://127.0.0.1:{server.server_address[1]}/certificates"
        private = Ed25519PrivateKey.generate()
        registry = Registry(root / "reg")
        registry.create(private, name="A <b>School</b>", url=base, begin=NOW - timedelta(days=30), now=NOW)
        ids = {}
        for index, (what, name) in enumerate(NAMES.items()):
            until = NOW - timedelta(days=1) if what == "expired" else None
            document = signed(
                private, index, NOW - timedelta(days=9), name=name, until=until, base=base, school="A <b>School</b>"
            )
            ids[what] = document["id"].rpartition("/")[2]
            registry.certificate_path(ids[what]).write_bytes(file_bytes(document))
        registry.revoke(1, "by mistake", private, NOW)
        # Faces are tried elsewhere; here one is enough.
        patch.setattr(site.faces, "SUFFIXES", {"svg": ".svg"})
        site.build(registry, root / "web" / "certificates", NOW)
        yield root / "web" / "certificates", base, ids, server


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture(params=["file", "http"])
def address(request, made):
    folder, base, ids, _ = made
    if request.param == "http":
        return lambda what: f"{base}/c/{ids[what]}"
    return lambda what: (folder / "c" / ids[what] / "index.html").as_uri()


def open_verified(browser, url, verdict, **more):
    page = open_page(browser, url, **more)
    page.wait_for_selector(f'#verdict[data-verdict="{verdict}"]')
    return page


def test_a_valid_certificate_verifies_itself_and_shows_its_picture(browser, made, address):
    asked = made[3].asked
    asked.clear()
    page = open_verified(browser, address("good"), "valid")
    page.wait_for_function("() => document.images[0].complete && document.images[0].naturalWidth > 0")
    assert "Zoë 김민준 reached 100 % of the points" in page.locator("#proves").inner_text()
    assert "identity of the learner was not checked" in page.locator("#limits").inner_text()
    assert NAMES["good"] in page.locator("#verdict").inner_text() and NAMES["good"] in page.title()
    assert page.locator("#picture").get_attribute("alt").startswith(NAMES["good"])
    assert page.evaluate("typeof hacked") == "undefined" and page.problems == []
    # The page alone was asked for: at most its address without the slash, then with it.
    assert [url for url in page.requests if not url.startswith("blob:")][1:] in ([], [f"{made[1]}/c/{made[2]['good']}/"])
    assert set(asked) <= {f"/certificates/c/{made[2]['good']}", f"/certificates/c/{made[2]['good']}/"}
    page.context.close()


@pytest.mark.parametrize(("what", "words"), [("revoked", "by mistake"), ("expired", "ran out")])
def test_what_counts_no_more_says_so_and_gives_no_picture(browser, address, what, words):
    page = open_verified(browser, address(what), what)
    assert words in page.locator("#verdict").inner_text()
    assert not page.locator("#more").is_visible() and page.locator("a[download]").count() == 1
    page.context.close()


def test_an_altered_page_is_not_believed(browser, made):
    path = made[0] / "c" / made[2]["altered"] / "index.html"
    html = path.read_bytes()
    path.write_bytes(html.replace(b'const CERTIFICATE = "', b'const CERTIFICATE = " '))
    page = open_page(browser, path.as_uri())
    # The policy names the script by its hash: a changed one does not even run.
    assert page.locator("#verdict").inner_text().strip() == "Not verified yet."
    assert any("Content Security Policy" in problem for problem in page.problems)
    page.context.close()


def test_downloads_are_the_files_of_the_registry(browser, made):
    page = open_verified(browser, f"{made[1]}/c/{made[2]['good']}", "valid")
    with page.expect_download() as download:
        page.locator("a[download]").first.click()
    assert download.value.suggested_filename == f"{made[2]['good']}.json"
    published = made[0] / "c" / f"{made[2]['good']}.json"
    assert Path(download.value.path()).read_bytes() == published.read_bytes()
    page.context.close()


def test_from_an_id_on_the_verify_page_to_its_certificate(browser, made, address):
    start = f"{made[1]}/" if address("good").startswith("http") else (made[0] / "verify.html").as_uri()
    page = open_page(browser, start)
    page.fill("#text", identifier.shown(made[2]["revoked"]).lower())
    page.click("#check")
    link = page.locator("#address").get_attribute("href")
    assert link == f"c/{made[2]['revoked']}/"
    if start.startswith("http"):
        page.click("#address")
        page.wait_for_selector('#verdict[data-verdict="revoked"]')
        page.click("text=the page that needs no network")
        page.wait_for_selector("#choose")
    page.context.close()


def test_without_a_script_it_tells_what_the_build_found(browser, address):
    page = open_page(browser, address("revoked"), java_script_enabled=False)
    text = page.locator("noscript").inner_text()
    assert "the verdict was: Revoked. Revoked since" in text and "by mistake" in text
    page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1280])
def test_it_can_be_read_everywhere(browser, made, scheme, width):
    for what, verdict in (("good", "valid"), ("revoked", "revoked")):
        size = {"width": width, "height": 800}
        page = open_verified(
            browser, (made[0] / "c" / made[2][what] / "index.html").as_uri(), verdict, viewport=size, color_scheme=scheme
        )
        page.locator("summary").click()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        worst = page.evaluate(WORST_CONTRAST)
        assert worst[0][0] >= 4.5, worst[0]
        ARTIFACTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=str(ARTIFACTS / f"own-{verdict}-{scheme}-{width}.png"), full_page=True)
        page.context.close()


def test_fields_are_copied_by_keyboard_or_said_not_to_be(browser, made):
    page = open_verified(browser, f"{made[1]}/c/{made[2]['good']}", "valid", permissions=["clipboard-read", "clipboard-write"])
    page.locator('button[aria-label="Copy Credential ID"]').focus()
    page.keyboard.press("Enter")
    page.wait_for_function("() => copied.textContent === 'Credential ID copied.'")
    assert page.evaluate("navigator.clipboard.readText()") == made[2]["good"]
    assert page.locator("#copied").get_attribute("aria-live") == "polite"
    page.context.close()
