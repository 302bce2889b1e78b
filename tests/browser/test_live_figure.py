"""The live view's figure in Chromium, with the plotly.js that plotly brings: many updates, one plot, a bounded heap."""

import json
import os
from importlib import resources
from pathlib import Path

import pytest

from offload_lab.meter import Reading
from offload_lab.plots import MemoryPlot, figure

CHROMIUM = "/usr/bin/chromium"
MB = 10**6

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        not Path(CHROMIUM).exists() and not os.environ.get("CI"), reason=f"no browser at {CHROMIUM}; with CI set this fails"
    ),
]


DRAW = """async frames => {
    const heap = [];
    for (let number = 0; number < frames.length; number++) {
        const frame = JSON.parse(frames[number]);
        await Plotly.react('here', frame.data, frame.layout);
        await new Promise(requestAnimationFrame);
        if (number === 60 || number === frames.length - 1) { gc(); gc(); heap.push(performance.memory.usedJSHeapSize); }
    }
    return heap;
}"""
# In one call: what Playwright sends along with a call stays in the page.


def frames(count):
    """What is sent for a run of ten minutes, read 20 times a second and thinned as the sampler does."""
    from plotly.graph_objects import Figure

    fixed, readings, kept = figure.fixed_json(Figure), [], 1
    for number in range(12_000):
        if number % kept == 0:
            readings.append(Reading(number / 20, 50 * MB, 50 * MB * (number % 2), 100 * MB, 490 * MB, MB * (number % 31), 0))
        if len(readings) > 2000:
            readings, kept = readings[::2], kept * 2
        if number % (12_000 // count) == 0:
            note = f"running: {number} steps"
            yield figure.as_json(fixed, MemoryPlot({"AdamW": readings}, "T", 700 * MB, 400 * MB, {"AdamW": note}))


def test_ten_minutes_of_updates_leave_one_plot_and_a_bounded_heap():
    from playwright.sync_api import sync_playwright

    script = (resources.files("plotly") / "package_data" / "plotly.min.js").read_text(encoding="utf-8")
    with sync_playwright() as playwright:
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--js-flags=--expose-gc", "--enable-precise-memory-info"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        page = browser.new_page(viewport={"width": 900, "height": 600})
        page.set_content('<div id="here"></div>')
        page.add_script_tag(content=script)
        sent = [json.dumps(frame) for frame in frames(240)]
        heap = page.evaluate(DRAW, sent)
        assert page.locator(".js-plotly-plot").count() == 1
        assert page.locator("#here .shapelayer path").count() == 2, "the lines of the frame before are gone"
        assert "running: 11950 steps" in page.locator("#here .gtitle").text_content()
        browser.close()
    last = json.loads(sent[-1])
    assert max(len(trace["x"]) for trace in last["data"]) <= 302
    # A figure that kept what each frame brings would grow by about that much a frame.
    brought = sum(map(len, sent[61:]))
    assert brought > 4e6 and heap[1] - heap[0] < brought / 3, heap
