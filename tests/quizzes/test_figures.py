"""Figures of questions: they show the trace, say all that they show, and nothing of what is asked."""

import hashlib
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from itertools import product
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offload_lab.plots.rows import LEFT, RIGHT
from quizzes.figures import SOURCES, FigureError, figure, picture
from quizzes.figures.bars import Bars
from quizzes.figures.columns import Columns
from quizzes.figures.residency import Residency
from quizzes.figures.runs import RACES, SCHEDULES
from quizzes.figures.timeline import Timeline
from quizzes.lint_figures import LARGEST, check_figure
from quizzes.question import Question, every
from quizzes.say import language
from quizzes.variants import draw, figures, redraw
from tests.quizzes.figure_routes import CHOICES, TRACES, memory_of_a_training, run

FIGURED = [question for bank in every().values() for question in bank.questions if question.figure is not None]
PLOTS = [question for question in FIGURED if question.kind == "plot"]
SVG = "{http://www.w3.org/2000/svg}"


def by_id(questions):
    return pytest.mark.parametrize("question", questions, ids=lambda question: question.id)


def editions(question):
    """(values, the question with them in it), of every set of values."""
    for values in product(*question.variants.values()):
        chosen = dict(zip(question.variants, values, strict=True))
        yield chosen, redraw(question, json.dumps(chosen | {"#": "00000000"}))


def of_kind(kind):
    return [question for question in FIGURED if isinstance(picture(draw(question, "ada")), kind)]


def blocks(drawn):
    """(x, y, width, height) of every rectangle with an outline, keys left out."""
    found = [part for part in ET.fromstring(drawn.svg()).iter(f"{SVG}rect") if part.get("class") == "edge"]
    sizes = [tuple(float(part.get(name)) for name in ("x", "y", "width", "height")) for part in found]
    return [size for size in sizes if size[2:] != (16.0, 12.0)]


def words(drawn):
    return f"{drawn.alternative()}\n{drawn.text()}\n{ET.tostring(ET.fromstring(drawn.svg()), 'unicode', 'text')}"


# --- the keys ---------------------------------------------------------------------------------------------------------


def test_there_are_enough_and_of_every_source():
    assert len(PLOTS) >= 8 and sum(question.id.startswith("g") for question in PLOTS) >= 3
    assert {question.figure.source for question in FIGURED} == set(SOURCES)
    assert sum(bool(question.figure.open_names()) for question in FIGURED) >= 5
    assert {question.id for question in PLOTS} == set(CHOICES)


@by_id(PLOTS)
def test_keys_are_those_of_a_trace_that_is_made_again(question):
    for chosen, edition in editions(question):
        drawn = picture(edition)
        seen = SimpleNamespace(prompt=edition.prompt, choices=edition.choices, tasks=RACES["given_away_early"])
        if isinstance(drawn, Bars):
            seen.bars = {bar.name: dict(bar.parts) for panel in drawn.panels for bar in panel.bars}
        if isinstance(drawn, Residency):
            cells = drawn.cells()
            seen.reads = [[n for n, row in enumerate(cells) if row[step] & 1] for step in range(drawn.steps.steps)]
        assert CHOICES[question.id](seen, **chosen) == {choice.id: choice.correct for choice in edition.choices}, chosen


# --- what is shown is the trace ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TRACES)
def test_blocks_and_table_of_a_timeline_are_the_tasks(name):
    (question,) = (question for question in FIGURED if question.id == name)
    for chosen, edition in editions(question):
        drawn, trace = picture(edition), TRACES[name](**chosen)
        scale = (760 - LEFT - RIGHT) / trace.makespan
        expected = sorted((LEFT + event.start * scale, (event.end - event.start) * scale) for event in trace.events)
        seen = sorted((x, wide) for x, _, wide, _ in blocks(drawn))
        assert len(seen) == len(expected)
        for (x, wide), (left, size) in zip(seen, expected, strict=True):
            assert x == pytest.approx(left, abs=0.06) and wide == pytest.approx(size, abs=0.06)
        wanted = sorted(f"{event.start * 1000:.4g} to {event.end * 1000:.4g}" for event in trace.events)
        assert sorted(cell for table in drawn.tables() for row in table.rows for cell in row[1:]) == wanted


@by_id(of_kind(Bars))
def test_bars_are_as_long_as_their_numbers(question):
    for _, edition in editions(question):
        drawn = picture(edition)
        seen = iter(blocks(drawn))
        for panel in drawn.panels:
            longest = max([bar.total for bar in panel.bars] + ([panel.mark[1]] if panel.mark else []))
            for bar in panel.bars:
                for value in bar.parts.values():
                    assert next(seen)[2] == pytest.approx(468 * value / longest, abs=0.06)
        assert next(seen, None) is None


@by_id(of_kind(Columns))
def test_columns_are_what_torch_holds(question):
    for chosen, edition in editions(question):
        held = memory_of_a_training()
        expected = [size * chosen["parameters"] * 1e6 for moment in held for size in moment.values()]
        drawn = picture(edition)
        assert [sum(kinds.values()) for _, _, kinds in drawn.moments.columns()] == [
            sum(moment.values()) * chosen["parameters"] * 1e6 for moment in held
        ]
        tall = [height for *_, height in blocks(drawn)]
        assert len(tall) == len(expected)
        for one, other in zip(tall, expected, strict=True):
            assert one / tall[0] == pytest.approx(other / expected[0], rel=0.01)


def test_the_roofline_has_the_seconds_of_the_lanes_and_of_the_step():
    from offload_lab import schedulers

    made = figure("roofline", {"schedule": "write_behind", "partitions": 5})
    trace = run(schedulers.write_behind, partitions=5)
    assert [bar.total for bar in made.panels[0].bars] == [
        pytest.approx(trace.busy[lane] * 1000) for lane in ("disk-read", "cpu", "disk-write")
    ]
    assert made.panels[0].mark[1] == pytest.approx(trace.makespan * 1000)


# --- what is said of it -----------------------------------------------------------------------------------------------


@by_id(FIGURED)
def test_the_alternative_text_has_every_bar(question):
    for _, edition in editions(question):
        drawn = picture(edition)
        said = drawn.alternative()
        if isinstance(drawn, Timeline):
            assert len(re.findall(r"partition \d+ from [\d.]+ to [\d.]+ ms", said)) == len(blocks(drawn))
            cells = [cell for table in drawn.tables() for row in table.rows for cell in row[1:]]
            for cell in cells:
                assert f"from {cell} ms" in said
        elif isinstance(drawn, Residency):
            assert len(re.findall(r"\b(?:read|in RAM|written)\b", said.split("disk.", 1)[1])) == len(blocks(drawn))
        else:
            for table in drawn.tables():
                for row in table.rows:
                    assert row[0] in said
                    assert all(cell == "-" or cell in said for cell in row[1:]), row


@by_id(FIGURED)
def test_nothing_of_the_key_is_in_it(question):
    told = ["stall", "wait", "slow", "fast", "best", "worst", "cheapest", "longest", "bound", "limit", "busy", "hit", "miss"]
    told += ["race", "wrong", "correct", "because"]
    for _, edition in editions(question):
        drawn = picture(edition)
        said = words(drawn).lower()
        for schedule in (*SCHEDULES, *RACES):
            assert schedule not in said, schedule
        assert not [word for word in told if re.search(rf"\b{word}(s|es|ing|ed)?\b", said)]
        for choice in edition.choices:
            assert len(choice.text) < 12 or choice.text.lower() not in said
        assert question.id not in drawn.html() + drawn.svg()
        assert (
            "<script" not in drawn.svg()
            and "href" not in drawn.svg()
            and not re.search(r"https?://(?!www\.w3\.org)", drawn.svg())
        )


def test_a_public_question_has_the_picture_and_not_what_it_is_of():
    for question in FIGURED:
        edition = draw(question, "ada")
        shown = edition.public()["figure"]
        assert set(shown) == {"title", "svg", "alternative", "tables"} and json.dumps(shown)
        if question.variants:
            assert question.public()["figure"] is None
        assert "schedule" not in shown
    assert FIGURED[0].public()["figure"] == FIGURED[0].public("en")["figure"]


def test_the_same_bytes_in_another_process():
    code = (
        "import hashlib; from quizzes.figures import picture; from quizzes.question import every\n"
        "from quizzes.variants import draw\n"
        "for bank in every().values():\n"
        "    for q in bank.questions:\n"
        "        if q.figure is not None:\n"
        "            print(q.id, hashlib.sha256(picture(draw(q, 'ada')).html().encode()).hexdigest())\n"
    )
    seen = [
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
        ).stdout.split("\n")[:-1]
        for seed in ("1", "2")
    ]  # fmt: skip
    here = [f"{q.id} {hashlib.sha256(picture(draw(q, 'ada')).html().encode()).hexdigest()}" for q in FIGURED]
    assert seen == [here, here]


def test_numbers_are_written_as_the_locale_writes_them():
    given = {"schedule": "no_overlap", "partitions": 2, "read": 5}
    assert "from 0 to 2.5 ms" in figure("timeline", given).alternative()
    assert "2,5" in figure("timeline", given, "fr").text() and "2.5" not in figure("timeline", given, "fr").text()


def test_every_string_goes_through_gettext():
    for question in FIGURED:
        with language("xx"):
            drawn = picture(draw(question, "ada"))
            seen = [text for text in ET.fromstring(drawn.svg()).itertext() if "prefers-color-scheme" not in text]
        for text in "\n".join(seen).split("\n"):
            bare = re.sub(r"⟦[^⟧]*⟧?|[^⟦]*⟧", "", text)  # a long line is broken, between its brackets
            assert "⟦" in text or "⟧" in text or not re.search(r"[a-z]{4,}", bare) or bare in drawn_names(question), text


def drawn_names(question):
    return question.figure.parameters().get("machines", ())


# --- figures that cannot be drawn -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source, given, said",
    [
        ("tea leaves", {}, "source: 'tea leaves' is not one of timeline"),
        ("timeline", {"schedule": "magic"}, "schedule: 'magic' is not one of no_overlap"),
        ("timeline", {}, "schedule: Field required"),
        ("timeline", {"schedule": "lru", "disk_reed": 3}, "disk_reed: Extra inputs"),
        ("timeline", {"schedule": "lru", "read": "{read}"}, "read: "),
        ("timeline", {"schedule": "lru", "read": float("nan")}, "read: "),
        ("timeline", {"schedule": "lru", "partitions": 10**6}, "partitions: "),
        ("timeline", {"schedule": "lru", "resident": 7}, "resident: 7 of 6"),
        ("timeline", {"schedule": "given_away_early", "steps": 2}, "schedule: given_away_early is shown for one step"),
        ("memory", {"parameters": 5, "dtype": "int4"}, "dtype: "),
        ("bytes", {"ways": []}, "ways: "),
        ("bytes", {"ways": [{"state_dtype": "int8"}]}, "ways.0: state_dtype="),
        ("plans", {"machines": ["laptop", "abacus"], "prices": [1, 2], "parameters": 100}, "no machine"),
        ("plans", {"machines": ["laptop", "gh200"], "prices": [1], "parameters": 100}, "prices: 2 are needed"),
        (
            "plans",
            {"machines": ["laptop", "gh200"], "prices": [1, 2], "parameters": 70000},
            "machines: the training does not fit",
        ),
    ],
)
def test_what_cannot_be_drawn_is_said(source, given, said):
    with pytest.raises(FigureError, match=re.escape(said)):
        figure(source, given)


def question(**changes):
    choices = [
        {"id": "a", "text": "yes", "correct": True, "explanation": "The disk is what everything waits for here."},
        {"id": "b", "text": "no", "correct": False, "explanation": "It is not.", "misconception": "all-hidden"},
    ]
    told = {"id": "l04-x", "name": "q1", "kind": "plot", "prompt": "What does the figure show?", "choices": choices}
    return Question.model_validate(told | {"figure": {"source": "timeline", "schedule": "lru"}} | changes)


def test_lint_says_which_figure_is_missing_or_cannot_be_drawn():
    assert check_figure(question(), []) == []
    assert check_figure(question(figure={"source": "timeline", "schedule": "{way}"}), []) == ["figure: 'way' is in no variant"]
    bad = question(variants={"n": [4, 400]}, figure={"source": "timeline", "schedule": "lru", "partitions": "{n}"})
    (said,) = check_figure(bad, [])
    assert said.startswith("figure: it cannot be drawn with n = 400: partitions: ")
    assert check_figure(question(kind="one", figure=None), []) == ["figure: the prompt speaks of one, and there is none"]
    assert "nobody overlooks it" in check_figure(question(prompt="What is it?"), [])[0]
    assert check_figure(question(), ["Each block is one task"]) == [
        "figure: 'Each block is one task' belongs to the key and stands in it"
    ]
    with pytest.raises(ValueError, match="figure: a question of kind plot shows one"):
        question(figure=None)


def test_a_figure_follows_its_variants():
    asked = question(variants={"n": [4, 5]}, figure={"source": "timeline", "schedule": "lru", "partitions": "{n}"})
    assert [made.parameters()["partitions"] for _, made in figures(asked)] == [4, 5]
    drawn = {picture(draw(asked, "ada", attempt)).steps.partitions for attempt in (0, 1)}
    assert drawn == {4, 5} and asked.figure.open_names() == {"n"}


@settings(max_examples=60, deadline=None)
@given(
    schedule=st.sampled_from(sorted(SCHEDULES)),
    steps=st.integers(1, 6),
    partitions=st.integers(1, 12),
    buffers=st.integers(1, 12),
    read=st.floats(0.01, 9999),
    duplex=st.sampled_from(["half", "full"]),
    source=st.sampled_from(["timeline", "residency", "roofline"]),
)
def test_whatever_is_allowed_is_drawn_whole(source, **given):
    drawn = figure(source, given)
    ET.fromstring(drawn.svg())
    assert "nan" not in drawn.svg() and "inf" not in re.sub("[a-z]*inf[a-z]+", "", drawn.svg())
    if source == "timeline":
        assert len(drawn.tables()[0].rows) == given["steps"] * given["partitions"]
    assert len(drawn.html()) < 4 * LARGEST
