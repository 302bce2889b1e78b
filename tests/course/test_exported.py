"""Every field that an export can write is explained; what no longer exists is not."""

import pytest
import yaml

from bench import exports
from bench.plans import plan
from course.exported import MEANINGS, ROUTINE, explained, fields
from offload_lab.export import as_accelerate, as_deepspeed

CONFIGURATIONS = [
    *(as_deepspeed(plan(**options)) for options in exports.DEEPSPEED.values()),
    as_deepspeed(plan(state="gpu", model={"dtype": "float16"})),
    yaml.safe_load(as_accelerate(plan(state="disk"))),
    yaml.safe_load(as_accelerate(plan(state="ram", weights="ram", gradients="ram"), kind="deepspeed")),
    yaml.safe_load(as_accelerate(plan(state="disk"), kind="deepspeed", deepspeed_file="ds.json")),
]


def test_every_field_of_every_export_is_explained():
    written = {path for configuration in CONFIGURATIONS for path, _value in fields(configuration)}
    assert written - set(MEANINGS) <= ROUTINE
    assert set(MEANINGS) <= written, "explained, and written by no export"


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_a_line_a_field(configuration):
    said = explained(configuration)
    assert "(not explained here)" not in said and "_note" not in said
    for path, _value in fields(configuration):
        assert path in ROUTINE or path.rpartition(".")[2] in said


def test_values_are_shown_as_the_files_have_them():
    shown = explained({"bf16": {"enabled": True}, "train_batch_size": 1_048_576, "unknown": None, "debug": False})
    assert "  enabled" in shown and "true" in shown and "1,048,576" in shown
    assert "(not explained here)" in shown and "and 1 field that" in shown


def test_fields_of_a_section_stand_together_and_meanings_in_a_column():
    lines = explained(CONFIGURATIONS[1]).splitlines()
    heads = [line for line in lines if "   " not in line]
    assert len(heads) == len(set(heads)) and "zero_optimization" in heads
    inner = [line for line in lines if line not in heads]
    longest = next(line for line in inner if "stage3_gather" in line)
    assert longest.index("a saved model") == next(line for line in inner if "queue_depth" in line).index("requests under way")


def test_an_empty_one_is_no_text():
    assert explained({}) == ""
