"""The static verify page in Chromium: the official vectors through its own scripts, and the verdicts of the command line."""

import base64
import json
import os
from pathlib import Path

import pytest

from quizzes.certificates import build_page, qr

CHROMIUM = "/usr/bin/chromium"
VECTORS = Path(__file__).resolve().parents[2].parent / "shared" / "vectors"

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        not Path(CHROMIUM).exists() and not os.environ.get("CI"), reason=f"no browser at {CHROMIUM}; with CI set this fails"
    ),
]
BYTES = "const bytes = text => Uint8Array.from(atob(text), symbol => symbol.charCodeAt(0));"


@pytest.fixture(scope="module")
def scripts():
    """The page's own scripts in a browser, without what it shows."""
    from playwright.sync_api import sync_playwright

    code = "\n".join(build_page.source(f"{name}.js") for name in build_page.VERIFIER)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--headless", "--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.route("**/*", lambda route: route.fulfill(body="<title>t</title>", content_type="text/html"))
        page.goto("https://localhost/")
        page.add_script_tag(content=code)
        yield page
        browser.close()


def vectors(*parts):
    path = VECTORS.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"the test vectors {'/'.join(parts)} are not beside this repository (../shared/vectors)")
    return path


@pytest.mark.parametrize("name", ["arrays", "french", "structures", "unicode", "values", "weird"])
def test_canonical_form_is_that_of_rfc_8785(scripts, name):
    folder = vectors("rfc8785-cyberphone", "testdata")
    data = base64.b64encode((folder / "input" / f"{name}.json").read_bytes()).decode()
    made = scripts.evaluate(f"text => {{ {BYTES} return canonicalJson(parseJson(bytes(text))); }}", data)
    assert made.encode() == (folder / "output" / f"{name}.json").read_bytes()


def test_keys_are_sorted_by_utf_16_units(scripts):
    made = scripts.evaluate("() => canonicalJson({'\\ufb33': 1, '\\u{1f600}': 2})")
    assert made == '{"😀":2,"\ufb33":1}'


@pytest.mark.parametrize(
    "text", ['{"a":1,"a":2}', "NaN", "[1,]", "01", '"\x01"', "\ufeff{}", "1e999", "[" * 33 + "]" * 33, "{} {}", '"\\x"', ""]
)
def test_what_is_no_strict_json_is_refused(scripts, text):
    data = base64.b64encode(text.encode()).decode()
    code = f"text => {{ {BYTES} try {{ parseJson(bytes(text)); return '' }} catch (e) {{ return e.constructor.name }} }}"
    assert scripts.evaluate(code, data) == "MalformedJson"


@pytest.mark.parametrize("by_hand", [False, True])
def test_the_official_signature_verifies_and_an_altered_one_does_not(scripts, by_hand):
    secured = json.loads(vectors("w3c-vc-di-eddsa", "TestVectors", "eddsa-jcs-2022", "signedJCS.json").read_text())
    if by_hand:
        scripts.evaluate("() => { globalThis.kept = browserKnowsEd25519; browserKnowsEd25519 = async () => false; }")
    try:
        code = "async secured => { try { return await verifyProof(secured) } catch (e) { return e.constructor.name } }"
        assert scripts.evaluate(code, secured) == secured["proof"]["verificationMethod"].split("#")[0]
        assert scripts.evaluate(code, secured | {"name": "Another"}) == "BadProof"
        behind = secured | {"@context": [*secured["@context"], "https://example.org/more"]}
        assert scripts.evaluate(code, behind).startswith("did:key:")
        front = secured | {"@context": ["https://example.org/more", *secured["@context"]]}
        assert scripts.evaluate(code, front) == "BadProof"
    finally:
        if by_hand:
            scripts.evaluate("() => { browserKnowsEd25519 = globalThis.kept; }")


@pytest.mark.parametrize("length", [1, 14, 15, 60, 100, 150, 180, 181, 213, 214, 250, 300, 360, 420, 500])
def test_the_qr_symbol_is_that_of_the_picture(scripts, length):
    content = ("https://example.org/c/7ZZZ" * 20)[:length]
    assert scripts.evaluate("text => qrMatrix(text)", content) == qr.matrix(content)
