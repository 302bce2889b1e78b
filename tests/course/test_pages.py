"""A notebook that was run, as a page: each kind of output, widgets without a kernel, nothing of the machine."""

import base64

import nbformat.v4 as v4
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course import links, pages, published, scrubbed, still

SVG = "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 1 1'></svg>"


def page(*outputs, source="x", widgets=None):
    cell = v4.new_code_cell(source, id="one", outputs=list(outputs))
    return pages.content(v4.new_notebook(cells=[cell]), widgets or {}, str)


def shown(**data):
    return v4.new_output("display_data", data={name.replace("_", "/"): value for name, value in data.items()})


def printed(text, name="stdout"):
    return v4.new_output("stream", name=name, text=text)


def widget(kind, **state):
    return {"model_name": kind, "state": state}


def test_what_is_printed_in_several_goes_is_one_text_and_standard_error_is_left_out():
    body = page(printed("a <b>\n"), printed("compiling", "stderr"), printed("c\n"))
    assert "a &lt;b&gt;\nc</pre>" in body and "compiling" not in body
    assert page(printed(" \n"), source="") == '<section class="cell" id="cell-one"></section>'


def test_the_richest_form_is_shown_and_every_picture_has_words():
    assert "<b>rich</b>" in page(shown(text_html="<b>rich</b>", text_plain="plain"))
    body = page(v4.new_output("execute_result", data={"image/svg+xml": SVG, "text/plain": 'A "figure"'}))
    assert f'src="data:image/svg+xml;base64,{base64.b64encode(SVG.encode()).decode()}"' in body
    assert 'alt="A &quot;figure&quot;"' in body and links.faults({"a.html": body}, ()) == []
    (said,) = links.faults({"a.html": page(shown(image_png="AAAA", text_plain="<Figure size 1x1 with 0 Axes>"))}, ())
    assert "alternative text" in said
    assert "<strong>m</strong>" in page(shown(text_markdown="**m**"))


def test_what_cannot_be_shown_is_refused_with_its_cell():
    plot = {"application/vnd.plotly.v1+json": {}}
    with pytest.raises(pages.PageError, match=r"cell one shows application/vnd\.plotly"):
        page(v4.new_output("display_data", data=plot))
    with pytest.raises(pages.PageError, match=r"cell one: .* kind FigureModel"):
        page(view("a"), widgets={"a": widget("FigureModel")})
    with pytest.raises(pages.PageError, match="cell one: the widget b"):
        page(view("a"), widgets={"a": widget("VBoxModel", children=["IPY_MODEL_b"])})
    with pytest.raises(pages.PageError, match="cell one ended with ValueError"):
        page(v4.new_output("error", ename="ValueError", evalue="secret", traceback=["secret"]))


def view(name, **more):
    return v4.new_output("display_data", data={still.MIME: {"model_id": name}, "text/plain": "VBox(children=(…", **more})


def test_widgets_are_read_without_a_kernel():
    widgets = {
        "box": widget(
            "VBoxModel", children=[f"IPY_MODEL_{name}" for name in ("style", "asked", "a", "b", "sure", "text", "go")]
        ),
        "style": widget("HTMLModel", value="<style>.x { color: red }</style>"),
        "asked": widget("HTMLModel", value="<p>Which <b>one</b>?</p>"),
        "a": widget("CheckboxModel", description="a) <this>", value=True),
        "b": widget("CheckboxModel", description="b) that", value=False),
        "sure": widget("DropdownModel", description="How sure?", _options_labels=["a guess", "sure & certain"]),
        "text": widget("TextModel", description="Your answer:", value="", placeholder="\u200b"),
        "go": widget("ButtonModel", description="Check"),
    }
    body = page(view("box"), widgets=widgets)
    assert "<p>Which <b>one</b>?</p>" in body and body.count("<ul class=") == 1
    assert "☑</span> a) &lt;this&gt;</li>" in body and "☐</span> b) that</li>" in body
    assert "<summary>How sure?</summary><ul><li>a guess</li><li>sure &amp; certain</li></ul>" in body
    for absent in ("VBox", "<style", "Check", "\u200b", "()"):
        assert absent not in body
    rich = page(view("box", **{"text/html": "<b>rich</b>"}), widgets={})
    assert "<b>rich</b>" in rich


def test_a_widget_that_holds_itself_ends():
    with pytest.raises(still.StillError):
        still.html({"a": widget("VBoxModel", children=["IPY_MODEL_a"])}, "a")


def test_links_tables_and_headings_of_a_text():
    text = v4.new_markdown_cell("# A head\n\n[b](b.ipynb#c) | [d](#A-head)\n\n|x|\n|-|\n|1|\n\n`<i>`", id="two")
    body = pages.content(v4.new_notebook(cells=[text]), {}, lambda link: link.replace(".ipynb", ".html"))
    assert 'href="b.html#c"' in body and 'id="A-head"' in body and '<div class="wide"' in body and "<code>&lt;i&gt;" in body


def test_a_frame_says_title_language_and_where_to_go_on():
    frame = pages.Frame(
        "2 · <Adam>", "fr", "What & why", pages.Link("1.html", "One"), pages.Link("3.html", "Three"), "As it ran.", "n/2.ipynb"
    )
    whole = pages.page('<h2 id="a">A</h2><h2 id="b">B</h2><h2 id="c">C &amp; D</h2>', frame)
    assert '<html lang="fr">' in whole and "<title>2 · &lt;Adam&gt; – Offload Lab</title>" in whole
    assert 'rel="prev" href="1.html"' in whole and 'rel="next" href="3.html"' in whole and '<a href="#c">C &amp; D</a>' in whole
    others = {"1.html", "3.html", "n/2.ipynb", "index.html", "glossary.html", "site.css"}
    assert links.faults({"2.html": whole}, others) == []


def test_nothing_of_the_machine_is_shown():
    known = scrubbed.of_this_machine({"/tmp/lesson-x1": "~/course"}) | {"/people/zoë": "~", "/people/zoë/lab": "~/offload-lab"}
    known = dict(sorted(known.items(), key=lambda pair: -len(pair[0])))
    cell = v4.new_code_cell(
        "open('/tmp/lesson-x1')", id="one", outputs=[printed("in /tmp/lesson-x1/state: /people/zoë/lab, /people/zoë")]
    )
    cell.outputs.append(shown(text_html="<p>/people/zoë&#47;</p>", text_plain=published.__file__))
    notebook, widgets = v4.new_notebook(cells=[cell]), {"a": widget("HTMLModel", value="/tmp/lesson-x1", width=3)}
    scrubbed.scrub(notebook, widgets, known)
    assert cell.outputs[0].text == "in ~/course/state: ~/offload-lab, ~" and cell.source == "open('/tmp/lesson-x1')"
    assert cell.outputs[1].data["text/plain"] == "~/offload-lab/course/published.py"
    assert widgets["a"]["state"] == {"value": "~/course", "width": 3}


@given(
    st.lists(st.sampled_from(["/people/me", "/people/me/lab", "/people/mean", "x/people/me", " ", "/", "."]), max_size=6).map(
        "".join
    )
)
def test_a_folder_is_replaced_where_it_stands_alone(text):
    new = scrubbed.scrubbed(text, {"/people/me/lab": "L", "/people/me": "H"})
    # The oracle reads from left to right.
    told, place = "", 0
    while place < len(text):
        fit = next((each for each in ("/people/me/lab", "/people/me") if alone(text, place, each)), None)
        told += {"/people/me/lab": "L", "/people/me": "H"}[fit] if fit else text[place]
        place += len(fit) if fit else 1
    assert new == told


def alone(text, place, each):
    before, after = text[place - 1 : place], text[place + len(each) : place + len(each) + 1]
    return text.startswith(each, place) and not (before.isalnum() or before == ".") and not after.isalnum()


FILES = {"index.html": b"new", "deep/er/a.txt": b"x"}


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_folder_is_replaced_as_a_whole_and_by_nothing_else(tmp_path):
    folder = tmp_path / "s ité" / "site"
    published.publish({"index.html": b"old", "gone.html": b""}, folder)
    published.publish(FILES, folder)
    assert names(folder) == [published.MARK, "deep/er/a.txt", "index.html"]
    assert [path.name for path in folder.parent.iterdir()] == ["site"], "nothing is left beside it"


@pytest.mark.parametrize("there", ["a file", "a folder", "a link to nowhere", "below a file"])
def test_what_somebody_else_has_made_is_left_alone(tmp_path, there):
    folder = tmp_path / "site"
    if there == "a folder":
        folder.mkdir()
        (folder / "index.html").write_text("mine")
    elif there == "a link to nowhere":
        folder.symlink_to(tmp_path / "gone")
    else:
        folder.write_text("mine")
    folder = folder / "below" if there == "below a file" else folder
    with pytest.raises(published.FolderError, match="site") as refused:
        published.publish(FILES, folder)
    assert "--to" in str(refused.value)
    assert there != "a folder" or (folder / "index.html").read_text() == "mine"


@pytest.mark.parametrize("told", [".", "..", "below/.."])
def test_the_folder_that_one_stands_in_is_not_taken_away(tmp_path, monkeypatch, told):
    (tmp_path / "a" / "below").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a")
    for path in (tmp_path, tmp_path / "a"):  # ours, so that nothing else refuses it
        (path / published.MARK).touch()
    with pytest.raises(published.FolderError, match="cannot be replaced"):
        published.publish(FILES, published.Path(told))
    assert sorted(path.name for path in tmp_path.iterdir()) == [published.MARK, "a"]


def test_an_empty_folder_and_a_link_to_ours_are_taken(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "site").symlink_to("real")
    published.publish(FILES, tmp_path / "site")
    published.publish(FILES, tmp_path / "site")
    assert (tmp_path / "site").is_symlink() and (tmp_path / "real" / "index.html").read_bytes() == b"new"


@pytest.mark.parametrize("call", ["write_bytes", "rename"])
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_disk_that_refuses_leaves_the_old_pages(tmp_path, monkeypatch, call, nth):
    folder = tmp_path / "site"
    published.publish({"index.html": b"old"}, folder)
    whole, count = getattr(published.Path, call), [0]

    def refuse(path, *arguments):
        count[0] += 1
        if count[0] == nth:
            raise OSError(28, "No space left on device")
        return whole(path, *arguments)

    monkeypatch.setattr(published.Path, call, refuse)
    if call == "rename" and nth == 3:  # there are two
        return published.publish(FILES, folder)
    with pytest.raises(published.FolderError, match="No space left"):
        published.publish(FILES, folder)
    monkeypatch.undo()
    assert (folder / "index.html").read_bytes() == b"old" and names(folder) == [published.MARK, "index.html"]
    assert [path.name for path in tmp_path.iterdir()] == ["site"]
