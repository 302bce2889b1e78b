"""Questions with texts that formats stumble over, and answers to them that are right, wrong and half right."""

import itertools
import string

from hypothesis import strategies as st

from quizzes.interchange import formats
from quizzes.question import UNNAMED, Bank, Question, misconceptions

IDEAS = sorted(set(misconceptions()) - {UNNAMED})
EVIL = [
    "~ = # { } : \\", "a\\nb", "\\n", "\\\\begin{array}{c} 1 \\\\\\\\ 2",
    "(Correct (with caveats))", ":(", "%50% of it", "[html]<b>x</b>",
    "<script>alert(1)</script>", "<![CDATA[ x ]]>", "]]>", "&amp; &lt;", "−5 or －5",
    "한국어 질문", "  leads", "trails  ", "two\nlines", "two\n\nlines", "// no comment",
    "::title::", "####", "a -> b", "->", "=", "*", "a*b", "\\*", "-- > -->", "TRUE",
    "T", "é e\u0301", "$CATEGORY: x", "[id:x] [tag:y]", "{=formula}", "{name}",
    "tab\there", "\u202eoverride", "😀", " ", "0", "@@PLUGINFILE@@/x.png", "a\r\nb",
    "`x<y`", "&nbsp;", "\u2028", "\x85", "\ufeff", "1,5", "_____", "#4", "~",
    "offload-quiz: {}",
]  # fmt: skip
texts = st.one_of(
    st.sampled_from(EVIL),
    st.text(alphabet=string.printable.replace("\x0b", "").replace("\x0c", "") + "−한é😀", min_size=1, max_size=25),
    st.lists(st.sampled_from(EVIL), min_size=2, max_size=3).map("".join),
)
ids = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,8}", fullmatch=True)
ideas = st.sampled_from(IDEAS)
shares = st.sampled_from([0.0, 0.005, 0.01, 0.02, 0.1, 1 / 3])
numbers = st.one_of(
    st.integers(-(10**12), 10**12),
    st.floats(-1e9, 1e9, allow_nan=False),
    st.sampled_from([1e-8, "1/3", "-22/7", 3.14, 1e-300, 1e22, 0, 45.8, "1e-8"]),
)


@st.composite
def parts(draw, *fields, least, most=5, key=None, **more):
    """Dicts with ids, unique, and a text for each of `fields`."""
    names = draw(st.lists(ids, min_size=least, max_size=most, unique=True))
    found = [{"id": name} | {field: draw(texts) for field in fields} for name in names]
    return [part | {name: draw(strategy) for name, strategy in more.items()} for part in found]


@st.composite
def questions(draw, kinds=("one", "several", "number", "text", "order", "match")):
    kind = draw(st.sampled_from(kinds))
    data = {"id": draw(ids), "name": "q1", "kind": kind, "prompt": draw(texts), "level": draw(st.integers(1, 3))}
    data |= {"points": draw(st.sampled_from([0, 1, 2.5])), "reread": draw(st.sampled_from(["", "A heading"]))}
    if draw(st.booleans()):
        data |= {"hints": draw(st.lists(texts, min_size=1, max_size=3)), "hint_cost": draw(st.sampled_from([0.1, 0.25, 1 / 3]))}
    data |= globals()[f"_{kind}"](draw)
    return Question.model_validate(data)


def _one(draw):
    data = {"choices": draw(parts("text", "explanation", least=2, most=6, misconception=ideas, stays_last=st.booleans()))}
    right = draw(st.sets(st.sampled_from(range(len(data["choices"]))), min_size=1, max_size=2))
    for place, choice in enumerate(data["choices"]):
        choice["correct"] = place in right
        if place not in right and draw(st.booleans()):
            choice["credit"] = draw(st.sampled_from([0.5, 1 / 3, 0.37, 0.1]))
    return data | {"several_right": len(right) > 1}


def _several(draw):
    data = {"choices": draw(parts("text", "explanation", least=2, most=14, misconception=ideas))}
    right = draw(st.sets(st.sampled_from(range(len(data["choices"]))), min_size=1, max_size=13))
    for place, choice in enumerate(data["choices"]):
        choice |= {"correct": place in right, "exclusive": place not in right and draw(st.booleans())}
    return data


def _number(draw):
    right = st.fixed_dictionaries(
        {"value": numbers, "tolerance": shares, "absolute": st.sampled_from([None, 0.0, 0.2, 1e-8, 1e10])}
    )
    data = {"unit": draw(st.sampled_from(["bytes", "seconds", "bytes_per_second", "percent", "count", "dollars", "ratio"]))}
    if draw(st.booleans()):
        data |= {"value": draw(numbers), "tolerance": draw(shares)}
    data["answers"] = draw(st.lists(right, min_size=0 if "value" in data else 1, max_size=2))
    trap = st.fixed_dictionaries({"value": numbers, "explanation": texts, "misconception": ideas})
    return data | {"traps": draw(st.lists(trap, max_size=3)), "explanation": draw(texts)}


def _text(draw):
    from quizzes.words import plain

    accepted = draw(st.lists(texts.filter(plain), min_size=1, max_size=4))
    wrong = st.fixed_dictionaries({"text": texts, "explanation": texts, "misconception": ideas})
    right = {plain(text) for text in accepted}
    found = [part for part in draw(st.lists(wrong, max_size=3)) if plain(part["text"]) not in right]
    return {"accepted": accepted, "wrong": found, "explanation": draw(texts)}


def _order(draw):
    steps = draw(parts("text", least=3))
    wrong = draw(st.permutations([step["id"] for step in steps]))
    data = {"steps": steps, "explanation": draw(texts)}
    if wrong != [step["id"] for step in steps]:
        data["mistakes"] = [{"order": wrong, "explanation": draw(texts), "misconception": draw(ideas)}]
    return data


def _match(draw):
    pairs = draw(parts("explanation", least=2, most=4, misconception=ideas))
    lefts = draw(st.lists(texts, min_size=len(pairs), max_size=len(pairs), unique_by=formats.forms.QTI.normal))
    # Other line ends become \n, which would change the order, and so the numbers, of the options.
    one_line = texts.map(lambda text: " ".join(text.split()) or "-")
    pool = draw(st.lists(one_line, min_size=2, max_size=5, unique_by=formats.forms.QTI.normal))
    for place, (pair, left) in enumerate(zip(pairs, lefts, strict=True)):
        pair |= {"left": left, "right": pool[0] if not place else draw(st.sampled_from(pool[:3]))}
    used = {pair["right"] for pair in pairs}
    rest = [text for text in pool if text not in used]
    taken = {pair["id"] for pair in pairs}
    names = [name for name in ("x1", "x2", "x3", "x4", "x5") if name not in taken]
    extra = [{"id": name, "text": text} for name, text in zip(names, rest, strict=False)]
    return {"pairs": pairs, "extra": extra}


def bank(*held, lesson="07"):
    return Bank(lesson=lesson, title="A title: {with} = signs", questions=held)


def answers(question):
    """Right, wrong and half right answers, and some that are none."""
    yield from ("", "zzz", None, "a, b")
    if question.choices:
        names = [choice.id for choice in question.choices]
        for count in range(1, min(len(names), 3) + 1):
            yield from map(list, itertools.combinations(names, count))
        yield names
        yield [choice.id for choice in question.choices if choice.correct]
    if question.kind == "number":
        yield from ("1", "12 GB", "3 s", "40 %", "-1e-8")
        for part in (*question.right, *question.traps):
            value = part.value.number()
            for near in (value, value * 2, -value, float(value) * 1.005, float(value) * 1.02, float(value) + 0.2):
                yield f"{float(near)!r}"
    if question.kind == "text":
        yield from (
            *question.accepted,
            *(part.text for part in question.wrong),
            *(f" {text.upper()}." for text in question.accepted),
        )
    if question.kind == "order":
        names = [step.id for step in question.steps]
        yield from (names, names[::-1], names[1:] + names[:1], names[:-1], sorted(names))
        yield from (list(mistake.order) for mistake in question.mistakes)
    if question.kind == "match":
        options = list(question.options())
        yield {pair.id: pair.option for pair in question.pairs}
        for option in options:
            yield {pair.id: option for pair in question.pairs}
        yield {question.pairs[0].id: question.pairs[0].option}
