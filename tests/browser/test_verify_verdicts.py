"""The built verify page, opened as a file in Chromium: the same verdicts as Python's, and no request to anywhere."""

import base64
import os
import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from quizzes.certificates import badge, badge_png, build_page, did_key, ed25519, identifier, issuing, pdf, signing
from quizzes.certificates.judge import judge
from quizzes.certificates.parts import format_time
from quizzes.certificates.registry import Registry
from quizzes.certificates.verify import file_bytes

CHROMIUM = "/usr/bin/chromium"
ARTIFACTS = Path(__file__).resolve().parents[2] / "test-artifacts" / "certificates"
BASE = "https://example.org/certificates"
NOW = datetime.now(UTC).replace(microsecond=0)

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        not Path(CHROMIUM).exists() and not os.environ.get("CI"), reason=f"no browser at {CHROMIUM}; with CI set this fails"
    ),
]


def certificate(private, index, name="김민준", valid_until=None):
    achieved = issuing.Achieved(
        name, "name", (issuing.Passed("01", "Where did the memory go?", Decimal(3), Decimal(3)),), Decimal("0.8"), "instructor",
        "1.0", "1.0", (issuing.File.of("results.json", b"{}"),),
    )  # fmt: skip
    place = issuing.Place(did_key.did_of(ed25519.public_key(private)), identifier.new(), BASE, "A school", index)
    unsigned = issuing.build(achieved, place, issued=NOW - timedelta(days=9), valid_until=valid_until)
    return signing.sign(unsigned, private, format_time(NOW - timedelta(days=9)))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    private, foreign = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    registry = Registry(tmp_path_factory.mktemp("registry"))
    registry.create(private, name="A school", url=BASE, begin=NOW - timedelta(days=30), now=NOW)
    registry.revoke(7, "issued by mistake", private, NOW)
    good = certificate(private, 5)
    files = {
        "valid": file_bytes(good),
        "svg": badge.render(good),
        "png": badge_png.render(good, now=NOW),
        "foreign": file_bytes(certificate(foreign, 5)),
        "revoked": file_bytes(certificate(private, 7)),
        "expired": file_bytes(certificate(private, 5, valid_until=NOW - timedelta(days=1))),
        "long": badge.render(certificate(private, 6, name="Zoë Müller-Łukasz " * 5 + "0123456789")),
        "renamed": file_bytes({**good, "name": "Another"}),
        "spaced": file_bytes(good).replace(b",", b", ", 1),
        "picture": badge.render(good).replace("김민준".encode(), b"Someone", 2),
        "empty": b"{}",
        "text": b"hello",
    }
    # Names at which the lines break elsewhere where a width is another one; in both editions of the drawing.
    for number, name in enumerate(
        ("W" * 100, "Щж юЁ" * 20, "ñ,Ǆ‰😀﷽ " * 12 + "x", "한Ω" * 50, "ilI. " * 20 + "m", "ẃỺ⸻Ქ" * 25, "﷽" * 100)
    ):
        wide = certificate(private, 6, name=name[:100].strip())
        files |= {f"wide {number} in {edition}": badge.render(wide, edition) for edition in (2, 3)}
    source = random.Random(5)
    for name in ("valid", "svg", "png"):
        for place in (source.randrange(8 * len(files[name])) for _ in range(25)):
            flipped = bytearray(files[name])
            flipped[place // 8] ^= 1 << place % 8
            files[f"{name} with bit {place} flipped"] = bytes(flipped)
    return registry.read(), files, good


@pytest.fixture(scope="module")
def page(made, tmp_path_factory):
    from playwright.sync_api import sync_playwright

    published, _, _ = made
    path = tmp_path_factory.mktemp("page") / "verify.html"
    path.write_bytes(build_page.build(published.issuer, status=published.status, revocations=published.revocations))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--headless", "--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.requests, page.problems = [], []
        page.on("request", lambda request: page.requests.append(request.url))
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        page.on("console", lambda message: page.problems.append(message.text) if message.type == "error" else None)
        page.goto(path.as_uri())
        yield page
        browser.close()


def test_every_verdict_is_that_of_python(made, page):
    published, files, _ = made
    code = """async text =>
        (await verifyFile(Uint8Array.from(atob(text), symbol => symbol.charCodeAt(0)), trust)).verdict"""
    found = {name: page.evaluate(code, base64.b64encode(data).decode()) for name, data in files.items()}
    assert found == {name: judge(data, now=datetime.now(UTC), published=published).verdict for name, data in files.items()}
    assert {name for name, verdict in found.items() if verdict == "valid"} == {
        "valid", "svg", "png", "long", *(name for name in files if name.startswith("wide")),
    }  # fmt: skip
    assert set(found.values()) >= {"altered", "unknown issuer", "revoked", "expired", "not a certificate"}


@pytest.mark.parametrize(
    ("name", "verdict"), [("svg", "valid"), ("png", "valid"), ("revoked", "revoked"), ("text", "not a certificate")]
)
def test_a_chosen_file_is_answered_without_any_request(made, page, name, verdict):
    page.set_input_files("#file", files=[{"name": name, "mimeType": "application/octet-stream", "buffer": made[1][name]}])
    page.wait_for_selector(f'#verdict[data-verdict="{verdict}"]')
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=str(ARTIFACTS / f"verify-{name}.png"), full_page=True)
    assert len(page.requests) == 1 and page.requests[0].startswith("file:")
    assert page.problems == []


def test_pictures_are_drawn_with_the_name(made):
    zxingcpp = pytest.importorskip("zxingcpp", reason="the QR code is read by zxing-cpp")
    import io

    from PIL import Image

    _, files, good = made
    picture = Image.open(io.BytesIO(files["png"]))
    assert [found.text for found in zxingcpp.read_barcodes(picture.convert("L"))] == [good["id"]]
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    (ARTIFACTS / "certificate.png").write_bytes(files["png"])
    (ARTIFACTS / "certificate.pdf").write_bytes(pdf.render(good))
