"""The plan as data: what is written is what is read, and what cannot be read is told by its field."""

import json
from dataclasses import replace

import pytest

from offload_lab import catalogue, plan
from offload_lab.plan import PHASES, Plan


@pytest.fixture(scope="module")
def made() -> Plan:
    return plan("gpt2", catalogue.machine("laptop"), state="disk", directory="state", run_tokens=1e6, loss=3.2)


def test_what_is_written_is_read_again(made):
    assert Plan.from_json(made.to_json()) == made
    object_ = json.loads(made.to_json())
    assert object_["fits"] is True and isinstance(object_["why"], str)
    assert object_["tiers"] == object_["phases"]["peak"] and set(object_["phases"]) == set(PHASES)
    assert object_["placement"] == {"state": "disk", "weights": "ram", "gradients": "ram", "runs_with": "offload_lab"}
    assert object_["offload"]["directory"] == "state" and object_["offload"]["ram_budget"] > 0
    assert object_["targets"]["loss"] == 3.2 and object_["targets"]["seconds_per_step"] == made.seconds_per_step
    assert object_["targets"]["peak_ram_bytes"] == sum(object_["tiers"]["ram"].values())


@pytest.mark.parametrize(
    "change, named",
    [
        (lambda d: d.pop("model"), r"plan is incomplete: .*'model'"),
        (lambda d: d["model"].pop("dtype"), r"plan\.model is incomplete: .*'dtype'"),
        (lambda d: d["model"].update(dtype="int8"), r"plan\.model\.dtype='int8': one of 'float32'"),
        (lambda d: d["model"].update(batch="4"), r"plan\.model\.batch='4': int"),
        (lambda d: d["model"].update(batch=True), r"plan\.model\.batch=True: int"),
        (lambda d: d["placement"].update(state="nvme"), r"plan\.placement\.state='nvme': one of 'gpu', 'ram', 'disk'"),
        (lambda d: d["targets"].update(loss=-1), r"plan\.targets\.loss=-1: a finite number"),
        (lambda d: d["targets"].update(speed=1), r"plan\.targets has no field speed; it has seconds_per_step"),
        (lambda d: d["phases"]["peak"]["ram"].update(weights=1.5), r"plan\.phases\.peak\.ram\.weights=1\.5: int"),
        (lambda d: d["phases"].pop("peak"), r"plan\.phases has no peak"),
        (lambda d: d.update(tried={}), r"plan\.tried=\{\}: a list"),
        (lambda d: d.update(hardware=[]), r"plan\.hardware=\[\]: an object"),
        (lambda d: d["hardware"].pop("ram"), r"hardware is incomplete"),
        (lambda d: d.update(format=0), r"format=0: .*format 1; make the plan again"),
    ],
)
def test_what_is_wrong_is_named(made, change, named):
    given = json.loads(made.to_json())
    change(given)
    with pytest.raises(ValueError, match=named):
        Plan.from_dict(given)


@pytest.mark.parametrize("text", ["", "{", "[1]", "null"])
def test_what_is_no_plan_is_told(text):
    with pytest.raises(ValueError, match=r"no plan|a plan is a JSON object"):
        Plan.from_json(text)


def test_a_plan_reads_as_text(made):
    said = str(made)
    assert "predicted" in said and made.why in said and "state on disk" in said
    assert "does not fit" in str(replace(made, fits=False))
