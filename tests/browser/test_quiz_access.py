"""The quiz for keyboard and screen reader: the accessibility tree of Chromium, focus, contrast, in both themes."""

import json

import pytest

from tests.browser.test_lab import ARTIFACTS, command, page, pytestmark, ready, run_all, serve  # noqa: F401 - fixture, skip
from tests.browser.test_quiz import KERNEL, folder  # noqa: F401 - fixture

CONTROLS = ".offload-quiz :is(input, select, button)"
# WCAG 2.2: relative luminance and contrast ratio of what is drawn, against the nearest background that is opaque.
CONTRAST = """selector => {
  const rgb = text => text.match(/[\\d.]+/g).map(Number);
  const channel = c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const light = c => 0.2126 * channel(c[0]) + 0.7152 * channel(c[1]) + 0.0722 * channel(c[2]);
  const behind = e => { for (; e; e = e.parentElement) {
    const c = rgb(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] === 1) return c; } return [255, 255, 255]; };
  return [...document.querySelectorAll(selector)].filter(e => e.innerText && e.innerText.trim()).map(e => {
    const [a, b] = [light(rgb(getComputedStyle(e).color)), light(behind(e))];
    return [e.innerText.slice(0, 40), (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)]; });
}"""


def names(page):  # noqa: F811
    """(role, name) that Chromium computes for each control of the quiz, in the order of the page."""
    client, found = page.context.new_cdp_session(page), []
    for number in range(page.locator(CONTROLS).count()):
        code = f"document.querySelectorAll('{CONTROLS}')[{number}]"
        element = client.send("Runtime.evaluate", {"expression": code})["result"]["objectId"]
        (node,) = client.send("Accessibility.getPartialAXTree", {"objectId": element, "fetchRelatives": False})["nodes"]
        found.append((node["role"]["value"], node.get("name", {}).get("value", "")))
    client.detach()
    return found


def tree(page):  # noqa: F811
    """(role, name) of what a screen reader is given."""
    client = page.context.new_cdp_session(page)
    nodes = client.send("Accessibility.getFullAXTree")["nodes"]
    client.detach()
    read = lambda node, key: node.get(key, {}).get("value", "")  # noqa: E731
    return [(read(node, "role"), read(node, "name"), node) for node in nodes if not node.get("ignored")]


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_names_focus_and_contrast(tmp_path_factory, folder, page, theme):  # noqa: F811
    source = folder / "lesson.ipynb"
    content = json.loads(source.read_text())
    content["metadata"] = KERNEL
    source.write_text(json.dumps(content))
    for address, token in serve(tmp_path_factory, folder, "jupyterlab"):
        ready(page, f"{address}/lab/tree/lesson.ipynb?token={token}")
        if page.evaluate("() => document.body.dataset.jpThemeName") != theme:
            command(page, f"Use Theme: {theme}")
            page.wait_for_function("theme => document.body.dataset.jpThemeName === theme", arg=theme, timeout=60_000)
            page.locator(".jp-Notebook .jp-Cell").first.click()
        run_all(page)
        page.locator(CONTROLS).first.wait_for(timeout=60_000)
        page.wait_for_function(f"() => document.querySelectorAll('{CONTROLS}').length > 30", timeout=60_000)

        named = names(page)
        assert len(named) > 30 and all(name.strip() for _, name in named), named
        assert {("button", f"Check q{n}") for n in range(1, 9)} <= set(named)
        assert any(role == "checkbox" and name.startswith("d)") for role, name in named)
        assert ("combobox", "How sure are you of q1?") in named and ("textbox", "q3, number and unit:") in named

        # Tab goes through the controls in the order in which they are read, and each shows that it has the focus.
        page.locator(CONTROLS).first.focus()
        order = []
        for _ in range(12):
            page.keyboard.press("Tab")
            order.append(
                page.evaluate(
                    f"""() => {{ const e = document.activeElement, all = [...document.querySelectorAll('{CONTROLS}')];
                    const s = getComputedStyle(e);
                    return [all.indexOf(e), s.outlineStyle, parseFloat(s.outlineWidth)]; }}"""
                )
            )
        places = [place for place, *_ in order]
        assert places == list(range(1, 13)), places
        assert all(style != "none" and width >= 2 for _, style, width in order), order

        page.get_by_role("button", name="Check q1").focus()
        page.keyboard.press("Enter")
        page.get_by_role("alert").filter(has_text="Not counted").wait_for(timeout=60_000)
        page.locator(CONTROLS).nth(1).focus()
        page.keyboard.press("Space")
        page.get_by_role("button", name="Check q1").focus()
        page.keyboard.press("Enter")
        page.get_by_role("alert").filter(has_text="✘ Not yet").wait_for(timeout=60_000)
        alerts = [node for role, _, node in tree(page) if role == "alert"]
        assert len(alerts) == 1, "one verdict is announced, and no old one with it"
        assert page.evaluate("() => document.activeElement.textContent") == "Check q1", "the verdict takes no focus away"

        poor = [row for row in page.evaluate(CONTRAST, ".offload-quiz :is(p, label, button, .offload-verdict)") if row[1] < 4.5]
        page.screenshot(path=str(ARTIFACTS / f"quiz-access-{theme.split()[-1].lower()}.png"))
        assert not poor, poor
