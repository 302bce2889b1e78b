"""Every figure as a picture in Chromium, light and dark: no text leaves it, none covers another, all of it can be read."""

import os
from pathlib import Path

import pytest

from offload_lab.plots.palette import DARK, LIGHT, luminance
from tests.offload_lab.plots.cases import figures

CHROMIUM = "/usr/bin/chromium"
ARTIFACTS = Path(__file__).resolve().parents[2] / "test-artifacts" / "figures"
FIGURES = figures()

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        not Path(CHROMIUM).exists() and not os.environ.get("CI"), reason=f"no browser at {CHROMIUM}; with CI set this fails"
    ),
]

BOXES = """() => {
    const svg = document.querySelector('svg'), view = svg.viewBox.baseVal;
    const found = [...svg.querySelectorAll('text:not([aria-hidden])')].map(text => {
        const box = text.getBBox(), place = text.getCTM();
        const corners = [[box.x, box.y], [box.x + box.width, box.y + box.height]].map(
            ([x, y]) => new DOMPoint(x, y).matrixTransform(place).matrixTransform(svg.getCTM().inverse()));
        return {words: text.textContent, fill: getComputedStyle(text).fill,
                left: Math.min(corners[0].x, corners[1].x), right: Math.max(corners[0].x, corners[1].x),
                top: Math.min(corners[0].y, corners[1].y), bottom: Math.max(corners[0].y, corners[1].y)};
    });
    return {width: view.width, height: view.height, texts: found, back: getComputedStyle(svg.querySelector('.back')).fill};
}"""
LEADING = 2.5
"""Units of a text's box, above and below, in which no letter stands."""


@pytest.fixture(scope="module", params=["light", "dark"])
def page(request):
    from playwright.sync_api import sync_playwright

    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--headless", "--no-sandbox", "--disable-gpu"])
        page = browser.new_page(color_scheme=request.param, viewport={"width": 900, "height": 700})
        yield page, request.param
        browser.close()


def colour(computed):
    """ "rgb(1, 2, 3)" as "#010203"."""
    return "#" + "".join(f"{int(part):02x}" for part in computed.removeprefix("rgb(").removesuffix(")").split(","))


@pytest.mark.parametrize("name", FIGURES)
def test_text_stays_inside_apart_and_legible(page, name):
    page, theme = page
    page.set_content(f'<body style="margin: 0">{FIGURES[name].svg()}</body>')
    page.locator("svg").screenshot(path=str(ARTIFACTS / f"{name}-{theme}.png"))
    seen = page.evaluate(BOXES)
    texts = [text for text in seen["texts"] if text["words"].strip()]
    assert texts
    for text in texts:
        inside = text["left"] >= 0 and text["right"] <= seen["width"] and text["top"] >= 0 and text["bottom"] <= seen["height"]
        assert inside, f"{text} leaves the picture of {seen['width']} × {seen['height']}"
    for number, one in enumerate(texts):
        for other in texts[:number]:
            across = min(one["right"], other["right"]) - max(one["left"], other["left"])
            down = min(one["bottom"], other["bottom"]) - max(one["top"], other["top"]) - 2 * LEADING
            assert across <= 0.5 or down <= 0, f"{one['words']!r} covers {other['words']!r}"
    chosen = {"light": LIGHT, "dark": DARK}[theme]
    assert colour(seen["back"]) == chosen.background
    for text in texts:
        assert colour(text["fill"]) in {chosen.ink, chosen.faint, "#000000", "#ffffff"}, text
    bright, dim = luminance(chosen.background), luminance(chosen.faint)
    assert (max(bright, dim) + 0.05) / (min(bright, dim) + 0.05) >= 4.5


def test_a_notebook_shows_the_image_with_its_words_and_the_table_unfolds(page):
    page, _ = page
    page.set_content(FIGURES["timeline"].bundle()["text/html"])
    image = page.get_by_role("img", name="Timeline")
    assert image.evaluate("async image => (await image.decode(), image.naturalWidth)") == 760
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.get_by_role("rowheader", name="disk reads", exact=True).is_visible()
