"""Pages in Chromium that note every request and every complaint of the browser."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path

import pytest

CHROMIUM = "/usr/bin/chromium"
ARTIFACTS = Path(__file__).resolve().parents[2] / "test-artifacts" / "certificates"
NEEDS_CHROMIUM = pytest.mark.skipif(
    not Path(CHROMIUM).exists() and not os.environ.get("CI"), reason=f"no browser at {CHROMIUM}; with CI set this fails"
)


@contextmanager
def chromium():
    """A browser for a `with` block."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--headless", "--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


def open_page(browser, url, **more):
    """A page at `url` in a context of its own; `page.requests` and `page.problems` fill while it is open."""
    page = browser.new_context(**more).new_page()
    page.set_default_timeout(90_000)
    page.requests, page.problems = [], []
    page.on("request", lambda request: page.requests.append(request.url))
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("console", lambda message: page.problems.append(message.text) if message.type == "error" else None)
    page.goto(url)
    return page


WORST_CONTRAST = """() => {
  const parse = (text) => {
    const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number);
    return { rgb: [r, g, b], a };
  };
  const light = (rgb) => {
    const linear = (value) => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    const [r, g, b] = rgb.map((value) => linear(value / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const { rgb, a } = parse(getComputedStyle(at).backgroundColor);
      if (a === 1) return rgb;
      if (a !== 0) throw new Error("a half-transparent ground");
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const element of document.querySelectorAll("main *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || !element.checkVisibility() || element.closest("svg")) continue;
    const [one, other] = [light(parse(getComputedStyle(element).color).rgb), light(ground(element))].sort((a, b) => b - a);
    found.push([(one + 0.05) / (other + 0.05), element.outerHTML.slice(0, 80)]);
  }
  return found.sort((a, b) => a[0] - b[0]);
}"""
"""Contrast (WCAG 2.2) of each element's text to what is behind it, the worst first."""
