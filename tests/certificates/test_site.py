"""The static site: what is in it, that a rebuild changes nothing, and that it touches nothing else."""

from __future__ import annotations

import errno
import json
import re
import shutil
from html.parser import HTMLParser
from urllib.parse import parse_qs, urlsplit

import pytest

from quizzes.certificates import build_page, did_document, faces, identifier, keys, publish
from quizzes.certificates.registry import Registry
from quizzes.certificates.site import SUFFIXES
from tests.certificates.issuing_place import URL, issue, make_place, run
from tests.certificates.test_crash import forked, killed

HOSTILE = "</title><script>alert(1)</script><img src=a onerror=x> \"'&@script@@csp@"


@pytest.fixture(scope="module", autouse=True)
def drawn_once():
    """Each face of each certificate is drawn once for the whole module."""
    drawn, render = {}, faces.render

    def once(face, secured, *, now):
        key = face, secured["proof"]["proofValue"]
        return drawn[key] if key in drawn else drawn.setdefault(key, render(face, secured, now=now))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(faces, "render", once)
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory, drawn_once):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(keys.PASSPHRASE_VARIABLE, "correct horse")
        made = make_place(tmp_path_factory.mktemp("pl äce"))
        made.good = issue(made.path, "--name", HOSTILE, "--email", "ada@example.org").stem
        made.bad = issue(made.path, "--name", "Bo").stem
        why = ("--registry", made.path / "reg", "--key", made.path / "key", "--reason", "by <b>mistake</b>")
        assert run("revoke", made.bad, *why).exit_code == 0
        built = site(made.path)
        assert built.exit_code == 0, built.output
        yield made


@pytest.fixture
def place(made, tmp_path):
    shutil.copytree(made.path, tmp_path / "place")
    return tmp_path / "place"


def site(path, folder="public"):
    return run("site", path / folder, "--registry", path / "reg")


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class Reader(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.tags, self.meta, self.links, self.texts = [], {}, [], []
        self.feed(html.decode())

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.tags.append(tag)
        if tag == "meta" and "content" in found:
            self.meta[found.get("property") or found.get("name") or found.get("http-equiv")] = found["content"]
        self.links += [found[key] for key in ("href", "src") if found.get(key)]
        assert not [key for key in found if key.startswith("on")], attrs

    def handle_data(self, data):
        self.texts.append(data)


def test_it_holds_a_page_for_each_id_and_all_that_a_verifier_needs(made):
    found = contents(made.path / "public")
    common = {"index.html", "verify.html", "404.html", "issuer.json", "status.json", "revocations.json", "did.json"}
    files = {f"c/{made.good}{suffix}" for suffix in (".json", ".svg", *_drawn())}
    assert set(found) == common | files | {f"c/{made.good}/index.html", f"c/{made.bad}.json", f"c/{made.bad}/index.html"}
    registry = contents(made.path / "reg")
    for name in ("issuer.json", "status.json", "revocations.json", f"c/{made.good}.json", f"c/{made.bad}.json"):
        assert found[name] == registry[name]
    for name in (f"c/{made.good}{suffix}" for suffix in (".json", ".svg", *_drawn()) if suffix != ".pdf"):
        assert run("verify", made.path / "public" / name, "--registry", made.path / "reg").exit_code == 0


def _drawn():
    try:
        import fpdf  # noqa: F401
        import PIL  # noqa: F401
    except ModuleNotFoundError:
        return ()
    return (".png", ".pdf", ".badge.png")


def test_a_rebuild_changes_nothing_at_all(place):
    stamps = {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in (place / "public").rglob("*")}
    again = site(place)
    assert again.exit_code == 0 and "0 files written, 0 removed" in again.stdout
    assert {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in (place / "public").rglob("*")} == stamps
    assert site(place, "other").exit_code == 0
    assert contents(place / "other") == contents(place / "public")


def test_a_page_asks_for_nothing_and_lets_nothing_in(made):
    folder = made.path / "public"
    for path in folder.rglob("*.html"):
        html = path.read_bytes()
        read = Reader(html)
        policy = dict(part.split(" ", 1) for part in read.meta["Content-Security-Policy"].split("; "))
        assert policy["default-src"] == "'none'" and policy.get("connect-src", "'none'") == "'none'"
        assert "http" not in read.meta["Content-Security-Policy"] and "'self'" not in read.meta["Content-Security-Policy"]
        assert set(read.tags) <= ALLOWED
        # The hashes in the policy are those of the one script and the one style.
        for tag in ("script", "style"):
            inside = re.findall(rf"<{tag}>(.*?)</{tag}>", html.decode(), re.DOTALL)
            assert len(inside) == read.tags.count(tag)
            assert all(build_page.source_hash(text) == policy[f"{tag}-src"] for text in inside)
        outside = [link for link in read.links if "://" in link]
        assert all(link.startswith((f"{URL}/", "https://www.linkedin.com/profile/add?")) for link in outside)
        for link in set(read.links) - set(outside) - {"data:,"}:
            assert (path.parent / link).resolve().is_relative_to(folder.resolve()) and (path.parent / link).is_file(), link


ALLOWED = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "link",
        "style",
        "script",
        "noscript",
        "body",
        "main",
        "section",
        "div",
        "details",
        "summary",
    ),
    *("h1", "h2", "p", "br", "code", "strong", "dl", "dt", "dd", "ul", "li", "a", "img", "svg", "rect", "path"),
    *("button", "input", "textarea", "label"),
}


def test_names_stay_text_and_stay_out_of_what_others_show(made):
    html = (made.path / "public" / "c" / made.good / "index.html").read_bytes()
    read = Reader(html)
    assert html.count(b"<script") == 1 and read.tags.count("img") == 1
    assert any(HOSTILE in text for text in read.texts)  # in the title, as text
    shared = {key: value for key, value in read.meta.items() if key.startswith("og:")}
    assert shared["og:url"] == f"{URL}/c/{made.good}" and "Lesson 01" in shared["og:title"]
    assert "alert" not in "".join(shared.values())
    if _drawn():
        assert shared["og:image"] == f"{URL}/c/{made.good}.badge.png"
    [link] = [link for link in read.links if "linkedin" in link]
    form = {key: value for key, [value] in parse_qs(urlsplit(link).query).items()}
    assert (form["certUrl"], form["certId"]) == (f"{URL}/c/{made.good}", made.good)
    assert read.meta["robots"] == "noindex"


def test_a_revoked_id_says_so_without_a_script_too_and_gives_no_picture(made):
    html = (made.path / "public" / "c" / made.bad / "index.html").read_bytes()
    read = Reader(html)
    said = "".join(read.texts)
    assert re.search(r"the verdict was: Revoked\. Revoked since 20\d\d-\d\d-\d\dT\S+Z: by <b>mistake</b>\.", said)
    assert read.meta["og:title"] == "Revoked" and "og:image" not in read.meta
    assert not [link for link in read.links if "linkedin" in link or link.endswith((".svg", ".png", ".pdf"))]
    assert "b" not in read.tags


def test_what_leaves_the_registry_leaves_the_site_and_nothing_else_does(place):
    public, gone = place / "public", issue(place, "--name", "Cy").stem
    assert site(place).exit_code == 0 and (public / "c" / gone / "index.html").exists()
    strange = identifier.new()
    for name in ("CNAME", "c/notes.txt", f"c/{gone}/mine.txt", f"c/{strange}.txt", ".git/config", "c/Z.json"):
        (public / name).parent.mkdir(exist_ok=True)
        (public / name).write_text("mine")
    (public / "c" / f".{gone}.svg.{'0' * 32}.part").write_text("left by a kill")
    (place / "reg" / "c" / f"{gone}.json").unlink()
    again = site(place)
    assert again.exit_code == 0 and "removed" in again.stdout
    left = {name for name in contents(public) if gone in name}
    assert left == {f"c/{gone}/mine.txt"}
    assert {name for name, data in contents(public).items() if data == b"mine"} >= {"CNAME", "c/notes.txt", "c/Z.json"}


def test_a_revocation_and_a_new_picture_reach_the_site(place, made):
    assert run("revoke", made.good, "--registry", place / "reg", "--key", place / "key", "--reason", "x").exit_code == 0
    assert site(place).exit_code == 0
    assert {path.name for path in (place / "public" / "c").iterdir()} == {
        made.good, made.bad, f"{made.good}.json", f"{made.bad}.json",
    }  # fmt: skip


def test_one_damaged_certificate_does_not_stop_the_others(place, made):
    path = place / "reg" / "c" / f"{made.good}.json"
    before = contents(place / "public")
    path.write_bytes(path.read_bytes().replace(b"Lesson", b"lesson", 1))
    (place / "reg" / "c" / f"{identifier.new()}.json").write_bytes((place / "reg" / "c" / f"{made.bad}.json").read_bytes())
    newer = issue(place, "--name", "Cy").stem
    built = site(place)
    assert built.exit_code == 1 and made.good in built.stderr and "what was published stays" in built.stderr
    assert "It holds the certificate" in built.stderr and "Traceback" not in built.output
    after = contents(place / "public")
    assert f"c/{newer}/index.html" in after
    assert {name: data for name, data in after.items() if made.good in name} == {
        name: data for name, data in before.items() if made.good in name
    }


def test_it_builds_only_where_it_may(place, tmp_path):
    def refused(folder, *words):
        before = contents(tmp_path)
        result = run("site", folder, "--registry", place / "reg")
        assert result.exit_code == 2 and all(word in result.stderr for word in words), result.output
        assert contents(tmp_path) == before

    refused(place / "reg", "must lie apart")
    refused(place / "reg" / "site", "must lie apart")
    refused(place, "must lie apart")
    (tmp_path / "file").write_text("x")
    refused(tmp_path / "file", "this is a file")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("x")
    refused(tmp_path / "full", "no site")
    shutil.copytree(place / "public", tmp_path / "foreign")
    document = json.loads((tmp_path / "foreign" / "issuer.json").read_bytes())
    (tmp_path / "foreign" / "issuer.json").write_text(json.dumps({**document, "url": "https://example.com/x"}))
    refused(tmp_path / "foreign", "https://example.com/x")
    shutil.rmtree(place / "public" / "c")
    (tmp_path / "elsewhere").mkdir()
    (place / "public" / "c").symlink_to(tmp_path / "elsewhere")
    refused(place / "public", "link")
    assert run("site", tmp_path / "new", "--registry", tmp_path / "none").exit_code == 2 and not (tmp_path / "new").exists()


def test_a_full_disk_leaves_whole_files_and_the_next_build_makes_the_rest(place, monkeypatch):
    wanted = contents(place / "public")
    left = [9]

    def full(descriptor):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(publish.os, "fsync", full)
        stopped = site(place, "fresh")
    assert stopped.exit_code == 2 and "No space left on device" in stopped.stderr
    found = contents(place / "fresh")
    assert 0 < len(found) < len(wanted) and all(wanted[name] == data for name, data in found.items())
    assert site(place, "fresh").exit_code == 0 and contents(place / "fresh") == wanted


@forked
def test_a_build_killed_at_any_write_leaves_whole_files_and_no_remains(place):
    wanted, stopped = contents(place / "public"), 0
    for count in range(1, 100, 9):
        new = f"fresh{count}"
        if not killed(lambda name=new: site(place, name), count):
            break
        stopped += 1
        found = {name: data for name, data in contents(place / new).items() if not name.endswith(".part")}
        assert all(wanted[name] == data for name, data in found.items())
        assert site(place, new).exit_code == 0 and contents(place / new) == wanted
    assert stopped >= 3


def test_a_name_that_no_font_draws_costs_only_the_pictures(place):
    pytest.importorskip("PIL", reason="Pillow comes with the extra certificates")
    name = issue(place, "--name", "\u0c95\u0ccd\u0cb7").stem
    built = site(place)
    assert built.exit_code == 0 and f"{identifier.shown(name)}: no PNG was made" in built.stderr
    html = (place / "public" / "c" / name / "index.html").read_text()
    assert f"{name}.svg" in html and f"{name}.png" not in html and (place / "public" / "c" / f"{name}.svg").exists()


def test_the_did_document_names_every_key(place):
    assert run("rotate", "--registry", place / "reg", "--key", place / "key", "--new-key", place / "new").exit_code == 0
    assert site(place).exit_code == 0
    document = json.loads((place / "public" / "did.json").read_bytes())
    ring = Registry(place / "reg").ring()
    assert document["id"] == "did:web:example.org:certificates"
    assert document["alsoKnownAs"] == [key.did for key in ring.keys] and len(ring.keys) == 2
    assert [f"did:key:{method['publicKeyMultibase']}" for method in document["verificationMethod"]] == document["alsoKnownAs"]
    assert ["expires" in method for method in document["verificationMethod"]] == [True, False]
    assert document["assertionMethod"] == [method["id"] for method in document["verificationMethod"]]


@pytest.mark.parametrize(
    ("base", "did"),
    [
        ("https://w3c-ccg.github.io", "did:web:w3c-ccg.github.io"),
        ("https://example.com:3000/user/alice", "did:web:example.com%3A3000:user:alice"),
        ("https://EXAMPLE.com/~a", "did:web:example.com:%7Ea"),
    ],
)
def test_a_web_address_as_did_web(base, did):
    """The first two are the examples of the method's own specification."""
    assert did_document.web_name(base) == did


def test_every_face_is_cleared_away_some_day():
    assert set(faces.SUFFIXES.values()) < set(SUFFIXES)
