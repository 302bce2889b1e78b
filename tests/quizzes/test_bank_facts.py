"""What questions say in words, held against the engine: orders, tables, listings and names."""

import textwrap
from pathlib import Path

import pytest
import yaml

from offload_lab import OffloadPolicy, catalogue, races
from offload_lab.caching import furthest_next_use
from offload_lab.partition import STATE_BYTES, state_bytes
from quizzes.question import BANK, KEYS
from tests.quizzes.second_route import moves, reads, record, training

LESSONS = Path(__file__).parents[2] / "course" / "src"
FILES = sorted([*BANK.glob("[0-9]*.yaml"), *KEYS.glob("[0-9]*.yaml")])
RAW = {q["id"]: q for file in FILES for q in yaml.safe_load(file.read_text(encoding="utf-8"))["questions"]}


def right(name):
    return [choice["text"] for choice in RAW[name]["choices"] if choice["correct"]]


def steps(name):
    return [step["id"] for step in RAW[name]["steps"]]


def pairs(name):
    return {pair["left"]: pair["right"] for pair in RAW[name]["pairs"]}


def test_state_by_dtype():
    assert pairs("l01-by-dtype") == {dtype: str(nbytes) for dtype, nbytes in STATE_BYTES.items()}
    assert right("l01-sixteen")[0].startswith(f"{training(1) / 10**9}:")
    assert state_bytes("bfloat16", "int8") < state_bytes("bfloat16") / 2


def test_what_each_durability_restores_after_a_kill_in_step_25():
    for setting, restored in pairs("l05-durabilities").items():
        value = yaml.safe_load(setting.removeprefix("durability="))
        every = OffloadPolicy(tier="disk", directory="state", durability=value).publish_every
        assert restored == (f"step {24 // every * every}" if every else "nothing; load your last save()")


def test_in_backward_only_with_a_published_step():
    assert 'durability="checkpoint"' in right("l04-not-with-backward")
    with pytest.raises(ValueError, match="overlap"):
        OffloadPolicy(tier="disk", directory="state", overlap="backward", durability="checkpoint")


def test_settings_in_questions_exist():
    for setting in pairs("l04-modes"):
        OffloadPolicy(tier="disk", directory="state", overlap=setting.strip('"'))
    for setting in pairs("l06-policies"):
        name, value = setting.split("=")
        OffloadPolicy(**{name: value.strip('"')})
    assert OffloadPolicy(tier=RAW["l10-tier"]["accepted"][0], directory="state").tier == "disk"


def test_who_is_given_up_first():
    held, given_up = [1, 2, 3, 5], []
    names = {1: "one", 2: "two", 3: "three", 5: "five"}
    while held:
        victim = furthest_next_use(held, lambda partition: (partition - 3) % 6 + 1)
        held.remove(victim)
        given_up.append(names[victim])
    assert given_up == steps("l06-give-up")


def test_a_scan_under_lru():
    assert right("l06-lru") == ["none"] and reads(8, 6, 2, "forward") == 2 * 8
    assert right("l06-more-ram") == ["stay what they are"] and reads(8, 2, 3, "forward") == reads(8, 4, 3, "forward")


def test_an_update_that_is_lost():
    for update in RAW["l02-lost"]["variants"]["update"]:
        assert not moves(1.0, update)


def test_links_from_slow_to_fast():
    rate = {
        "nvme": catalogue.disk("nvme4-consumer").read,
        "pcie": catalogue.link("pcie4x16").line_rate,
        "ddr": catalogue.memory("ddr5-dual").peak,
        "c2c": catalogue.link("nvlink-c2c").line_rate,
        "hbm": catalogue.gpu("h100-80").bandwidth,
    }
    assert sorted(rate, key=lambda name: rate[name].value) == steps("l10-slow-to-fast")
    assert f"{rate['nvme'].value / 1e9} GB/s" in RAW["l00-two-figures"]["prompt"]
    assert f"{rate['pcie'].value / 1e9:.1f} GB/s" in RAW["g00-2"]["prompt"]
    assert f"{catalogue.link('pcie4x16').pinned.value / 1e9:.0f} GB/s" in RAW["g00-2"]["prompt"]


def test_which_lane_is_slowest_year_by_year():
    lanes, slowest = {"disk": 8.0, "link": 3.0, "compute": 2.0, "memory": 1.0}, []
    for _ in range(4):
        slowest.append(max(lanes, key=lambda lane: lanes[lane]))
        lanes[slowest[-1]] /= 10
    assert slowest == steps("g10-3")


def test_the_disk_stays_the_slowest_lane_when_it_is_twice_as_fast():
    assert all(disk / 2 >= 2.1 for disk in RAW["l00-faster-core"]["variants"]["disk"])


@pytest.mark.parametrize(
    "name, program",
    [
        ("l07-read-returns", races.update_while_reading),
        ("l07-two-buffers", None),
        ("l07-which-one", None),
        ("g07-1", races.gradient_zeroed_too_early),
    ],
)
def test_listings_are_lines_of_the_races(name, program):
    """Every call in the listing is a call of that program, in that order."""
    if program is None:
        program = {"l07-two-buffers": races.buffer_given_away, "l07-which-one": races.waits_for_the_next_one}[name]
    source = "".join(races.source(program).split())
    listing = [line for line in RAW[name]["prompt"].splitlines() if line.startswith("    ") and "bench." in line]
    assert listing
    at = 0
    for line in listing:
        call = "".join(textwrap.dedent(line).split())
        call = call[call.index("bench.") :]
        for long, short in (("turn%2", "buffer"), ("partition%2", "buffer")):
            call = call.replace(long, short)
        at = source.find(call.removesuffix(")").removesuffix(")"), at)
        assert at >= 0, line


def test_an_update_moves_what_the_question_says():
    assert f"{record().update_bytes(False) // record().numel} bytes" in RAW["l00-update-seconds"]["prompt"]


@pytest.mark.parametrize("source", sorted(LESSONS.glob("[0-9]*.py")), ids=lambda path: path.stem)
def test_what_to_reread_is_a_heading_of_the_lesson(source):
    headings = [line.removeprefix("# ## ").strip() for line in source.read_text(encoding="utf-8").splitlines()]
    for file in FILES:
        if file.stem == source.stem:
            for question in yaml.safe_load(file.read_text(encoding="utf-8"))["questions"]:
                assert question["reread"] in headings, question["id"]
