"""The faces of a certificate from the command line: made whole, never over a file, never of what is not a certificate."""

from __future__ import annotations

import io
import json
import zlib
from urllib.parse import parse_qs, urlsplit

import pytest

from quizzes.certificates import badge, faces, keys, png, strict_json
from quizzes.certificates.linkedin import LABELS
from tests.certificates.issuing_place import URL, issue, make_place, run, verdict

pytest.importorskip("PIL", reason="Pillow comes with the extra certificates")
pytest.importorskip("fpdf", reason="fpdf2 comes with the extra certificates")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(keys.PASSPHRASE_VARIABLE, "correct horse")
        made = make_place(tmp_path_factory.mktemp("faces"))
        made.file = issue(made.path, "--name", "김민준")
        yield made


@pytest.mark.parametrize("source", [".json", ".svg", "id"])
@pytest.mark.parametrize("face", ["svg", "png", "badge"])
def test_a_face_carries_the_certificate_and_verifies(place, tmp_path, face, source):
    out = tmp_path / f"made.{face}"
    given = place.file.stem if source == "id" else place.file.with_suffix(source)
    made = run(face, given, "-o", out, "--registry", place.path / "reg")
    assert made.exit_code == 0 and made.stdout == f"{out}\n", made.output
    secured = json.loads(place.file.read_bytes())
    assert faces.credential_in(out.read_bytes()) == secured
    assert verdict(place.path, out)["verdict"] == "valid"
    again = run("svg", out, "-o", tmp_path / "again.svg")  # and a face is a source as good as the first
    assert again.exit_code == 0 and (tmp_path / "again.svg").read_bytes() == badge.render(secured)


def test_without_out_it_goes_beside_the_file_and_into_a_folder_under_its_id(place, tmp_path):
    copy = tmp_path / "mine.json"
    copy.write_bytes(place.file.read_bytes())
    (tmp_path / "folder").mkdir()
    for more, expected in (((), tmp_path), (("-o", tmp_path / "folder"), tmp_path / "folder")):
        made = run("pdf", copy, *more)
        assert made.exit_code == 0, made.output
        assert (expected / f"{place.file.stem}.pdf").read_bytes().startswith(b"%PDF-")


@pytest.mark.parametrize("face", ["svg", "png", "pdf", "badge", "linkedin"])
def test_nothing_is_written_over_without_force(place, tmp_path, face):
    out = tmp_path / "there"
    out.write_bytes(b"precious")
    refused = run(face, place.file, "-o", out)
    assert refused.exit_code == 2 and "--force" in refused.stderr and str(out) in refused.stderr
    assert out.read_bytes() == b"precious" and list(tmp_path.iterdir()) == [out]
    assert run(face, place.file, "-o", out, "--force").exit_code == 0
    assert out.read_bytes() != b"precious"


def test_a_dangling_link_counts_as_a_file(place, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    assert run("svg", place.file, "-o", tmp_path / "link").exit_code == 2
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("face", ["svg", "png", "pdf", "badge", "linkedin"])
@pytest.mark.parametrize("what", ["altered", "empty", "text", "missing", "folder", "large"])
def test_what_is_no_certificate_gets_no_face(place, tmp_path, face, what):
    path = tmp_path / "given.json"
    content = {
        "altered": place.file.read_bytes().replace("김민준".encode(), b"Someone"),
        "empty": b"{}",
        "text": b"hello",
        "large": b" " * 3_000_000,
    }
    if what == "folder":
        path.mkdir()
    elif what in content:
        path.write_bytes(content[what])
    out = tmp_path / "out"
    refused = run(face, path, "-o", out)
    assert refused.exit_code == 2 and str(path) in refused.stderr and not out.exists()
    assert "Traceback" not in refused.stderr


def test_a_revoked_certificate_gets_no_face_where_the_registry_says_so(place, tmp_path):
    other = issue(place.path)
    arguments = ("--registry", place.path / "reg", "--key", place.path / "key", "--reason", "by mistake")
    assert run("revoke", other.stem, *arguments).exit_code == 0
    refused = run("png", other, "--registry", place.path / "reg", "-o", tmp_path / "x.png")
    assert refused.exit_code == 2 and "Revoked" in refused.stderr and not (tmp_path / "x.png").exists()
    assert run("linkedin", other, "--registry", place.path / "reg").exit_code == 2


def test_the_link_and_every_field_to_copy_are_printed(place):
    shown = run("linkedin", place.file).stdout
    [link] = [word for word in shown.split() if word.startswith("https://www.linkedin.com/")]
    form = {key: value for key, [value] in parse_qs(urlsplit(link).query).items()}
    assert (form["certUrl"], form["certId"]) == (f"{URL}/c/{place.file.stem}", place.file.stem)
    for key, label in LABELS.items():
        if key in form:
            assert f"  {label}:" in shown and form[key] in shown
    assert json.loads(run("linkedin", place.file, "--json").stdout) == {"link": link, "fields": form}


def test_a_certificate_without_a_registry_has_no_page_to_link_to(place, tmp_path):
    common = ("--key", place.path / "key", "--out", tmp_path, "--student", "ada", "--lesson", "01")
    made = run("issue", *common, "--results", place.path / "results.json")
    refused = run("linkedin", made.stdout.splitlines()[0])
    assert refused.exit_code == 2 and "without a registry" in refused.stderr


def repainted(data):
    """The PNG `data` with its upper half painted black, every checksum made right again, the credential left as it is."""
    from PIL import Image

    image = Image.open(io.BytesIO(data)).convert("RGB")
    image.paste((0, 0, 0), (0, 0, image.width, image.height // 2))
    out = io.BytesIO()
    image.save(out, "PNG")
    return png.insert(out.getvalue(), png.embedded(data))


@pytest.mark.parametrize("face", ["png", "badge"])
def test_a_repainted_picture_is_never_called_clean(place, tmp_path, face):
    clean, painted = tmp_path / "clean.png", tmp_path / "painted.png"
    assert run(face, place.file, "-o", clean).exit_code == 0
    painted.write_bytes(repainted(clean.read_bytes()))
    report = verdict(place.path, clean)
    assert report["picture"] == "as drawn here" and "not its picture" in report["notes"][0]
    report = verdict(place.path, painted)
    assert (report["verdict"], report["picture"]) == ("valid", "not as drawn here")
    assert "not its picture" in report["notes"][0] and report["issued_to"] == "김민준"
    shown = run("verify", painted, "--registry", place.path / "reg").stdout
    assert "Only the credential inside" in shown and "NOT those that this program draws" in shown


def test_a_png_that_is_damaged_behind_its_checksums_is_told_apart(place, tmp_path):
    clean = tmp_path / "clean.png"
    assert run("png", place.file, "-o", clean).exit_code == 0
    body = b"no pixels at all"
    chunk = len(body).to_bytes(4, "big") + b"IDAT" + body + zlib.crc32(b"IDAT" + body).to_bytes(4, "big")
    data = clean.read_bytes()
    header, end = data[:33], data[-12:]
    broken = png.insert(header + chunk + end, strict_json.canonical(json.loads(place.file.read_bytes())))
    (tmp_path / "broken.png").write_bytes(broken)
    assert verdict(place.path, tmp_path / "broken.png")["picture"] == "not as drawn here"


def test_a_picture_of_ones_own_carries_it_and_other_files_do_not(place, tmp_path):
    from PIL import Image

    Image.new("RGB", (64, 64), "#0b4f6c").save(tmp_path / "own.png")
    made = run("badge", place.file, "--picture", tmp_path / "own.png", "-o", tmp_path / "b.png")
    assert made.exit_code == 0, made.output
    assert verdict(place.path, tmp_path / "b.png")["verdict"] == "valid"
    for bad in (place.file, tmp_path / "b.png", tmp_path / "missing.png"):
        refused = run("badge", place.file, "--picture", bad, "-o", tmp_path / "c.png")
        assert refused.exit_code == 2 and str(bad) in refused.stderr and not (tmp_path / "c.png").exists()
