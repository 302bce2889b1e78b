"""A training on one page, and when a question comes back."""

import pytest

from course.coming_back import days, told
from course.design_page import line, page, plans, targets
from offload_lab import catalogue


@pytest.fixture(scope="module")
def made():
    return plans("llama-2-7b", catalogue.machine("rtx4090-nvme"), 1e8, sequence=1024)


def test_there_is_a_plan_for_each_tier_of_the_machine(made):
    assert list(made) == ["gpu", "ram", "disk"] and [found.placement.state for found in made.values()] == list(made)
    assert list(plans(10**8, catalogue.machine("laptop"), 1e6)) == ["ram", "disk"]
    assert line("gpu", made["gpu"]).startswith("gpu  does not fit") and " s a step" not in line("gpu", made["gpu"])
    assert "s a step, $" in line("ram", made["ram"])


def test_targets_are_the_plans_and_the_margin_and_no_wider_than_the_machine(made):
    plan = made["ram"]
    exact, wide, huge = (targets(plan, margin) for margin in (0, 0.2, 10))
    assert exact.seconds_per_step == plan.seconds_per_step and wide.seconds_per_step == pytest.approx(
        1.2 * plan.seconds_per_step
    )
    assert exact.peak_ram_bytes == plan.total("ram") and wide.peak_ram_bytes == int(1.2 * plan.total("ram"))
    assert huge.peak_gpu_bytes == plan.capacity["gpu"] and huge.cost == pytest.approx(11 * plan.time.run_cost)


@pytest.mark.parametrize("margin", [-0.1, float("nan"), float("inf")])
def test_a_margin_that_is_none_is_refused(made, margin):
    with pytest.raises(ValueError, match="margin="):
        targets(made["ram"], margin)


def test_the_page_says_what_it_rests_on_and_leaves_open_what_only_people_know(made):
    said = page(made["disk"], 0.1, "  the loss rises ", "")
    assert "longest lane: disk" in said and "Targets, 10% above the prediction:" in said
    assert "Given up when: the loss rises\n" in said and "The way back: …" in said
    assert all(warning.split()[0] in said for warning in made["disk"].warnings) and max(map(len, said.splitlines())) <= 98


def test_a_plan_that_does_not_fit_says_why_and_sets_no_targets(made):
    said = page(made["gpu"])
    assert "It does not fit." in said and "Targets" not in said


def test_what_was_missed_more_often_comes_back_more_often():
    once, thrice = days(8, 1), days(8, 3)
    assert once == sorted(once) and once[-1] > 20 and sum(thrice) < sum(once) and len(thrice) == 8
    assert [told(gap) for gap in (1 / 1440, 0.25, 3.2)] == ["1 min", "6 h", "3 d"]
    with pytest.raises(ValueError, match="missed=0"):
        days(3, 0)
