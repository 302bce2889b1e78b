"""Every single bit of a certificate counts: none can be flipped without the verdict being another one."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from quizzes.certificates import badge, png, strict_json
from quizzes.certificates.judge import judge
from quizzes.certificates.registry import Registry
from tests.certificates.issuing_place import URL, signed

NOW = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def issued(tmp_path_factory):
    private = Ed25519PrivateKey.generate()
    registry = Registry(tmp_path_factory.mktemp("registry"))
    registry.create(private, name="A School", url=URL, begin=NOW - timedelta(days=30), now=NOW)
    return signed(private, 5, NOW - timedelta(days=9), name="Zoë 김민준"), registry.read()


def flips(data):
    """Each copy of `data` with one bit flipped, and the bit's place."""
    changed = bytearray(data)
    for place in range(8 * len(data)):
        changed[place // 8] ^= 1 << place % 8
        yield place, bytes(changed)
        changed[place // 8] ^= 1 << place % 8


def reads_the_same(data, secured):
    """Whether the standard library's generous parser finds the very claims of `secured` in `data`."""
    try:
        return strict_json.canonical(json.loads(data)) == strict_json.canonical(secured)
    except (ValueError, RecursionError):
        return False


@pytest.mark.timeout(300)
def test_every_bit_of_the_json(issued):
    """A flip that leaves the claims equal, byte for byte in canonical form, would only be *altered*; the rest says nothing at
    all. In a canonical file there is no such flip: its one white space is the line end, a bit away from no other."""
    secured, published = issued
    data = strict_json.canonical(secured) + b"\n"
    assert judge(data, now=NOW, published=published).verdict == "valid"
    seen = Counter()
    for place, changed in flips(data):
        found = judge(changed, now=NOW, published=published)
        assert found.verdict in ("not a certificate", "altered"), (place, found)
        assert not reads_the_same(changed, secured), place
        seen[found.verdict] += 1
    assert seen.total() == 8 * len(data) and seen["altered"] > len(data)


@pytest.mark.timeout(300)
def test_every_bit_of_a_png(issued):
    image = pytest.importorskip("PIL.Image", reason="Pillow comes with the extra certificates")
    import io

    secured, published = issued
    out = io.BytesIO()
    image.new("L", (8, 8)).save(out, "PNG")
    data = png.insert(out.getvalue(), strict_json.canonical(secured))
    assert judge(data, now=NOW, published=published).verdict == "valid"
    for place, changed in flips(data):
        assert judge(changed, now=NOW, published=published).verdict in ("not a certificate", "altered"), place


@pytest.mark.timeout(300)
def test_a_bit_of_every_byte_of_the_svg(issued, monkeypatch):
    """All bytes, another bit in each. The picture is a function of the credential, so it is drawn once for each that passes."""
    secured, published = issued
    data, drawn = badge.render(secured), {}
    render = badge.render

    def once(credential, edition=None):
        key = strict_json.canonical(credential), edition
        return drawn[key] if key in drawn else drawn.setdefault(key, render(credential, edition))

    monkeypatch.setattr(badge, "render", once)
    assert judge(data, now=NOW, published=published).verdict == "valid"
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 1 << place % 8
        assert judge(bytes(changed), now=NOW, published=published).verdict in ("not a certificate", "altered"), place
