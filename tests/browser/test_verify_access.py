"""The verify page for people: by keyboard, on a phone, enlarged, in the dark, read aloud, and with every way to give a file."""

from __future__ import annotations

import base64
import json
import zlib
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from quizzes.certificates import badge, badge_png, build_page, png, verdicts
from quizzes.certificates.registry import Registry
from quizzes.certificates.strict_json import canonical
from quizzes.certificates.verify import file_bytes
from tests.browser.pages import ARTIFACTS, NEEDS_CHROMIUM, WORST_CONTRAST, chromium, open_page
from tests.certificates.issuing_place import URL, signed

pytestmark = [pytest.mark.timeout(300), NEEDS_CHROMIUM]
NOW = datetime.now(UTC).replace(microsecond=0)
LONGEST = "Wolfeschlegelsteinhausenbergerdorff " * 2 + "W" * 28


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    private, foreign = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    folder = tmp_path_factory.mktemp("ré gistry")
    registry = Registry(folder / "reg")
    registry.create(private, name="A School", url=URL, begin=NOW - timedelta(days=30), now=NOW)
    registry.revoke(7, "issued by mistake", private, NOW)
    begin = NOW - timedelta(days=9)
    good = signed(private, 5, begin, name="Zoë 김민준")
    files = {
        "valid": file_bytes(good),
        "altered": file_bytes({**good, "name": "Another"}),
        "unknown issuer": file_bytes(signed(foreign, 5, begin)),
        "revoked": file_bytes(signed(private, 7, begin, name=LONGEST)),
        "expired": file_bytes(signed(private, 5, begin, until=NOW - timedelta(days=1))),
        "not a certificate": b"hello",
    }
    published = registry.read()
    whole = build_page.build(published.issuer, status=published.status, revocations=published.revocations)
    (folder / "verify page é.html").write_bytes(whole)
    (folder / "without.html").write_bytes(build_page.build(published.issuer))
    return folder, files, good, published


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture
def page(browser, made):
    page = open_page(browser, (made[0] / "verify page é.html").as_uri())
    yield page
    # Nothing but the page itself was ever asked for, and the browser complained of nothing.
    assert len(page.requests) == 1 and page.problems == []
    page.context.close()


def choose(page, data, name="certificate.json"):
    page.set_input_files("#file", files=[{"name": name, "mimeType": "application/octet-stream", "buffer": data}])


def wait(page, verdict):
    page.wait_for_selector(f'#verdict[data-verdict="{verdict}"]')


def test_by_keyboard_alone(page, made, tmp_path):
    # Asked for at the beginning: the browser is told to hand choosers over, and a key pressed before that opens a real one.
    page.on("filechooser", lambda chooser: None)
    order = []
    for _ in range(4):
        page.keyboard.press("Tab")
        order.append(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
        outline = "(style => [style.outlineStyle, parseFloat(style.outlineWidth)])(getComputedStyle(document.activeElement))"
        style, width = page.evaluate(outline)
        assert style == "solid" and width >= 2, order
    assert order == ["choose", "text", "check", "SUMMARY"]
    for _ in range(3):
        page.keyboard.press("Shift+Tab")
    for key, name in (("Enter", "altered"), ("Space", "valid")):
        (tmp_path / "a b é.json").write_bytes(made[1][name])
        with page.expect_file_chooser() as chooser:
            page.keyboard.press(key)
        chooser.value.set_files(tmp_path / "a b é.json")
        wait(page, name)
    page.keyboard.press("Tab")
    page.keyboard.insert_text(made[1]["revoked"].decode())
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    wait(page, "revoked")


def test_it_says_to_a_screen_reader_what_it_shows(page, made):
    tree = page.locator("main").aria_snapshot()
    for said in ('heading "Verify a certificate" [level=1]', 'button "Choose the certificate', "status:", 'textbox "Or paste'):
        assert said in tree, tree
    assert page.evaluate("document.documentElement.lang") == "en"
    region = page.locator("[role=status]")
    assert region.get_attribute("aria-live") == "polite" and region.get_attribute("aria-atomic") == "true"
    for verdict, data in made[1].items():
        choose(page, data)
        wait(page, verdict)
        # The region itself stays and changes its content: only so is it announced.
        heading = verdicts.DATA["verdicts"][verdict]["heading"]
        assert f'heading "{heading}" [level=2]' in region.aria_snapshot()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 640, 1280])
def test_every_verdict_can_be_read_in_any_light_and_width(browser, made, scheme, width):
    """At 320 pixels this is also what 1280 look like at 400 %, and 640 at 200 %, as WCAG reckons."""
    size = {"width": width, "height": 800}
    page = open_page(browser, (made[0] / "verify page é.html").as_uri(), viewport=size, color_scheme=scheme)
    page.locator("summary").click()
    grounds, marks = set(), {}
    for verdict, data in {"": b"", **made[1]}.items():
        if verdict:
            choose(page, data)
            wait(page, verdict)
            marks[verdict] = page.locator("#verdict h2 span").inner_text()
        worst = page.evaluate(WORST_CONTRAST)
        assert len(worst) > 8 and worst[0][0] >= 4.5, worst[0]
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        grounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        ARTIFACTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=str(ARTIFACTS / f"{verdict or 'start'}-{scheme}-{width}.png".replace(" ", "-")), full_page=True)
    assert grounds == ({"rgb(255, 255, 255)"} if scheme == "light" else {"rgb(22, 25, 28)"})
    assert {word for word, mark in marks.items() if mark.strip() == "✓"} == {"valid"}
    page.context.close()


def test_zoomed_to_twice_its_size_it_still_fits(page, made):
    page.set_viewport_size({"width": 640, "height": 600})
    page.evaluate("document.documentElement.style.zoom = 2")
    choose(page, made[1]["revoked"])
    wait(page, "revoked")
    assert page.evaluate("document.documentElement.scrollWidth") <= 640


def test_without_a_list_the_status_is_unknown(browser, made):
    page = open_page(browser, (made[0] / "without.html").as_uri())
    assert "carries no status list" in page.locator("#ready").inner_text()
    choose(page, made[1]["valid"])
    wait(page, "status unknown")
    choose(page, made[3].status, "status.json")
    page.wait_for_selector("#verdict h2:has-text('List taken')")
    choose(page, made[1]["valid"])
    wait(page, "valid")
    page.context.close()


DROP = """([data, name]) => {
  const carried = new DataTransfer();
  carried.items.add(new File([Uint8Array.from(atob(data), (symbol) => symbol.charCodeAt(0))], name));
  for (const kind of ["dragover", "drop"]) {
    const event = new DragEvent(kind, { dataTransfer: carried, bubbles: true, cancelable: true });
    document.querySelector("h1").dispatchEvent(event);
    if (!event.defaultPrevented) throw new Error("the browser would open the file instead");
  }
}"""


def test_dropped_anywhere_and_pasted(page, made):
    page.evaluate(DROP, [base64.b64encode(made[1]["expired"]).decode(), "a.json"])
    wait(page, "expired")
    for text, verdict in ((made[1]["valid"], "valid"), (badge.render(made[2]), "valid"), (made[1]["altered"], "altered")):
        page.fill("#text", text.decode())
        page.click("#check")
        wait(page, verdict)
        page.fill("#text", "")
    page.click("#check")
    page.wait_for_selector("#verdict h2:has-text('Nothing to verify')")


@pytest.mark.parametrize(
    "written", ["{id}", "{lower}", " {grouped} ", URL + "/c/{id}", URL + "/c/{id}/", URL + "/c/{id}/index.html", "{id}.json"]
)
def test_a_pasted_id_leads_to_its_page(page, made, written):
    name = made[2]["id"].rpartition("/")[2]
    grouped = "-".join(name[start : start + 4] for start in range(0, 27, 4))
    page.fill("#text", written.format(id=name, lower=name.lower(), grouped=grouped))
    page.click("#check")
    assert page.locator("#address").get_attribute("href") == f"{URL}/c/{name}/"
    assert "asks no server" in page.locator("#verdict").inner_text()


def test_a_mistyped_id_is_said_to_be_one(page, made):
    name = made[2]["id"].rpartition("/")[2]
    other = "1" if name[5] != "1" else "2"
    page.fill("#text", name[:5] + other + name[6:])
    page.click("#check")
    page.wait_for_selector("#verdict h2:has-text('Not an id')")
    assert page.locator("#address").count() == 0


def test_what_is_large_or_hostile_is_refused(page, made, tmp_path):
    big = tmp_path / "big.json"
    with big.open("wb") as file:
        file.truncate(100 * 1024 * 1024)
    reads = "() => { globalThis.reads = 0; Blob.prototype.arrayBuffer = function () { reads++; return Promise.reject(); }; }"
    kept = page.evaluate_handle("() => Blob.prototype.arrayBuffer")
    page.evaluate(reads)
    page.set_input_files("#file", big)
    page.wait_for_selector("#verdict h2:has-text('Not read')")
    assert page.evaluate("reads") == 0 and "104857600 bytes" in page.locator("#verdict").inner_text()
    page.evaluate("kept => { Blob.prototype.arrayBuffer = kept; }", kept)

    svg, good = badge.render(made[2]), made[1]["valid"]
    baked = badge_png.render(made[2], now=NOW)
    second = b"openbadgecredential\0\0\0\0\0" + canonical(made[2])
    chunk = len(second).to_bytes(4, "big") + b"iTXt" + second + zlib.crc32(b"iTXt" + second).to_bytes(4, "big")
    hostile = {
        "deep": (b"[" * 200_000 + b"]" * 200_000, "not a certificate"),
        "deeper": (b'{"a":' * 40_000, "not a certificate"),
        "not UTF-8": (good.replace("Zoë".encode(), b"Zo\xeb"), "not a certificate"),
        "mark": (b"\xef\xbb\xbf" + good, "not a certificate"),
        "UTF-16": (good.decode().encode("utf-16"), "not a certificate"),
        "script": (svg.replace(b"</svg>", b"<script>globalThis.hacked = 1</script></svg>"), "altered"),
        "onload": (svg.replace(b'" xmlns=', b'" onload="globalThis.hacked = 1" xmlns=', 1), "altered"),
        "doctype": (b'<!DOCTYPE svg [<!ENTITY a "a">]>' + svg, "not a certificate"),
        "two": (baked[:33] + chunk + baked[33:], "not a certificate"),
        "empty": (b"", "not a certificate"),
        "zip": (b"PK\3\4" + bytes(2000), "not a certificate"),
        "prototype": (b'{"__proto__":{"proof":{}},"proof":{"type":"x"}}', "altered"),
        "last": (png.insert(baked[:33] + baked[baked.index(b"IDAT") - 4 :], canonical(made[2])), "valid"),
    }
    for name, (data, verdict) in hostile.items():
        choose(page, data, f"<img src=a onerror=hacked=1> {name}.json")
        page.wait_for_selector("#verdict p:last-of-type")
        page.wait_for_function("([name, word]) => verdict.textContent.includes(name) && verdict.dataset.verdict === word",
                               arg=[f" {name}.json", verdict])  # fmt: skip
    assert page.evaluate("typeof hacked") == "undefined" and page.locator("#verdict img").count() == 0


def test_inside_another_page_it_gives_no_verdict(browser, made):
    (made[0] / "frame.html").write_text('<iframe src="verify page é.html" width=600 height=600></iframe>')
    page = open_page(browser, (made[0] / "frame.html").as_uri())
    frame = page.frames[1]
    frame.wait_for_selector("#verdict h2:has-text('Not in a frame')")
    frame.set_input_files("#file", files=[{"name": "a.json", "mimeType": "application/json", "buffer": made[1]["valid"]}])
    frame.wait_for_selector("#verdict h2:has-text('Not in a frame')")
    assert frame.locator("#verdict").get_attribute("data-verdict") == ""
    page.context.close()


def test_bits_of_every_byte_count_in_the_browser_too(page, made):
    """Every third bit of the file, in one page and by its own verifier."""
    code = """async (text) => {
      const bytes = Uint8Array.from(atob(text), (symbol) => symbol.charCodeAt(0));
      const seen = {};
      for (let place = 0; place < 8 * bytes.length; place += 3) {
        bytes[place >> 3] ^= 1 << (place & 7);
        const { verdict } = await verifyFile(bytes, trust);
        bytes[place >> 3] ^= 1 << (place & 7);
        seen[verdict] = (seen[verdict] ?? 0) + 1;
      }
      return [seen, (await verifyFile(bytes, trust)).verdict];
    }"""
    seen, last = page.evaluate(code, base64.b64encode(made[1]["valid"]).decode())
    assert last == "valid" and set(seen) == {"not a certificate", "altered"}
    assert sum(seen.values()) == -(-8 * len(made[1]["valid"]) // 3), json.dumps(seen)
