"""PNG, LinkedIn's link and the page of a certificate."""

import zlib
from datetime import UTC, datetime
from decimal import Decimal
from html.parser import HTMLParser
from urllib.parse import parse_qs, urlsplit

import pytest

from quizzes.certificates import badge_png, credential, identifier, issuing, linkedin, page, png, signing, verify
from quizzes.certificates.judge import Judgement
from tests.certificates import issuing_place

NOW = datetime(2026, 6, 1, tzinfo=UTC)
URL = "https://example.org/certificates/c/7ZZZ"


@pytest.fixture(scope="module")
def picture():
    image = pytest.importorskip("PIL.Image", reason="Pillow comes with the extra certificates")
    import io

    out = io.BytesIO()
    image.new("L", (8, 8)).save(out, "PNG")
    return out.getvalue()


def test_a_png_with_an_empty_object_is_no_certificate(picture):
    assert verify.verify(png.insert(picture, b"{}"), now=NOW).code == "malformed"


def test_what_does_not_verify_is_not_baked(picture, secured):
    with pytest.raises(badge_png.BakeError, match="altered"):
        badge_png.bake(picture, {**secured, "name": "Another"}, now=NOW)


def test_every_flipped_bit_of_a_baked_png_is_refused(picture, secured):
    baked = badge_png.bake(picture, secured, now=NOW)
    assert verify.verify(baked, now=NOW).valid
    for place in range(0, 8 * len(baked), 7):
        flipped = bytearray(baked)
        flipped[place // 8] ^= 1 << place % 8
        assert not verify.verify(bytes(flipped), now=NOW).valid


def test_two_credentials_and_what_follows_the_end_are_refused(picture):
    baked = png.insert(picture, b"{}")
    with pytest.raises(png.PngError, match="already"):
        png.insert(baked, b"{}")
    body = b"OpenBadgeCredential\0x"
    chunk = len(body).to_bytes(4, "big") + b"tEXt" + body + zlib.crc32(b"tEXt" + body).to_bytes(4, "big")
    with pytest.raises(png.PngError, match="2 credentials"):
        png.embedded(baked[:33] + chunk + baked[33:])
    with pytest.raises(png.PngError, match="follows"):
        png.embedded(baked + b"x")


def test_the_link_leads_to_this_certificate_and_reads_back():
    form = linkedin.fields(name="A & B=C", organization="Zoë's", issued="2026-03-01T12:00:00Z", url=URL, identifier="7ZZZ")
    back = {key: value for key, [value] in parse_qs(urlsplit(linkedin.link(form)).query).items()}
    assert back == form
    assert (back["certUrl"], back["certId"], back["issueYear"], back["issueMonth"]) == (URL, "7ZZZ", "2026", "3")
    with pytest.raises(ValueError, match="something else"):
        linkedin.fields(name="A", organization="B", issued="2026-03-01T12:00:00Z", url=URL, identifier="OTHER")


def test_a_name_stays_text_and_the_page_links_to_itself_only(private, did):
    name = "<img src=a onerror=alert(1)>"
    base, made = "https://example.org/certificates", identifier.new()
    achieved = issuing.Achieved(
        name, "name", (issuing.Passed("01", "", Decimal(3), Decimal(3)),), Decimal("0.8"), "instructor", "1.0", "1.0",
        (issuing.File.of("results.json", b"{}"),),
    )  # fmt: skip
    unsigned = issuing.build(achieved, issuing.Place(did, made, base, name, 5), issued=NOW)
    read = credential.read(signing.sign(unsigned, private, "2026-06-01T00:00:00Z"))
    tags, links, texts = [], [], []

    class Reader(HTMLParser):
        def handle_starttag(self, tag, attrs):
            tags.append(tag)
            links.extend(value for key, value in attrs if key == "href")

        def handle_data(self, data):
            texts.append(data)

    Reader().feed(page.render(Judgement("valid", "whole", read, name)).decode())
    assert "img" not in tags and name in texts
    [link] = links
    assert parse_qs(urlsplit(link).query)["certUrl"] == [f"{base}/c/{made}"]
    assert "frame-ancestors 'none'" in page.HEADERS["Content-Security-Policy"]


def test_an_address_that_no_profile_takes_costs_only_the_link(private):
    for base in ("http://example.org/c", None):
        secured = issuing_place.signed(private, 5 if base else None, NOW, base=base, school="A" if base else None)
        html = page.render(Judgement("valid", "whole", credential.read(secured), "A")).decode()
        assert "Valid" in html and "linkedin" not in html.lower()


def test_the_page_of_a_revoked_certificate_says_so():
    html = page.render(Judgement("revoked", "It was revoked on 2026-03-01: by mistake")).decode()
    assert "Revoked" in html and "2026-03-01" in html


def test_the_service_serves_pages_that_stand_in_no_frame(tmp_path):
    fastapi = pytest.importorskip("fastapi", reason="FastAPI comes with the extra service")
    pytest.importorskip("httpx", reason="FastAPI's test client needs httpx")
    from fastapi.testclient import TestClient

    from quizzes.service.certificates import router

    app = fastapi.FastAPI()
    app.include_router(router(tmp_path))
    for name in (identifier.new(), "..%2f..%2fetc%2fpasswd", "x"):
        assert TestClient(app).get(f"/c/{name}").status_code == 404
    answer = TestClient(app).get(f"/c/{identifier.new()}")
    assert answer.headers["content-security-policy"] == "frame-ancestors 'none'"
