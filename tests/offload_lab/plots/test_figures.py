"""What every figure keeps to: an image with a name, words that stay words, a text twin, and where its figures are from."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from offload_lab import plots
from offload_lab.plots.lettering import clean, cut, named, width_of, wrapped
from offload_lab.plots.palette import KINDS, LANES, OTHER, ink_on, luminance, styles_of
from offload_lab.plots.tables import Table
from tests.offload_lab.plots.cases import LONG, figures

SVG = "{http://www.w3.org/2000/svg}"
FIGURES = figures()
KNOWN = {"svg", "title", "desc", "style", "defs", "pattern", "rect", "path", "text"}


@pytest.fixture(params=FIGURES)
def figure(request):
    return FIGURES[request.param]


@pytest.fixture
def drawn(figure):
    return ElementTree.fromstring(figure.svg())


def test_it_is_an_image_with_a_name_and_a_description(figure, drawn):
    assert drawn.get("role") == "img"
    by_id = {element.get("id"): element for element in drawn.iter()}
    title, description = (by_id[name].text for name in drawn.get("aria-labelledby").split())
    assert title == clean(figure.title)
    assert description and set(description.splitlines()) <= set(figure.text().splitlines())
    assert {element.tag.removeprefix(SVG) for element in drawn.iter()} <= KNOWN
    assert "http" not in figure.svg().replace("http://www.w3.org/2000/svg", "")


def test_no_number_in_it_is_none(drawn):
    values = [value for element in drawn.iter() for name, value in element.attrib.items() if name != "aria-labelledby"]
    assert not [value for value in values if re.search(r"\b(nan|-?inf)\b|\d{12}", value)]
    sizes = [float(element.get(name)) for element in drawn.iter(f"{SVG}rect") for name in ("width", "height")]
    assert min(sizes) > 0


def test_it_is_small_whatever_it_shows(figure):
    assert len(figure.svg()) < 450_000
    assert len(figure.text()) < 40_000


def test_the_same_figures_are_the_same_file_and_names_are_its_own(figure):
    svg = figure.svg()
    assert svg == figure.svg()
    ids = set(re.findall(r' id="([^"]+)"', svg))
    assert set(re.findall(r"url\(#([^)]+)\)", svg)) <= ids
    others = [other for other in FIGURES.values() if other is not figure and other.svg() != svg]
    assert not any(ids & set(re.findall(r' id="([^"]+)"', other.svg())) for other in others[:3])


def test_it_says_where_its_figures_are_from(figure):
    if "no" not in figure.text().lower().split("\n")[1]:
        assert re.search(r"measured|predicted|quoted", figure.text(), re.IGNORECASE)


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen, self.alternatives = set(), []

    def handle_starttag(self, tag, attributes):
        self.seen.add(tag)
        self.alternatives += [value for name, value in attributes if name == "alt"]


def test_a_notebook_gets_an_image_with_its_words_and_a_table(figure):
    bundle = figure._repr_mimebundle_()
    assert set(bundle) == {"text/html", "image/svg+xml", "text/plain"}
    assert bundle["text/plain"] == figure.text().rstrip() == str(figure).rstrip()
    tags = Tags()
    tags.feed(bundle["text/html"])
    assert tags.seen <= {"img", "details", "summary", "table", "caption", "thead", "tbody", "tr", "th", "td"}
    (alternative,) = tags.alternatives
    assert alternative.startswith(clean(figure.title))


def test_hostile_words_are_shown_as_words():
    figure = FIGURES["timeline-names"]
    svg = figure.svg()
    assert "<script" not in svg and "<script" not in figure.bundle()["text/html"] and "\x00" not in svg + figure.text()
    assert "\u202e" not in svg + figure.text()
    assert ElementTree.fromstring(svg).find(f"{SVG}title").text.startswith('"/></title><script>')


def test_both_ends_of_a_long_name_are_shown():
    text = FIGURES["timeline-names"].text()
    assert LONG not in text.partition("\n")[2] and "model.layers.17" in text and "attention.weight" in text


@pytest.mark.parametrize("name", [name for name in FIGURES if hasattr(FIGURES[name], "plotly")])
def test_plotly_has_a_bounded_figure_of_it(name):
    made = FIGURES[name].plotly().to_plotly_json()
    points = sum(len(trace.get("x", ())) for trace in made["data"])
    assert points <= 12_000
    assert "<script" not in str(made)


def test_a_source_is_asked_for_and_checked():
    for make in (plots.timeline, plots.bytes_per_parameter):
        with pytest.raises(TypeError, match="source"):
            make({})
        with pytest.raises(ValueError, match=r"'guessed': say where the figures are from, one of 'measured', 'predicted'"):
            make({}, source="guessed")


def test_pictures_need_neither_torch_nor_plotly_nor_widgets():
    script = """
import sys
for missing in ("torch", "plotly", "ipywidgets", "anywidget", "IPython"):
    sys.modules[missing] = None
from offload_lab import plots
from offload_lab.trace import Event
print(plots.timeline([Event("update", "cpu", 0, 0.0, 1.0, 0)], source="predicted"))
try:
    from offload_lab import OffloadAdamW
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)
    assert "Predicted: 1 task on 1 partition in 1 s." in done.stdout
    assert "offload_lab.OffloadAdamW needs torch, which is not installed" in done.stdout


# Looks


@pytest.mark.parametrize("known", [LANES, KINDS])
def test_looks_differ_by_more_than_colour(known):
    looks = list(known.values())
    assert len({(look.colour, look.hatch) for look in looks}) == len(looks)
    for look in (*looks, OTHER):
        bright, dim = sorted((luminance(look.colour), luminance(ink_on(look.colour))), reverse=True)
        assert (bright + 0.05) / (dim + 0.05) >= 4.5, look


def test_luminance_is_that_of_wcag():
    assert luminance("#000000") == 0 and luminance("#ffffff") == pytest.approx(1)
    assert luminance("#ff0000") == pytest.approx(0.2126)
    assert luminance("#808080") == pytest.approx(0.2159, abs=1e-4)  # ((128 / 255 + 0.055) / 1.055) ** 2.4


def test_unknown_names_get_looks_of_their_own():
    names = [f"lane {n}" for n in range(7)]
    styles = styles_of(["cpu", *names, "disk-read"], LANES)
    assert list(styles) == ["disk-read", "cpu", *names]
    assert len({(style.colour, style.hatch) for style in styles.values()}) == 9


# Letters


def test_text_is_cut_to_its_room_and_keeps_both_ends():
    assert cut("abc", 100, 12) == "abc"
    short = cut(LONG, 120, 12)
    assert width_of(short, 12) <= 120 and short.startswith("model") and short.endswith("ght") and "…" in short
    assert cut(LONG, 1, 12) == "…"
    assert named("a\nb  c") == "a b c" and named("") == "(no name)" and named(7) == "7"
    assert len(named("x" * 10_000)) == 72


def test_words_are_wrapped_and_the_rest_is_cut():
    rows = wrapped("one two three four five six", 60, 12, rows=2)
    assert rows[0] == "one two" and len(rows) == 2 and "…" in rows[1] and rows[1][-1] == "x"
    assert all(width_of(row, 12) <= 60 for row in rows)
    assert wrapped("", 60, 12) == []


def test_a_table_lines_up_for_the_eye_and_has_headers_for_the_ear():
    table = Table("Lanes", ("lane", "busy"), [("日本", "1 s"), ("<b>", "10 ms")])
    assert table.text() == "Lanes:\nlane   busy\n日本    1 s\n<b>   10 ms"
    assert table.html().count('scope="row"') == 2 and table.html().count('scope="col"') == 2 and "&lt;b&gt;" in table.html()
