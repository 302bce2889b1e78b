"""Reading plans: what is old, foreign or damaged is one error; nothing else ever comes out of an export."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.plans import GB, plan
from offload_lab.export import ExportError, Recipe, as_accelerate, as_deepspeed, as_fsdp, read_plan
from offload_lab.export.recipe import check
from offload_lab.plan import Plan

EXPORTS = (as_deepspeed, as_accelerate, as_fsdp)


def written(tmp_path, content):
    path = tmp_path / "plan.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def test_a_plan_is_read_back(tmp_path):
    assert read_plan(written(tmp_path, plan("ram").to_json())) == plan("ram")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "JSON"),
        ('{"format": 1, "fits"', "JSON"),
        ("[1, 2]", "JSON object"),
        ({"train_batch_size": 8, "zero_optimization": {"stage": 2}}, "format"),
        (plan().to_dict() | {"format": 0}, "format=0"),
        (plan().to_dict() | {"format": 99}, "format=99"),
        ({k: v for k, v in plan().to_dict().items() if k != "placement"}, "placement"),
        (plan().to_dict() | {"colour": "red"}, "colour"),
        (plan().to_dict() | {"phases": {}}, "phases"),
        (plan(model={"batch": 0}).to_dict(), "plan.model.batch=0"),
        (plan(offload={"directory": None}).to_dict(), "directory"),
        (plan("gpu", gpus=0).to_dict(), "gpus=0"),
    ],
)
def test_what_is_no_plan_of_this_edition_is_one_error_that_names_the_file(tmp_path, content, says):
    path = written(tmp_path, content)
    with pytest.raises(ValueError, match=says) as told:
        read_plan(path)
    assert str(path) in str(told.value) and "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("name", "junk"),
    [
        ("gpus", "two"),
        ("gpus", -1),
        ("gpus", True),
        ("ram", None),
        ("ram", 64),
        ("disk_read", 1e9),
        ("warnings", None),
        ("warnings", "full"),
        ("disk_duplex", "none"),
        ("unified", 1),
        ("name", 5),
    ],
)
def test_a_damaged_machine_is_an_error_that_names_the_field(tmp_path, name, junk):
    damaged = plan().to_dict()
    damaged["hardware"][name] = junk
    with pytest.raises(ValueError, match=f"hardware: {name}="):
        read_plan(written(tmp_path, damaged))


def test_bytes_that_are_no_text(tmp_path):
    path = tmp_path / "plan.json"
    path.write_bytes(b"\x80\x04\x95pickle")
    with pytest.raises(ValueError, match="UTF-8"):
        read_plan(path)


def test_a_plan_that_does_not_fit_is_not_exported():
    for export in EXPORTS:
        with pytest.raises(ExportError, match=r"does not fit.*weights take 26 GB"):
            export(plan(fits=False, why="The weights take 26 GB."))


def leaves(value, path=()):
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*path, key)
        if isinstance(item, dict | list):
            yield from leaves(item, (*path, key))


WHOLE = plan().to_dict()
PATHS = sorted(leaves(WHOLE), key=str)
JUNK = st.sampled_from([None, True, -1, 0, 1.5, 10**30, "", "gpu", "ram", "disk", "fp8", "\x00'\"\\{}", [], {}, [[]], {"a": 1}])


@given(st.sampled_from(PATHS), JUNK | st.just("delete"))
def test_a_damaged_plan_is_an_error_or_a_plan(path, junk):
    """Every field in turn, deleted or replaced: what comes is ValueError, or an export of what the file then says."""
    damaged = copy.deepcopy(WHOLE)
    inner = damaged
    for key in path[:-1]:
        inner = inner[key]
    if junk == "delete":
        del inner[path[-1]]
    else:
        inner[path[-1]] = junk
    try:
        read = Plan.from_dict(damaged)
        check(read)
    except ValueError:
        return
    for export in EXPORTS:
        try:
            result = export(read)
        except ExportError:
            continue
        if export is as_fsdp:
            compile(result, "train.py", "exec")
        else:
            assert json.dumps(result)


@pytest.mark.parametrize(
    "wrong",
    [
        {"lr": -1},
        {"lr": float("nan")},
        {"lr": "fast"},
        {"betas": (0.9, 1.0)},
        {"eps": -1e-8},
        {"weight_decay": True},
        {"clip": 0.0},
    ],
)
def test_a_wrong_setting_is_named(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Recipe(**wrong)


def test_the_defaults_are_those_of_torchs_adamw():
    """DS#5214: DeepSpeed's own weight decay is 0."""
    import torch

    theirs = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))]).defaults
    for name, value in Recipe().arguments().items():
        assert value == (list(theirs[name]) if name == "betas" else theirs[name])


@pytest.mark.parametrize("tier", ["ram", "disk"])
def test_deepspeed_takes_more_than_planned_and_is_refused_where_that_is_not_there(tier):
    """A million parameters: 16 MB of float32 master, moments and gradient, whatever the plan counts on."""
    there = {"gpu": GB, "ram": GB, "disk": GB}
    assert as_deepspeed(plan(tier, capacity=there | {tier: 16_000_000}))
    with pytest.raises(ExportError, match=r"16,000,000 bytes .* 15,999,999"):
        as_deepspeed(plan(tier, capacity=there | {tier: 15_999_999}))
