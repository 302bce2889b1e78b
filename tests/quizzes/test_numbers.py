"""Numbers as people type them, in three locales; every expected value written by hand."""

from fractions import Fraction as F

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quizzes.numbers import Ambiguous, NotANumber, read, render
from quizzes.units import EXAMPLES

ASK, NO = "asked back", "refused"
# what is typed, unit, en, fr, ko
TABLE = [
    ("5", "count", 5, 5, 5),
    ("+5", "count", 5, 5, 5),
    ("-5", "count", -5, -5, -5),
    ("\u22125", "count", -5, -5, -5),
    ("\uff0d5", "count", -5, -5, -5),
    ("\ufe635", "count", -5, -5, -5),
    ("\u30fc5", "count", -5, -5, -5),
    ("\u20135", "count", -5, -5, -5),
    ("0,5", "count", F(1, 2), F(1, 2), F(1, 2)),
    ("0.5", "count", F(1, 2), F(1, 2), F(1, 2)),
    (".5", "count", F(1, 2), F(1, 2), F(1, 2)),
    (",5", "count", F(1, 2), F(1, 2), F(1, 2)),
    ("2,75", "count", F(11, 4), F(11, 4), F(11, 4)),
    ("1,234", "count", 1234, ASK, 1234),
    ("\uff11\uff0c\uff12\uff13\uff14", "count", 1234, ASK, 1234),
    ("1,234,567", "count", 1234567, 1234567, 1234567),
    ("1,234.5", "count", F(2469, 2), F(2469, 2), F(2469, 2)),
    ("1.234,5", "count", F(2469, 2), F(2469, 2), F(2469, 2)),
    ("1 234,5", "count", F(2469, 2), F(2469, 2), F(2469, 2)),
    ("1\u00a0234,5", "count", F(2469, 2), F(2469, 2), F(2469, 2)),
    ("1\u202f234,5", "count", F(2469, 2), F(2469, 2), F(2469, 2)),
    ("1\u2009234,5", "count", F(2469, 2), F(2469, 2), F(2469, 2)),
    ("1'234.5", "count", F(2469, 2), F(2469, 2), F(2469, 2)),
    ("\uff11\uff12\uff0e\uff15", "count", F(25, 2), F(25, 2), F(25, 2)),
    ("\u0661\u0662", "count", 12, 12, 12),
    ("\u0661\u066b\u0665", "count", F(3, 2), F(3, 2), F(3, 2)),
    ("5\u200b", "count", 5, 5, 5),
    ("5\u00a0", "count", 5, 5, 5),
    ("1e-8", "count", F(1, 10**8), F(1, 10**8), F(1, 10**8)),
    ("1E\u22128", "count", F(1, 10**8), F(1, 10**8), F(1, 10**8)),
    ("1,5e3", "count", 1500, 1500, 1500),
    ("3 × 10^9", "count", 3 * 10**9, 3 * 10**9, 3 * 10**9),
    ("1/2", "count", F(1, 2), F(1, 2), F(1, 2)),
    ("1/0", "count", NO, NO, NO),
    ("1/2/3", "count", NO, NO, NO),
    ("1//2", "count", NO, NO, NO),
    ("1.2.3", "count", NO, NO, NO),
    ("1 2", "count", NO, NO, NO),
    ("nan", "count", NO, NO, NO),
    ("inf", "count", NO, NO, NO),
    ("", "count", NO, NO, NO),
    ("7 billion", "count", 7 * 10**9, 7 * 10**9, 7 * 10**9),
    ("40 %", "percent", 40, 40, 40),
    ("40\u202f%", "percent", 40, 40, 40),
    ("40", "percent", 40, 40, 40),
    ("40 %", "ratio", F(2, 5), F(2, 5), F(2, 5)),
    ("$12.50", "dollars", F(25, 2), F(25, 2), F(25, 2)),
    ("12 GB", "bytes", 12 * 10**9, 12 * 10**9, 12 * 10**9),
    ("12 Go", "bytes", 12 * 10**9, 12 * 10**9, 12 * 10**9),
    ("12 GiB", "bytes", 12 * 2**30, 12 * 2**30, 12 * 2**30),
    ("12 Gio", "bytes", 12 * 2**30, 12 * 2**30, 12 * 2**30),
    ("2,5 Go", "bytes", 25 * 10**8, 25 * 10**8, 25 * 10**8),
    ("12 Gb", "bytes", NO, NO, NO),
    ("3 octets", "bytes", 3, 3, 3),
    ("20 ms", "seconds", F(1, 50), F(1, 50), F(1, 50)),
    ("5 µs", "seconds", F(1, 200000), F(1, 200000), F(1, 200000)),
    ("5 \u03bcs", "seconds", F(1, 200000), F(1, 200000), F(1, 200000)),
    ("3 min", "seconds", 180, 180, 180),
    ("2 h", "seconds", 7200, 7200, 7200),
    ("3.5 GB/s", "bytes_per_second", 35 * 10**8, 35 * 10**8, 35 * 10**8),
    ("3,5 Go/s", "bytes_per_second", 35 * 10**8, 35 * 10**8, 35 * 10**8),
    ("3 GiB/s", "bytes_per_second", 3 * 2**30, 3 * 2**30, 3 * 2**30),
    ("3 GB", "bytes_per_second", NO, NO, NO),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row[0]!r} {row[1]}")
def test_every_form_in_three_locales(row):
    text, unit, *expected = row
    for locale, value in zip(("en", "fr", "ko"), expected, strict=True):
        if value in (ASK, NO):
            with pytest.raises(Ambiguous if value == ASK else NotANumber) as caught:
                read(text, unit, locale)
            assert isinstance(caught.value, Ambiguous) == (value == ASK) and str(caught.value)
        else:
            assert read(text, unit, locale).value == value, locale


def test_a_group_is_noted_where_it_is_read_as_one():
    assert read("1,234", "count", "en").note == "1,234 was read as 1234" and not read("1234", "count", "en").note


@given(st.text(alphabet=st.sampled_from("0123456789.,/-+eE xX^*%$'_GMkiBos\u2212\u30fc\u00a0\u0661\uff11"), max_size=20))
def test_nothing_but_not_a_number_is_raised(text):
    for unit in EXAMPLES:
        for locale in ("en", "fr", "ko"):
            try:
                read(text, unit, locale)
            except NotANumber as error:
                assert str(error)


@given(st.text(), st.text(max_size=5))
def test_no_text_and_no_locale_breaks_it(text, locale):
    try:
        read(text, "bytes", locale)
    except NotANumber as error:
        assert str(error)


@given(st.integers(-(10**12), 10**12), st.sampled_from(["en", "ko", "fr"]))
def test_what_is_rendered_is_read_back_in_its_locale(number, locale):
    assert read(render(number, locale), "count", locale).value == number
