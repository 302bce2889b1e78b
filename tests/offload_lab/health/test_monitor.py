"""Each alarm provoked on purpose, once; steady runs raise none; what an alarm does."""

import logging
import random
import threading
from types import SimpleNamespace

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from offload_lab.health import Alarm, Monitor, Thresholds


@pytest.fixture
def watched(scripted, clock):
    """A monitor of a scripted optimizer, and a function that makes and observes steps."""
    free = SimpleNamespace(free=10**12)
    seen = []

    def build(thresholds=None, **options):
        monitor = Monitor(
            scripted, thresholds or Thresholds(), clock=clock, disk_usage=lambda path: free, on_alarm=seen.append, **options
        )

        def run(count, loss=2.0, seconds=1.0, **step):
            found = []
            for _ in range(count):
                clock.forward(seconds)
                scripted.step(**step)
                found += monitor.observe(loss)
            return [alarm.kind for alarm in found]

        return SimpleNamespace(monitor=monitor, run=run, seen=seen, free=free, optimizer=scripted)

    return build


@pytest.mark.parametrize(
    ("incident", "kinds"),
    [
        ({"seconds": 1.5}, ["step_time"]),
        ({"bandwidth": 0.5e9}, ["read_bandwidth", "write_bandwidth"]),
        ({"stall": 0.6}, ["stall_share"]),
        ({"hits": 0.3}, ["hit_share"]),
        ({"loss": 9.0}, ["loss"]),
        ({"loss": float("nan")}, ["not_finite"]),
        ({"loss": float("inf")}, ["not_finite"]),
        ({"skip": True}, ["skipped"]),
    ],
)
def test_an_incident_is_raised_once_and_cleared_once(watched, incident, kinds):
    it = watched()
    assert it.run(70) == []
    assert it.run(30, **incident) == kinds and it.monitor.active == kinds
    assert it.run(70) == [] and it.monitor.active == []
    assert [(event.kind, event.state) for event in it.monitor.events] == [
        *((kind, "raised") for kind in kinds),
        *((kind, "cleared") for kind in kinds),
    ]
    assert [alarm.kind for alarm in it.seen] == kinds, "the function is called for what was raised"
    assert it.run(30, **incident) == kinds, "a second event is a second alarm"


def test_the_alarm_carries_figures_and_words(watched):
    it = watched()
    it.run(70)
    it.run(30, seconds=1.5)
    (alarm,) = it.seen
    assert isinstance(alarm, Alarm) and alarm.step == 78, "the eighth slow step"
    assert (alarm.value, alarm.reference, alarm.bound) == pytest.approx((1.5, 1.0, 1.3))
    assert "time between two steps 1.5 s" in alarm.message and "1.3 s" in alarm.message and alarm.when.endswith("+00:00")


def test_space_and_wear(watched):
    # Each step writes 1000 bytes: 80 % of a million are reached with 790,000 before and the tenth step.
    it = watched(Thresholds(endurance=1_000_000, written_before=790_000, disk_free="1GB"))
    assert it.run(9) == [] and it.run(20) == ["wear"]
    assert it.seen[0].step == 10 and it.seen[0].value == 0.8
    for free, expected in ((10**9 + 1, []), (10**9, ["disk_free"]), (10**8, []), (1_050_000_000, []), (10**8, [])):
        it.free.free = free
        assert it.run(1) == expected, free
    it.free.free = 1_100_000_001
    assert it.run(1) == [] and it.monitor.active == ["wear"]


def test_the_wear_counts_from_where_the_optimizer_was(watched, scripted):
    scripted.step(), scripted.step()
    it = watched(Thresholds(endurance=1_000_000))
    it.run(1)
    assert it.monitor.figures.wear == 3000 / 1_000_000 and it.monitor.figures.hit_share == 0.5


@given(seed=st.integers(0, 2**32), width=st.floats(0, 0.2))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_steady_noisy_run_raises_nothing(seed, width):
    from tests.offload_lab.health.conftest import Clock, Scripted

    chance, clock, optimizer = random.Random(seed), Clock(), Scripted()
    monitor = Monitor(optimizer, clock=clock, disk_usage=lambda path: SimpleNamespace(free=10**12))
    for _ in range(300):

        def noisy(level):
            return level * max(1 + width * chance.gauss(0, 1), 0.01)

        clock.forward(noisy(1.0))
        optimizer.step(noisy(0.5), noisy(1e9), min(noisy(0.4), 1.0), min(noisy(0.5), 1.0))
        monitor.observe(noisy(2.0))
    assert list(monitor.events) == []


def test_pausing_stops_the_loop_until_somebody_resumes_it(watched, clock):
    it = watched(actions={"loss": "pause"})
    it.run(70)
    assert it.monitor.running.is_set()
    it.run(1, loss=50.0)
    assert it.seen[-1].action == "pause" and not it.monitor.running.is_set()
    went_on = threading.Event()

    def loop():
        it.monitor.running.wait()
        went_on.set()

    thread = threading.Thread(target=loop)
    thread.start()
    assert not went_on.wait(0.05)
    clock.forward(1000)
    it.monitor.resume()
    thread.join(10)
    assert went_on.is_set() and it.run(1) == []
    assert it.monitor.figures.step_time is None, "the pause is no slow step"
    assert it.run(1) == [] and it.monitor.figures.step_time == 1.0


def test_two_alarms_of_one_step_roll_back_once_and_then_call(watched):
    it = watched(actions={"loss": "rollback", "skipped": "rollback"})
    it.run(70)
    it.run(1, loss=50.0, skip=True)
    assert [alarm.kind for alarm in it.seen] == ["skipped", "loss"] and it.optimizer.rolled_back == 1
    assert {alarm.action for alarm in it.seen} == {"rollback"}


def test_a_function_that_raises_ends_the_loop_after_the_action(watched, scripted):
    def give_up(alarm):
        raise SystemExit(alarm.message)

    monitor = Monitor(
        scripted, on_alarm=give_up, actions={"not_finite": "rollback"}, disk_usage=lambda path: SimpleNamespace(free=10**12)
    )
    scripted.step()
    with pytest.raises(SystemExit, match="not_finite"):
        monitor.observe(float("nan"))
    assert scripted.rolled_back == 1 and monitor.active == ["not_finite"]


def test_what_cannot_be_done_is_refused_at_once(training, scripted):
    _, optimizer, _ = training(durability="checkpoint")
    for options, named in (
        ({"actions": {"los": "pause"}}, "no alarm 'los'"),
        ({"actions": {"loss": "stop"}}, "'loss': 'stop'"),
        ({"log_every": 0}, "log_every=0"),
    ):
        with pytest.raises(ValueError, match=named):
            Monitor(scripted, **options)
    for given_optimizer in (optimizer, torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))])):
        with pytest.raises(ValueError, match="publishes no step"):
            Monitor(given_optimizer, actions={"loss": "rollback"})


def test_torchs_own_optimizer_has_loss_and_step_time(clock):
    monitor = Monitor(torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))]), clock=clock)
    for _ in range(2):
        clock.forward(0.5)
        monitor.observe(torch.tensor(3.0))
    assert monitor.figures.step_time == 0.5 and monitor.figures.loss == 3.0 and monitor.figures.step is None


def test_rolling_back_a_spike_restores_the_bits_of_the_step_before(training):
    model, optimizer, step = training()
    monitor = Monitor(optimizer, Thresholds(window=5, disk_free=None), actions={"loss": "rollback"})
    for seed in range(10):
        assert monitor.observe(step(seed)) == []
    weights = [parameter.detach().clone() for parameter in model.parameters()]
    state = optimizer.state_dict()
    (alarm,) = monitor.observe(step(10, scale=1000.0))
    assert alarm.kind == "loss" and alarm.step == 11 and optimizer.stats()["steps"] == 10
    assert all(torch.equal(now, then) for now, then in zip(model.parameters(), weights, strict=True))
    restored = optimizer.state_dict()
    for number, entry in state["state"].items():
        assert all(torch.equal(value, restored["state"][number][name]) for name, value in entry.items())
    assert monitor.observe(step(11)) == [] and monitor.figures.step == 11


@pytest.mark.filterwarnings("ignore:step skipped")
def test_gradients_that_are_not_finite_are_a_skipped_step(training):
    _, optimizer, step = training()
    monitor = Monitor(optimizer, Thresholds(disk_free=None))
    step(0)
    assert monitor.observe() == [] and monitor.figures.skipped == 0
    step(1, scale=float("nan"))
    (alarm,) = monitor.observe()
    assert alarm.kind == "skipped" and monitor.figures.skipped_steps == 1 and monitor.figures.update_time is None
    step(2)
    assert monitor.observe() == [] and monitor.figures.update_time > 0


def test_the_figures_are_the_engines(training):
    _, optimizer, step = training(partition_size=300, ram_budget=100_000)
    step(0)
    monitor = Monitor(optimizer, Thresholds(disk_free=None))
    for seed in (1, 2):
        before = optimizer.stats()
        step(seed)
        monitor.observe(1.0)
        after, seen = optimizer.stats(), monitor.figures
    moved = after["bytes_read"] - before["bytes_read"]
    assert 0 < seen.hit_share < 1 and seen.hit_share == 1 - moved / (after["bytes_needed"] - before["bytes_needed"])
    assert seen.read_bandwidth == after["last_step"]["bandwidth"]["disk reads"] > 0
    waited = after["last_step"]["waited"]
    assert seen.stall_share == waited["disk reads"] + waited["disk writes"] and seen.bytes_written == after["bytes_written"]
    assert seen.disk_free > 0 and seen.step == 3


def test_it_does_not_wait_for_a_step_that_is_under_way(training, monkeypatch):
    model, optimizer, step = training(overlap="forward")
    step(0)
    monitor = Monitor(optimizer, Thresholds(disk_free=None))
    go_on = threading.Event()
    files = optimizer._engine.files
    write = files.write
    optimizer.wait()
    monkeypatch.setattr(files, "write", lambda *a, **k: (go_on.wait(60), write(*a, **k)))
    loss = model(torch.ones(1, 64)).sum()
    loss.backward()
    optimizer.step()
    monitor.observe(1.0)  # would wait for ever
    assert monitor.figures.step == 2
    go_on.set()
    optimizer.wait()


def test_a_full_disk_is_raised_while_there_is_room_for_a_save(training, tmp_path):
    """The file system's own figure, with a bound just above it."""
    import shutil

    _, optimizer, step = training()
    step(0)
    monitor = Monitor(optimizer, Thresholds(disk_free=shutil.disk_usage(tmp_path).free + 2**33))
    assert [alarm.kind for alarm in monitor.observe()] == ["disk_free"]


def test_the_log_has_alarms_as_warnings_and_a_line_of_figures(watched, caplog):
    it = watched(log_every=10)
    with caplog.at_level(logging.INFO, logger="offload_lab.health"):
        it.run(70)
        it.run(1, loss=50.0)
        it.run(9)
    lines = [record for record in caplog.records if "step_time=" in record.message]
    assert len(lines) == 8 and "step=10 loss=2 step_time=1 " in lines[0].message and lines[0].message.endswith("alarms=none")
    assert [record.message for record in caplog.records if record.levelno == logging.WARNING] == [
        "loss: loss 50; normal is 2, the bound is 2.2. Look at the batch; rollback() undoes the step that it made. (step 71)"
    ]


def test_a_meant_change_is_made_normal(watched):
    it = watched()
    it.run(70)
    assert it.run(30, seconds=2.0) == ["step_time"]
    it.monitor.rebase("step_time")
    assert it.monitor.active == [] and it.run(100, seconds=2.0) == []
