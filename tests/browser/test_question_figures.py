"""The figures of questions as pictures in Chromium, light and dark. Leaves screenshots."""

import pytest

from offload_lab.plots.palette import DARK, LIGHT
from quizzes.figures import picture
from quizzes.question import every
from quizzes.variants import draw
from tests.browser import test_figures
from tests.browser.test_figures import ARTIFACTS, BOXES, LEADING, colour, pytestmark  # noqa: F401 - skip

page = test_figures.page
FIGURED = [question for bank in every().values() for question in bank.questions if question.figure is not None]


@pytest.mark.parametrize("question", FIGURED, ids=lambda question: question.id)
def test_text_stays_inside_and_apart_and_something_is_drawn(page, question):
    page, theme = page
    for attempt in range(min(3, max(map(len, question.variants.values()), default=1))):
        drawn = picture(draw(question, "ada", attempt))
        page.set_content(f'<body style="margin: 0">{drawn.svg()}</body>')
        if not attempt:
            page.locator("svg").screenshot(path=str(ARTIFACTS / f"question-{question.id}-{theme}.png"))
        seen = page.evaluate(BOXES)
        texts = [text for text in seen["texts"] if text["words"].strip()]
        assert len(texts) > 5 and page.locator("svg rect.edge").count() >= 3
        for text in texts:
            assert text["left"] >= 0 and text["right"] <= seen["width"], text
            assert text["top"] >= 0 and text["bottom"] <= seen["height"], text
        for number, one in enumerate(texts):
            for other in texts[:number]:
                across = min(one["right"], other["right"]) - max(one["left"], other["left"])
                down = min(one["bottom"], other["bottom"]) - max(one["top"], other["top"]) - 2 * LEADING
                assert across <= 0.5 or down <= 0, f"{one['words']!r} covers {other['words']!r}"
        chosen = {"light": LIGHT, "dark": DARK}[theme]
        assert colour(seen["back"]) == chosen.background
        assert {colour(text["fill"]) for text in texts} <= {chosen.ink, chosen.faint, "#000000", "#ffffff"}
