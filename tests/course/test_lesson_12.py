"""Lesson 12: what it says of signatures and of the course holds; its check accepts what is right and names what is not."""

import hashlib
import json
import re

import pytest
import rfc8785

from course.checks.lesson_12 import signed, signed_bytes
from offload_lab.caching import Cache, least_recently_used
from quizzes.certificates import signing
from quizzes.question import practice


def plain(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def hashed(*texts):
    return b"".join(hashlib.sha256(text).digest() for text in texts)


def right(certificate, write=plain, hash_=hashed):
    if "proof" not in certificate:
        raise ValueError("no proof")
    document = {key: value for key, value in certificate.items() if key != "proof"}
    options = {key: value for key, value in certificate["proof"].items() if key != "proofValue"}
    return hash_(write(options), write(document))


def taken_apart(certificate):
    """Another way: it takes apart what it is given, and a library writes the JSON."""
    proof = certificate.pop("proof", None)
    if proof is None:
        raise ValueError("no proof")
    del proof["proofValue"]
    both = hashlib.sha256(rfc8785.dumps(proof)).digest()
    both += hashlib.sha256(rfc8785.dumps(certificate)).digest()
    return bytearray(both)


@pytest.mark.parametrize("function", [right, taken_apart])
def test_a_right_function_passes_and_passes_again(function):
    assert signed_bytes.check(function) and signed_bytes.check(function)


def changed(part, other):
    """`right`, but for one part of it."""
    return lambda certificate: right(certificate, **{part: other})


def guarded(function):
    def called(certificate):
        if "proof" not in certificate:
            raise ValueError("no proof")
        return function(certificate)

    return called


def without(certificate, name):
    return {key: value for key, value in certificate.items() if key != name}


def sha(value):
    return hashlib.sha256(value).digest()


@pytest.mark.parametrize(
    "wrong, said",
    [
        (changed("hash_", lambda options, document: hashed(document, options)), "You hash the document first"),
        (changed("hash_", lambda options, document: hashed(document)), "You hash the document alone"),
        (changed("hash_", lambda options, document: hashed(options + document)), "You hash once, over both"),
        (changed("hash_", lambda options, document: options + document), "You join the texts themselves"),
        (changed("hash_", lambda *texts: hashed(*texts).hex()), "hexadecimal digits"),
        (changed("hash_", lambda *texts: hashed(*texts).hex().encode()), "hexadecimal digits"),
        (changed("write", lambda value: json.dumps(value).encode()), "the JSON that Python writes by itself"),
        (
            changed("write", lambda value: json.dumps(value, sort_keys=True, ensure_ascii=False).encode()),
            "You write spaces between the parts",
        ),
        (
            changed("write", lambda value: json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()),
            "You keep the order of the keys",
        ),
        (
            changed("write", lambda value: json.dumps(value, sort_keys=True, separators=(",", ":")).encode()),
            "You write é as",
        ),
        (guarded(lambda c: hashed(plain(c["proof"]), plain(without(c, "proof")))), "You leave proofValue in the options"),
        (guarded(lambda c: hashed(plain(without(c["proof"], "proofValue")), plain(c))), "You leave the proof in the document"),
        (guarded(lambda c: sha(plain(c))), "You hash the file as it is"),
        (
            guarded(lambda c: right(c | {"proof": without(c["proof"], "@context")})),
            "The context stands in the document and in the proof",
        ),
        (lambda c: right(c) if "proof" in c else b"", "a ValueError"),
        (lambda c: right({"proof": {}} | c), "a ValueError"),
        (guarded(lambda c: 64), "First the hash of the proof's options"),
        (lambda: b"", "First the hash of the proof's options"),
        (lambda c: None, "Not begun"),
    ],
)
def test_a_wrong_one_is_told_what_is_behind_it(wrong, said, capsys):
    assert not signed_bytes.check(wrong)
    assert said in capsys.readouterr().out


def test_what_the_learner_computes_is_what_a_certificate_is_signed_over():
    document = signed("x", {"name": "n"})
    assert signing.verify(document)
    assert right(document) == signing.hash_data(without(document, "proof"), without(document["proof"], "proofValue"))


def test_few_or_no_predictions_is_said(ran):
    assert "There is no prediction to look back on" in ran("12").text("taught")


def test_what_was_missed_comes_back_later_each_time(ran):
    rows = ran("12").text("back").splitlines()
    assert len(rows) == 2 and rows[0].startswith("missed 1 ×: asked again after 1 min, ")
    gaps = [float(number) * {"min": 1, "h": 60, "d": 1440}[unit] for number, unit in re.findall(r"(\d+) (min|h|d)\b", rows[0])]
    assert len(gaps) == 7 and gaps == sorted(gaps)
    assert len(re.findall(r"\d+ (?:min|h|d)\b", rows[1])) == 9


def test_bytes_are_those_of_the_course(ran):
    told = {}
    for row in ran("12").text("bytes").splitlines()[1:]:
        dtype, tier, sizes = row.split(None, 2)
        told[dtype, tier] = re.split(r"\s{2,}", sizes)
    assert told["bfloat16", "ram"] == ["28 GB", "70 GB", "–"] and told["bfloat16", "disk"][2] == "168 GB"
    assert told["bfloat16", "disk"][1].endswith("MB"), "the buffers alone"
    assert told["bfloat16", "adamw"][:2] == ["28 GB", "84 GB"] and told["float32", "ram"][1] == "56 GB"


def test_order_is_as_an_own_count_says(ran):
    cache, missed = Cache(6, 1, least_recently_used), []
    for _step in range(4):
        missed.append(sum(not cache.place(partition, lambda other: 0).hit for partition in range(8)))
    said = ran("12").text("order").splitlines()
    assert f"LRU: {missed} reads" in said[0] and missed == [8] * 4
    assert "[8, 2, 2, 2]" in said[1] and "[8, 2, 2, 2]" in said[2]


def test_bfloat16_alone_stands_still(ran):
    alone, master = re.findall(r": +([\d.]+), measured", ran("12").text("whole"))
    assert float(alone) == 1 and float(master) == pytest.approx(1.1, rel=2**-8)


def test_the_disk_is_the_longest_lane_where_the_state_is_on_it(ran):
    ram, disk = re.findall(r"([\d.]+) s a step, simulated; longest: (.+)", ran("12").text("time"))
    assert disk[1] == "disk" and ram[1] != "disk" and float(disk[0]) > 5 * float(ram[0])


def test_with_no_answer_it_is_a_specimen_and_says_so_in_what_is_signed(ran):
    lesson = ran("12")
    count = len(practice("12").questions)
    assert f"0 of {count} points, counted" in lesson.text("score") and "Your prediction waits." in lesson.text("score")
    assert "So this is a specimen" in lesson.text("issue")
    prompt = " ".join(lesson.text("prompt").split())
    assert "(specimen, not earned)" in prompt and "0–9 % of the points (80 % needed)" in prompt
    assert prompt.endswith("(exit status 0)") and "<img" in lesson.html("drawn")


def test_the_same_file_is_valid_for_one_and_of_an_unknown_issuer_for_another(ran):
    said = ran("12").text("verify")
    assert said.index("UNKNOWN ISSUER") < said.index("VALID:") and said.startswith("trusted: None")


def test_one_byte_is_not_valid_and_neither_is_any_other(ran):
    lesson = ran("12")
    assert "NOT VALID. ALTERED:" in lesson.text("one-byte") and "Rpecimen" in lesson.text("one-byte")
    tried, caught = map(int, re.search(r"(\d+) files, .*: (\d+) refused", lesson.text("every-byte")).groups())
    issued = int(re.search(r"(\d+) bytes", lesson.text("issue"))[1])
    assert tried == caught == issued and 2000 < tried < 2500, "about 2,250"
    assert "Counted: 100.00 %" in lesson.text("every-byte")


def test_a_lie_is_valid_under_the_liars_key_alone(ran):
    said = ran("12").text("liar").splitlines()
    assert said[0].endswith(": VALID") and "100 % of the points" in said[1] and said[2].endswith(" UNKNOWN ISSUER")


def test_the_evidence_is_the_hash_of_the_answers(ran):
    claimed, mine, told = ran("12").text("evidence").splitlines()
    assert claimed.split()[-1] == mine.split()[-1] and told == "the same answers"


def test_nothing_is_verified_with_a_check_that_is_not_begun(ran):
    assert "Not begun." in ran("12").text("make-check")
    assert "Once your function is right" in ran("12").text("own-verifier")


def test_the_page_has_a_plan_that_fits_and_leaves_the_owners_lines_open(ran):
    lesson = ran("12")
    assert re.findall(r"^(gpu|ram|disk) +(fits|does not fit)", lesson.text("plans"), re.M) == [
        ("gpu", "does not fit"),
        ("ram", "fits"),
        ("disk", "fits"),
    ]
    assert "Calculated: " in lesson.text("plans")
    said = lesson.text("page")
    assert "Targets, 20% above the prediction:" in said and "Given up when: …" in said and "Not known yet:" in said
