"""What pages refer to: read, rewritten, and judged."""

import bs4
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course import links

HREFS = st.text(st.sampled_from("ab/.#%é &\"'<>?:"), min_size=1, max_size=8)
TEXTS = st.text(st.sampled_from("ab \n<>&;\"'é{}="), max_size=12)


@st.composite
def pages(draw):
    """Pages with links and pictures between texts that look like them."""
    parts = []
    for text, href, quote in draw(st.lists(st.tuples(TEXTS, HREFS, st.sampled_from("\"'")), max_size=5)):
        safe = text.replace("&", "&amp;").replace("<", "&lt;")
        value = href.replace("&", "&amp;").replace('"', "&quot;").replace("'", "&#39;")
        tag = draw(st.sampled_from(["a", "img", "code"]))
        name = {"a": "href", "img": "src", "code": "title"}[tag]
        close = "" if tag == "img" else f"</{tag}>"
        parts.append(f"{safe}\n<{tag} class={quote}x{quote} {name}={quote}{value}{quote}>{close}<pre>&lt;a href='no'></pre>")
    return "".join(parts)


def of(page, tag, name):
    """The oracle: another parser."""
    return [each[name] for each in bs4.BeautifulSoup(page, "html.parser").find_all(tag) if name in each.attrs]


@given(pages())
def test_links_and_pictures_are_those_that_another_parser_finds(page):
    read = links.read(page)
    assert read.led == of(page, "a", "href") and read.loaded == of(page, "img", "src")


@given(pages())
def test_rewriting_changes_links_and_nothing_else(page):
    assert links.rewritten(page, lambda link: link) == page
    new = links.rewritten(page, lambda link: link + "<&\"'>")
    assert of(new, "a", "href") == [link + "<&\"'>" for link in of(page, "a", "href")]
    assert of(new, "img", "src") == [link + "<&\"'>" for link in of(page, "img", "src")]
    back = links.rewritten(new, lambda link: link.removesuffix("<&\"'>"))
    assert bs4.BeautifulSoup(back, "html.parser") == bs4.BeautifulSoup(page, "html.parser")


SITE = {"index.html": '<h2 id="a b">x</h2>', "own folder/été.html": '<p id="%C3%A9">x</p>'}
FILES = {"pictures/p.svg", "own folder/q.png"}


@pytest.mark.parametrize(
    ("page", "inner"),
    [
        ("index.html", '<a href="#a%20b">x</a><a href="#a b">x</a><a href="">x</a>'),
        ("index.html", '<a href="own%20folder/%C3%A9t%C3%A9.html#%C3%A9">x</a>'),
        (
            "own folder/new.html",
            '<a href="../index.html#a%20b">x</a><img src="q.png" alt="x"><img src="../pictures/p.svg" alt="y">',
        ),
        ("own folder/new.html", '<a href="..">up</a>'.replace("..", "../")),
        (
            "new.html",
            '<a href="https://a.example/b?c=d#e">x</a><a href="mailto:a@b.example">x</a><a href="index.html?v=1">x</a>',
        ),
        (
            "new.html",
            '<img src="data:image/png;base64,AA" alt="x"><svg aria-hidden="true"></svg><p>onclick="x" &lt;script></p>',
        ),
    ],
)
def test_good_links(page, inner):
    held = {**SITE, page: SITE.get(page, "") + inner}
    assert links.faults(held, FILES) == []


@pytest.mark.parametrize(
    ("inner", "told"),
    [
        ('<a href="gone.html">x</a>', ["gone.html", "not there"]),
        ('<a href="Index.html">x</a>', ["Index.html", "not there"]),
        ('<a href="index.html#gone">x</a>', ["no id gone"]),
        ('<a href="#gone">x</a>', ["no id gone"]),
        ('<a href="/index.html">x</a>', ["leads to /index.html"]),  # the site may lie in any folder of a host
        ('<a href="../index.html">x</a>', ["../index.html"]),
        ('<a href="02.ipynb">x</a>', ["02.ipynb"]),
        ('<a href="javascript:alert(1)">x</a>', ["javascript:alert(1)"]),
        ('<a href="file:///etc/passwd">x</a>', ["file:///etc/passwd"]),
        ('<a href="http://localhost:8888/x">x</a>', ["localhost"]),
        ('<a href="https://a b.example/">x</a>', ["a b.example"]),
        ('<a href="https://a.example:port/">x</a>', ["port"]),
        ('<a href="//a.example/">x</a>', ["//a.example/"]),
        ('<img src="https://a.example/p.png" alt="x">', ["loaded from another host"]),
        ('<img src="//a.example/p.png" alt="x">', ["loaded from another host"]),
        ('<img srcset="pictures/p.svg 1x, HTTPS://a.example/p.png 2x" alt="x">', ["HTTPS://a.example/p.png"]),
        ('<link rel="stylesheet" href="https://a.example/s.css">', ["https://a.example/s.css"]),
        ("<style>@import 'https://a.example/s.css';</style>", ["https://a.example/s.css"]),
        ("<p style=\"background: url( 'https://a.example/p.png' )\">x</p>", ["https://a.example/p.png"]),
        ('<iframe src="https://a.example/">x</iframe>', ["https://a.example/"]),
        ('<script src="https://a.example/s.js"></script>', ["script"]),
        ("<script>fetch('//a.example')</script>", ["script"]),
        ('<p onclick="x()">x</p>', ["script"]),
        ('<base href="https://a.example/">', ["<base>"]),
        ('<meta http-equiv="Refresh" content="0; url=x">', ["<meta>"]),
        ('<img src="pictures/p.svg">', ["alternative text"]),
        ('<img src="pictures/p.svg" alt=" ">', ["alternative text"]),
        ('<svg viewBox="0 0 1 1"></svg>', ["alternative text"]),
        ('<img src="pictures/gone.svg" alt="x">', ["pictures/gone.svg"]),
        ('<p id="x"></p><p id="x"></p>', ["id x", "twice"]),
    ],
)
def test_each_fault_is_said_with_its_page(inner, told):
    (said,) = links.faults({**SITE, "new.html": inner}, FILES)
    assert said.startswith("new.html: ") and all(part in said for part in told), said


def test_a_style_sheet_loads_nothing_from_elsewhere():
    styles = {"s.css": "a { b: url(pictures/p.svg) } @font-face { src: url('https://a.example/f.woff2') }"}
    assert [said.split(": ")[0] for said in links.faults({}, FILES, styles)] == ["s.css"]


def test_headings_are_without_the_sign_of_their_link():
    page = links.read('<h2 id="a">A <code>b</code><a class="anchor-link" href="#a">¶</a></h2><p>c</p>')
    assert page.headings == [("h2", "a", "A b")]
