"""Lesson 8: what it says of fitting and of money holds; its checks accept what is right and name what is not."""

import re
from dataclasses import replace

import pytest
import torch

from course.checks.lesson_08 import Offer, Offers, cheapest, parameters, published
from offload_lab import catalogue, plan, prices
from offload_lab.known_models import KNOWN

GIB = 2**30


# --- the cheapest run ---------------------------------------------------------------------------------------------------


def right(offers, steps):
    bills = []
    for offer in offers:
        if offer.weights + offer.gradients + offer.activations <= offer.card_gib * GIB:
            bills.append(steps * offer.seconds / 3600 * offer.hour)
    if not bills:
        raise ValueError("none of the offers fits")
    return min(bills)


def also_right(offers, steps):
    """Sorted by dollars a second of work, and min of nothing is a ValueError by itself."""
    fitting = [o for o in offers if (o.weights + o.gradients + o.activations) / GIB <= o.card_gib]
    best = min(fitting, key=lambda o: o.seconds * o.hour)
    return best.seconds * best.hour * steps / (60 * 60)


@pytest.mark.parametrize("function", [right, also_right])
def test_a_right_planner_passes(function):
    assert cheapest.check(function)


def bill(offer, steps):
    return steps * offer.seconds / 3600 * offer.hour


def among(offers, needs, unit=GIB):
    found = [offer for offer in offers if needs(offer) <= offer.card_gib * unit]
    if not found:
        raise ValueError("none")
    return found


def all_of(offer):
    return offer.weights + offer.gradients + offer.activations


@pytest.mark.parametrize(
    "wrong, said",
    [
        (lambda offers, steps: min(bill(o, steps) for o in among(offers, all_of, 10**9)), "A GB is not a GiB"),
        (lambda offers, steps: min(bill(o, steps) for o in among(offers, lambda o: o.weights)), "the weights alone"),
        (lambda offers, steps: min(bill(o, steps) for o in offers), "on which the training does not fit"),
        (
            lambda offers, steps: min(bill(o, steps) for o in among(offers, lambda o: o.weights + o.activations)),
            "leave the gradients out",
        ),
        (
            lambda offers, steps: min(bill(o, steps) for o in among(offers, lambda o: o.weights + o.gradients)),
            "between two steps",
        ),
        (lambda offers, steps: bill(min(among(offers, all_of), key=lambda o: o.hour), steps), "prices of an hour"),
        (lambda offers, steps: bill(min(among(offers, all_of), key=lambda o: o.seconds), steps), "the fastest machine"),
        (lambda offers, steps: min(o.hour for o in among(offers, all_of)), "That is the price of an hour"),
        (lambda offers, steps: 3600 * right(offers, steps), "for each second"),
        (lambda offers, steps: 60 * right(offers, steps), "divide by 60"),
        (lambda offers, steps: right(offers, steps) if len(offers) != 2 or steps > 100 else 0.0, "there is no price"),
        (lambda offers, steps: "cheap", "Not yet"),
        (lambda offers: 1.0, "Not yet"),
        (lambda offers, steps: None, "Not begun"),
    ],
)
def test_a_wrong_planner_is_told_what_is_behind_it(wrong, said, capsys):
    assert not cheapest.check(wrong)
    assert said in capsys.readouterr().out


def test_an_offer_shows_itself_by_its_name():
    offers = Offers("two", Offer("a", 24, 1, 1, 1, 1.0, 1.0), Offer("b", 24, 1, 1, 1, 2.0, 1.0))
    assert repr(offers) == "two" and len(offers) == 2


# --- parameters of a config.json ----------------------------------------------------------------------------------------


def counted(config):
    width, inner, heads = config["hidden_size"], config["intermediate_size"], config["num_attention_heads"]
    narrow = config["num_key_value_heads"] * width // heads
    layer = width * (2 * width + 2 * narrow + 3 * inner + 2)
    embedding = config["vocab_size"] * width
    return layer * config["num_hidden_layers"] + width + (embedding if config["tie_word_embeddings"] else 2 * embedding)


def built(config):
    """All matrices as tensors that take no memory, and counted."""
    width, inner = config["hidden_size"], config["intermediate_size"]
    narrow = width // config["num_attention_heads"] * config["num_key_value_heads"]
    shapes = [(width, width)] * 2 + [(width, narrow)] * 2 + [(width, inner)] * 3 + [(width,)] * 2
    shapes = shapes * config["num_hidden_layers"] + [(width,)]
    shapes += [(config["vocab_size"], width)] * (1 if config["tie_word_embeddings"] else 2)
    return sum(torch.empty(shape, device="meta").numel() for shape in shapes)


@pytest.mark.parametrize("function", [counted, built])
def test_a_right_count_passes(function):
    assert parameters.check(function)


def as_if(**fields):
    return lambda config: counted({**config, **fields})


@pytest.mark.parametrize(
    "wrong, said",
    [
        (as_if(tie_word_embeddings=False), "twice where it is tied"),
        (as_if(tie_word_embeddings=True), "leave the head out"),
        (lambda config: counted({**config, "num_key_value_heads": config["num_attention_heads"]}), "the full width"),
        (
            lambda c: counted(c) - c["num_hidden_layers"] * c["hidden_size"] * c["intermediate_size"],
            "three: gate, up and down",
        ),
        (lambda c: counted(c) - (2 * c["num_hidden_layers"] + 1) * c["hidden_size"], "leave the norms out"),
        (lambda c: counted(c) - c["hidden_size"], "One norm is missing"),
        (lambda c: counted({**c, "num_hidden_layers": 1}), "multiply by num_hidden_layers"),
        (lambda c: c["n_layer"], "By hand"),
        (lambda c: None, "Not begun"),
    ],
)
def test_a_wrong_count_is_told_what_is_behind_it(wrong, said, capsys):
    assert not parameters.check(wrong)
    assert said in capsys.readouterr().out


def test_a_published_configuration_is_that_of_the_known_model():
    assert counted(published("llama-3-8b")) == KNOWN["llama-3-8b"].parameters
    assert repr(published("llama-3-8b")) == "llama-3-8b"
    with pytest.raises(KeyError):
        published("llama-4")


# --- what the lesson says -----------------------------------------------------------------------------------------------


def test_of_five_placements_one_fits_and_the_third_fails_by_a_little(ran):
    said = ran("08").text("ways")
    rows = re.findall(r"^(.{26}).* (fits|does not fit)$", said, re.M)
    assert [verdict for _name, verdict in rows] == ["does not fit"] * 4 + ["fits"]
    assert "Counted: 52.1 GB." in said
    weights, room = 2 * KNOWN["llama-2-13b"].parameters, 24 * GIB
    assert 0.2e9 < weights - room < 0.3e9, "26.0 GB of weights, 25.8 GB of card"
    assert f"{room / (weights / 2):.2f} bytes a parameter" in ran("08").text("ways-figure")
    assert "does not work" in ran("08").text("why").replace("\n", " ") and "<img" in ran("08").html("ways-figure")


def seconds_of(text):
    return [float(value.replace(",", "")) for value in re.findall(r" ([\d,]+\.\d+) s", text)]


def test_one_card_goes_to_seventy_billion_at_a_price(ran):
    said = ran("08").text("sizes")
    taken = seconds_of(said)
    assert len(taken) == 6 and taken == sorted(taken) and said.splitlines()[-1].endswith("does not fit")
    assert 35 < taken[3] / taken[2] < 45, "forty times as long"


def test_more_cards_wait_for_the_same_disk(ran):
    said = ran("08").text("several")
    taken = seconds_of(said)
    rates = [int(value) for value in re.findall(r"(\d+) tokens a second", said)]
    assert len(taken) == 4 and taken[0] == taken[1] == taken[2] and taken[3] == pytest.approx(taken[0] / 2, rel=0.1)
    assert rates[1] == pytest.approx(2 * rates[0], abs=1) and rates[2] == pytest.approx(4 * rates[0], abs=2)
    assert "65.5 GB each" in said and said.count("bound by disk") == 4


def dollars(text):
    return [float(value.replace(",", "")) for value in re.findall(r"\$ *([\d,]+\.\d\d)", text)]


def test_the_bill_is_seconds_times_dollars(ran):
    """By hand from what is printed, for each of six runs."""
    hours = [float(value) for value in re.findall(r": \$([\d.]+) an hour", ran("08").text("prices"))]
    said = ran("08").text("cost")
    rows = re.findall(r"([\d.]+) s a step +([\d,]+) hours +\$ *([\d,]+\.\d\d)", said)
    assert len(rows) == 6
    for (seconds, _hours, cost), hour in zip(rows, hours * 2, strict=True):
        expected = 48_829 * float(seconds) / 3600 * hour  # 100 million tokens by 2,048, rounded up
        assert float(cost.replace(",", "")) == pytest.approx(expected, rel=0.01)


def test_cheap_is_cheap_for_seven_and_dear_for_thirteen_billion(ran):
    small, large = dollars(ran("08").text("cost"))[:3], dollars(ran("08").text("cost"))[3:6]
    assert small == sorted(small), "7 billion: the cheap hour wins"
    assert large[0] > 10 * large[1] and "Calculated: 16.28 ×" in ran("08").text("cost")
    assert "<img" in ran("08").html("cost-figure")


def test_more_tokens_a_step_cost_less_and_turn_the_order(ran):
    rows = [dollars(line) for line in ran("08").text("tokens").splitlines() if "$" in line]
    assert len(rows) == 6 and all(row == sorted(row, reverse=True) for row in rows)
    first, last = [row[0] for row in rows[:3]], [row[-1] for row in rows[:3]]
    assert min(first) == first[0] and min(last) == last[2], "7 billion: first the cheap hour, then the H100"
    assert rows[3][0] > 1000 and 30 < rows[3][-1] < 35


def test_the_small_card_has_most_operations_for_a_dollar_and_pays_for_each_backward():
    table = prices.load()
    machines = [catalogue.machine(name, table) for name in ("rtx4090-nvme", "a100-80-server", "h100-80-server")]
    for_a_dollar = [machine.gpu_flops.value / machine.price.value for machine in machines]
    assert max(for_a_dollar) == for_a_dollar[0]
    once, often = (plan("llama-2-7b", machines[0], accumulation=count).time.lanes["link-down"] for count in (1, 64))
    assert often == pytest.approx(64 * once)
    once, often = (plan("llama-2-7b", machines[2], accumulation=count).time.lanes["link-down"] for count in (1, 64))
    assert often == once


def test_the_disk_is_worn_by_steps(ran):
    shares = [float(value) for value in re.findall(r"written, ([\d.]+) of", ran("08").text("wear"))]
    assert shares[0] > 8 and shares[1] == pytest.approx(shares[0] / 64, abs=0.01)


def test_prices_are_inputs(monkeypatch, tmp_path):
    """A file of one's own, as the lesson says, and a price of one's own, as its cell does."""
    mine = tmp_path / "mine.toml"
    mine.write_text('date = "2030-01"\n[machines.a100-80-server]\nhour = 13.0\nnote = "mine"\n')
    monkeypatch.setenv(prices.VARIABLE, str(mine))
    machine = catalogue.machine("a100-80-server", prices.load())
    assert machine.price.value == 13.0 and "2030-01" in machine.price.note
    ten = plan("llama-2-7b", machine, run_tokens=10**8).time.run_cost
    tenth = replace(machine, price=replace(machine.price, value=1.3))
    assert ten == pytest.approx(10 * plan("llama-2-7b", tenth, run_tokens=10**8).time.run_cost)


def test_every_exported_field_is_explained(ran):
    said = ran("08").text("deepspeed")
    assert "(not explained here)" not in said and "gradient_clipping" in said and "nvme" in said
    assert "as_accelerate" not in ran("08").text("accelerate") and "OffloadAdamW(" in ran("08").text("accelerate")


def test_without_deepspeed_ours_runs_and_the_recorded_figures_say_that_they_are(ran):
    said = ran("08").text("side")
    assert "DeepSpeed is not installed here" in said.replace("\n", " ") and "python -m bench.peers" in said
    rows = re.findall(r"^(ours, .*?) {2,}.*loss ([\d.]+) +(\d+) bytes a parameter on disk$", said, re.M)
    assert [(name, size) for name, _loss, size in rows] == [("ours, each step kept", "24"), ("ours, scratch files", "10")]
    assert len({loss for _name, loss, _size in rows}) == 1, "publishing changes no loss"
    recorded = ran("08").text("recorded")
    assert re.search(r"^Recorded on \d{4}-\d\d-\d\d, not measured here: .+$", recorded, re.M)
    assert "Recorded: 16.00 bytes." in recorded


def test_accelerate_launches_what_was_exported_or_is_said_to_be_missing(ran):
    said = ran("08").text("launch")
    assert "measured here: losses" in said or ("Accelerate is not installed" in said and "Recorded on" in said)


def test_exercises_that_are_not_begun_say_so_and_the_rest_runs(ran):
    assert "Not begun." in ran("08").text("make-check") and "Not begun." in ran("08").text("transfer-check")
    assert "Later" in ran("08").text("make-use") and "predicted" in ran("08").text("own")
    config = {
        "vocab_size": 50_000,
        "hidden_size": 4096,
        "intermediate_size": 14_336,
        "num_hidden_layers": 40,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "tie_word_embeddings": False,
    }
    assert f"{counted(config):,} parameters" in ran("08").text("own")
