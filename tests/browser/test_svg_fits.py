"""The SVG as a browser sets it: the longest and widest names stay inside the frame and off the QR code."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from quizzes.certificates import badge, badge_layout
from tests.browser.pages import ARTIFACTS, NEEDS_CHROMIUM, chromium
from tests.certificates.issuing_place import signed

pytestmark = [pytest.mark.timeout(300), NEEDS_CHROMIUM]
LONGEST = {
    "widest": "W" * 100,
    "words": ("MWMWMWMWMW " * 9).strip(),
    "han": "寒" * 100,
    "cyrillic": "Щ" * 100,
    "digraphs": "Ǆ" * 100,
    "accents": "Ẃ" * 100,
    "devanagari": "श्री" * 25,
    "arabic": "محمدسسش " * 12 + "ﷺﷺ",
    "thai": "กมลสมชาย" * 12,
    "emoji": "😀" * 100,
    "formulas": "﷽" * 100,
    "dashes": "⸻" * 50 + "—‰" * 25,
    "plain": "Maximiliane Alexandra Schmidt-Hernández de la Cruz",
}
BOXES = """() => [...document.querySelectorAll("svg text")].map((line) => {
  const { x, y, width, height } = line.getBBox();
  return [line.textContent, x, x + width, y, y + height];
})"""


@pytest.fixture(scope="module")
def page():
    with chromium() as browser:
        yield browser.new_page(viewport={"width": badge_layout.WIDTH, "height": badge_layout.HEIGHT})


@pytest.mark.parametrize("what", LONGEST)
def test_nothing_runs_over_the_frame_or_into_the_code(page, what):
    name = LONGEST[what]
    issued = datetime(2026, 3, 1, tzinfo=UTC)
    school = "A School" if what == "formulas" else name  # no issuer calls itself a hundred ligatures of four words
    more = {"name": name, "title": name, "school": school, "until": issued}
    svg = badge.render(signed(Ed25519PrivateKey.generate(), 5, issued, **more)).decode()
    page.set_content(f"<style>body {{ margin: 0 }}</style>{svg}")
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=str(ARTIFACTS / f"name-{what}.png"))
    edge, code = badge_layout.FRAMES[1][0], badge_layout.QR[0]
    boxes = page.evaluate(BOXES)
    assert len(boxes) > 10
    for content, left, right, top, bottom in boxes:
        assert edge < left and right < badge_layout.WIDTH - edge and bottom < badge_layout.HEIGHT - edge, content
        assert right < code or bottom < badge_layout.QR[1] or top > code + badge_layout.QR[2], content
    # Small print lies below the head, line by line.
    starts = [top for _, _, _, top, _ in boxes]
    assert min(starts) > edge
