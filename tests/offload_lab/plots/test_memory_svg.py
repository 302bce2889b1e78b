"""The picture and its text twin: they say what the readings say, to everybody."""

import itertools
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offload_lab.meter import Reading
from offload_lab.plots import MemoryPlot, memory_svg, memory_text
from offload_lab.plots.palette import DARK, DISK, LIGHT, STACK
from offload_lab.plots.scale import spread, thinned, ticks
from offload_lab.plots.svg import HEIGHT_WITH_DISK, TOP
from offload_lab.state_bytes import readable

SVG = "{http://www.w3.org/2000/svg}"
MB = 10**6
ADAMW = [
    Reading(1.0, 50 * MB, 0, 0, 0, 0, 300 * MB),
    Reading(2.0, 50 * MB, 50 * MB, 0, 0, 31 * MB, 400 * MB),
    Reading(3.5, 50 * MB, 50 * MB, 234 * MB, 0, 12 * MB, 640 * MB),
    Reading(4.0, 50 * MB, 0, 234 * MB, 0, 0, 600 * MB),
]
DISKED = [
    Reading(0.0, 50 * MB, 0, 32 * MB, 480 * MB, 0, 300 * MB),
    Reading(9.0, 50 * MB, 50 * MB, 32 * MB, 490 * MB, 0, 310 * MB),
]
BOTH = {"AdamW": ADAMW, "OffloadAdamW disk": DISKED}


def drawn(*arguments, **options):
    return ElementTree.fromstring(memory_svg(*arguments, **options))


def texts(svg):
    return [element.text for element in svg.iter(f"{SVG}text")]


def test_it_is_an_image_with_a_name_and_a_description():
    svg = drawn(BOTH, title="Where it went", limit_bytes=302 * MB, notes={"AdamW": "out of memory in step 1"})
    assert svg.tag == f"{SVG}svg" and svg.get("role") == "img"
    by_id = {element.get("id"): element for element in svg.iter()}
    title, description = (by_id[name].text for name in svg.get("aria-labelledby").split())
    assert title == "Where it went"
    assert description == memory_text(BOTH, limit_bytes=302 * MB, notes={"AdamW": "out of memory in step 1"})
    assert not [e for e in svg.iter() if e.tag.split("}")[1] in {"script", "image", "foreignObject", "a"}]
    assert "http" not in memory_svg(BOTH, title="x").replace("http://www.w3.org/2000/svg", "")


def test_the_text_says_what_the_readings_say():
    text = memory_text(BOTH, title="T", limit_bytes=302 * MB, prediction_bytes=100 * MB, notes={"AdamW": "out of memory"})
    assert text.splitlines() == [
        "T",
        "AdamW (out of memory): at most 346 MB in RAM, after 2.5 s: weights 50 MB, gradients 50 MB, optimizer state 234 MB, "
        "activations 12 MB. Nothing on disk. The whole process, with Python and its libraries: at most 640 MB.",
        "OffloadAdamW disk: at most 132 MB in RAM, after 9.0 s: weights 50 MB, gradients 50 MB, optimizer state 32 MB. "
        "On disk, not in RAM: optimizer state, at most 490 MB. "
        "The whole process, with Python and its libraries: at most 310 MB.",
        "Limit on memory: 302 MB.",
        "Your prediction: 100 MB.",
    ]
    one = memory_text({"AdamW": ADAMW}, prediction_bytes=100 * MB)
    assert one.endswith("Your prediction: 100 MB; measured: 346 MB, 3.5 times that.")


def test_the_picture_names_kinds_and_figures_beside_the_colours():
    words = texts(drawn(BOTH, title="T", limit_bytes=302 * MB, prediction_bytes=100 * MB, notes={"AdamW": "out of memory"}))
    for word in ("weights", "gradients", "optimizer state", "activations", "on disk", "limit 302 MB", "your prediction 100 MB"):
        assert word in words
    for figure in (50, 234, 12, 346, 490, 132):
        assert f"{figure} MB" in words
    assert "out of memory" in words
    assert "on disk" not in texts(drawn({"AdamW": ADAMW}, title="T"))


def heights(svg, kind):
    """From the highest to the lowest point of each area of a kind, in units of the picture."""
    shapes = [e.get("d") for e in svg.iter(f"{SVG}path") if (e.get("fill") or "").endswith(f"-{kind})")]
    ys = [[float(y) for y in re.findall(r",(-?[\d.]+)", shape)] for shape in shapes]
    return [(min(row), max(row)) for row in ys]


def test_areas_are_stacked_on_one_shared_scale_and_the_disk_lies_below():
    svg = drawn(BOTH, title="T")
    (first, second) = heights(svg, "weights")
    assert first == pytest.approx(second, abs=0.11)
    ((zero, bottom),) = heights(svg, "optimizer_disk")
    assert bottom == pytest.approx(TOP + HEIGHT_WITH_DISK, abs=15)
    unit = (bottom - zero) / 490
    assert first == pytest.approx((zero - 50 * unit, zero), abs=0.2)
    assert heights(svg, "activations")[0][0] == pytest.approx(zero - 346 * unit, abs=0.2)


def test_every_kind_has_a_hatch_or_none_of_its_own_and_a_colour_of_its_own():
    styles = [*STACK, DISK]
    for of in ("label", "colour", "hatch", "plotly"):
        assert len({getattr(style, of) for style in styles}) == len(styles), of


def luminance(colour):
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", [LIGHT, DARK])
@pytest.mark.parametrize("role", ["ink", "faint"])
def test_text_can_be_read_in_both_themes(theme, role):
    bright, dim = sorted((luminance(theme.background), luminance(getattr(theme, role))), reverse=True)
    assert (bright + 0.05) / (dim + 0.05) >= 4.5


def test_every_text_has_one_of_the_colours_that_were_tested():
    svg = drawn(BOTH, title="T", limit_bytes=302 * MB, prediction_bytes=100 * MB)
    shown = [e for e in svg.iter(f"{SVG}text") if e.get("class") != "halo"]
    assert {(e.get("class"), e.get("fill")) for e in shown} == {("ink", LIGHT.ink), ("faint", LIGHT.faint)}
    assert "prefers-color-scheme: dark" in svg.find(f"{SVG}style").text


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=200))
def test_any_title_name_and_note_is_only_ever_text(title, name, note):
    svg = drawn({name: ADAMW}, title=title, notes={name: note})
    assert len(list(svg.iter(f"{SVG}title"))) == 1
    known = {"svg", "title", "desc", "style", "defs", "pattern", "rect", "path", "text"}
    assert {element.tag.removeprefix(SVG) for element in svg.iter()} <= known


def test_hostile_words_stay_words():
    bad = '"/></title><script>alert(1)</script>\x00\ud800'
    plot = MemoryPlot({bad: ADAMW}, title=bad, notes={bad: bad})
    assert drawn({bad: ADAMW}, title=bad).find(f"{SVG}title").text.startswith('"/></title><script>')
    html = plot.bundle(remark="<b>")["text/html"]
    assert "<script" not in html and "&lt;b&gt;" in html and html.count("<img") == 1


def test_two_pictures_on_a_page_share_no_name_and_the_same_data_is_the_same_file():
    one, other = memory_svg(BOTH, title="one"), memory_svg(BOTH, title="other")
    names = [set(re.findall(r' id="([^"]+)"', svg)) for svg in (one, other)]
    assert names[0] and not names[0] & names[1]
    assert one == memory_svg(BOTH, title="one")
    assert set(re.findall(r"url\(#([^)]+)\)", one)) <= names[0]


@pytest.mark.parametrize("readings", [[], ADAMW[:1], [Reading(1.0, 0, 0, 0, 0, 0, 0)] * 3, [ADAMW[0], ADAMW[0]]])
def test_little_or_nothing_to_draw(readings):
    svg = drawn({"AdamW": readings}, title="T", limit_bytes=0)
    assert not any("nan" in value or "inf" in value for e in svg.iter() for value in e.attrib.values())
    assert ("nothing was measured" in texts(svg)) == (not readings)


def test_no_series_is_refused():
    with pytest.raises(ValueError, match="no series"):
        memory_svg({}, title="T")


def test_a_long_run_is_no_larger_picture_and_keeps_its_peak():
    long = [Reading(n / 100, 50 * MB, 0, 0, 0, MB * (200 if n == 7777 else n % 7), 0) for n in range(20_000)]
    assert len(memory_svg({"AdamW": long}, title="T")) < 60_000
    kept = thinned(long, 100)
    assert len(kept) <= 202 and kept[0] is long[0] and kept[-1] is long[-1] and long[7777] in kept
    assert [r.seconds for r in kept] == sorted(r.seconds for r in kept)
    assert "250 MB" in texts(drawn({"AdamW": long}, title="T"))


@given(st.floats(1e-3, 1e15))
def test_ticks_are_round_few_and_reach_the_end(largest):
    values = ticks(largest)
    assert values[0] == 0 and 2 <= len(values) <= 11 and values[-1] <= largest * (1 + 1e-6)
    assert largest - values[-1] < values[1] * (1 + 1e-6)
    assert f"{values[1]:.0e}"[0] in "125"


@given(st.lists(st.floats(0, 300), max_size=6))
def test_labels_do_not_cover_each_other(wanted):
    placed = spread(sorted(wanted), 31, 0, 300)
    assert all(later - earlier >= 31 - 1e-6 for earlier, later in itertools.pairwise(placed))
    assert all(-1e-6 <= position <= 300 + 1e-6 for position in placed)


def test_a_picture_shows_itself_in_a_notebook_and_in_a_terminal():
    plot = MemoryPlot(BOTH, title="T", limit_bytes=302 * MB)
    bundle = plot._repr_mimebundle_()
    assert set(bundle) == {"text/html", "image/svg+xml", "text/plain"}
    assert bundle["text/plain"] == plot.text() == str(plot)
    assert f"Limit on memory: {readable(302 * MB)}." in bundle["text/html"]
    assert ElementTree.fromstring(bundle["image/svg+xml"]).get("role") == "img"
