"""Names in PNG and PDF: every letter drawn as itself, or said not to be; never an empty box, never over the edge."""

from __future__ import annotations

import io
import shutil
import subprocess
import unicodedata
from datetime import UTC, datetime
from html import escape

import pytest

from quizzes.certificates import badge, badge_layout, badge_png, credential, faces, fonts, names, pdf, text
from tests.certificates.issuing_place import signed

pytest.importorskip("PIL", reason="Pillow comes with the extra certificates")
pytest.importorskip("fpdf", reason="fpdf2 comes with the extra certificates")
NOW = datetime(2026, 6, 1, tzinfo=UTC)

DRAWN = {
    "precomposed accents": "Nguyễn Thị Ánh Tuyết Zoë Łukasz Dvořák",
    "accents as marks": unicodedata.normalize("NFD", "Zoë Dvořák Nguyễn"),
    "Hangul": "김민준 뷁 힣",
    "Hangul in parts": unicodedata.normalize("NFD", "김민준 뷁 힣"),
    "Greek": "Αλέξης Ελύτης",
    "Cyrillic": "Щербакова Юлия Ёжикова",
    "Han and kana": "山田 太郎 やまだ ヤマダ",
    "marks of punctuation": "O’Neil-Müller, “Jr.” & <b>Co</b> №1 €",
}
REFUSED = {
    "a mark without a letter of its own": ("Ẹ\u0301gbẹ\u0301", "U+0301 (COMBINING ACUTE ACCENT) has to be placed"),
    "Thai": ("สมชาย", "belongs to a script"),
    "Thai without marks": ("กมล", "belongs to a script"),
    "Devanagari": ("राम", "belongs to a script"),
    "Devanagari without marks, for which there is a font": ("कमल", "belongs to a script"),
    "Arabic": ("محمد", "belongs to a script"),
    "Hebrew": ("דוד", "belongs to a script"),
    "Mongolian": ("ᠮᠣᠩ", "belongs to a script"),
    "old Hangul": ("\u1112\u119e\u11ab", "only works together"),
    "a flag": ("🇰🇷", "only works together"),
    "a joined emoji": ("Z\u200dw", "only works together"),
    "a skin colour": ("x🏽", "only works together"),
    "an emoji's other look": ("❤\ufe0f", "U+FE0F"),
    "private use": ("\ue000", "belongs to a script"),
    "not yet assigned": ("\u0378", "belongs to a script"),
    "a script of Egypt": ("𓀀", "belongs to a script"),
}
LONGEST = {
    "widest": "W" * 100,
    "wide words": "MWMWMWMWMW " * 9,
    "Han": "寒" * 100,
    "Cyrillic": "Щ" * 100,
    "one long word": "Wolfeschlegelsteinhausenbergerdorff" * 2 + "w" * 30,
}


def made(private, name, **more):
    return signed(private, 5, NOW, name=names.tidy(name), **more)


@pytest.mark.parametrize("what", DRAWN)
def test_each_letter_has_a_glyph_of_its_own(private, what):
    if what.startswith("H") and not any("KR" in path.name or "Nanum" in path.name for path in fonts.available()):
        pytest.skip("no Korean font here; it comes with the extra certificates")
    name = names.tidy(DRAWN[what])
    secured = made(private, name)
    assert escape(name) in badge.render(secured).decode()
    for path, piece in fonts.runs(name):
        font = badge_png._font(path, 52)
        box = bytes(font.getmask("\U0010ffff"))  # what the font shows for what it lacks
        for symbol in piece.replace(" ", ""):
            assert unicodedata.combining(symbol) == 0
            glyph = font.getmask(symbol)
            assert glyph.getbbox() is not None and bytes(glyph) != box, (symbol, path)


def test_a_name_is_the_same_however_its_accents_are_typed():
    for name in DRAWN.values():
        assert names.tidy(unicodedata.normalize("NFD", name)) == unicodedata.normalize("NFC", name)


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_set_right_is_said_and_not_drawn(private, what):
    name, why = REFUSED[what]
    secured = made(private, name)
    assert badge.render(secured)  # the browser sets it
    for face in ("png", "pdf"):
        with pytest.raises(fonts.FontError) as raised:
            faces.render(face, secured, now=NOW)
        assert why in str(raised.value) and "SVG" in str(raised.value)
    # The small badge shows no name, so it is made.
    assert faces.render("badge", secured, now=NOW)


def test_a_font_that_lacks_a_letter_is_said():
    [latin] = [path for path in fonts.available() if path.name.startswith(("NotoSans[", "NotoSans-"))][:1] or [None]
    if latin is None:
        pytest.skip("no Noto Sans here; it comes with the extra certificates")
    with pytest.raises(fonts.FontError, match=r"No font here draws “寒” \(U\+5BD2"):
        fonts.runs("Ada 寒", (latin,))


@pytest.mark.parametrize("what", LONGEST)
def test_the_longest_names_stay_inside_the_frame(private, what):
    image = pytest.importorskip("PIL.Image")
    name = LONGEST[what].strip()
    secured = made(private, name, title=name)
    with image.open(io.BytesIO(badge_png.draw(secured))) as picture:
        pixels = picture.convert("L")
        scale = badge_png.SCALE
        inside = badge_layout.FRAMES[1][0] + 4
        for left in (inside, badge_layout.WIDTH - 70):
            strip = pixels.crop((left * scale, inside * scale, (left + 70 - inside) * scale, 740 * scale))
            assert strip.getextrema() == (255, 255), left
        # Name and achievement are there, and the QR code below is not touched.
        assert pixels.crop((70 * scale, 180 * scale, 1050 * scale, 300 * scale)).getextrema()[0] < 100
        left, top, side = (round(value * scale) for value in badge_layout.QR)
        assert pixels.crop((left - 20, top, left, top + side)).getextrema() == (255, 255)


def test_a_line_that_was_estimated_too_narrow_is_set_smaller(private, monkeypatch):
    monkeypatch.setattr(text, "most_width", lambda content: len(content) / 20)
    test_the_longest_names_stay_inside_the_frame(private, "widest")


@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="pdftotext reads the PDF; on Debian it is in poppler-utils")
@pytest.mark.parametrize("name", [*DRAWN.values(), LONGEST["widest"], LONGEST["Han"]])
def test_a_pdf_says_the_name_and_keeps_it_on_the_sheet(private, tmp_path, name):
    name = names.tidy(name)
    (tmp_path / "a.pdf").write_bytes(pdf.render(made(private, name, title=name)))

    def read(*options):
        command = ["pdftotext", *options, tmp_path / "a.pdf", "-"]
        return subprocess.run(command, capture_output=True, check=True, timeout=120).stdout.decode()

    assert name.replace(" ", "") in "".join(read("-raw").split())
    ends = [float(part.split('"')[0]) for part in read("-bbox").split('xMax="')[1:]]
    points = 72 / 25.4 * 297 / badge_layout.WIDTH
    assert ends and max(ends) <= (badge_layout.WIDTH - 60) * points


@pytest.mark.parametrize("face", list(faces.SUFFIXES))
def test_a_face_is_drawn_the_same_twice(private, face):
    secured = made(private, DRAWN["precomposed accents"])
    assert faces.render(face, secured, now=NOW) == faces.render(face, secured, now=NOW)


def test_the_table_of_widths_is_in_order():
    starts = [start for start, _ in text.WIDTHS["ranges"]]
    assert starts == sorted(set(starts)) and starts[0] == 0
    symbols = "".join(text.WIDTHS["symbols"].values())
    assert len(symbols) == len(set(symbols))
    assert text.most_width("W") == pytest.approx(1.1) and text.most_width("il") == 1.0 and text.most_width("김") == 1.0


def test_the_widths_are_not_exceeded_by_the_fonts_here():
    """By the advance widths that stand in the fonts themselves."""
    bold = [path.with_name("DejaVuSans-Bold.ttf") for path in fonts.available() if path.name == "DejaVuSans.ttf"]
    if not bold or not bold[0].exists():
        pytest.skip("no DejaVu Sans Bold here; on Debian it is in fonts-dejavu-core")
    from fontTools.ttLib import TTFont

    with TTFont(bold[0]) as font:
        characters, advances, units = font.getBestCmap(), font["hmtx"], font["head"].unitsPerEm
        wide = {
            chr(number): (advances[glyph][0] / units, text.most_width(chr(number)))
            for number, glyph in characters.items()
            if 0x20 <= number < 0x530 or 0x1E00 <= number < 0x2030
        }
    exceeded = {symbol: found for symbol, found in wide.items() if found[0] > found[1] + 0.1}
    assert exceeded == {}


def test_the_longest_name_is_taken_and_a_longer_one_is_not(private):
    made(private, "W" * credential.LONGEST_NAME)
    with pytest.raises(ValueError, match="100"):
        badge.render(made(private, "W" * (credential.LONGEST_NAME + 1)))
