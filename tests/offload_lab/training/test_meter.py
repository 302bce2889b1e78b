"""The meter against hand arithmetic."""

import gc
import mmap
import threading

import pytest
import torch
from torch import nn

from offload_lab import OffloadAdamW, OffloadPolicy
from offload_lab.masters import MasterWeights
from offload_lab.meter import Meter, Sampler, peak_rss, rss, vm_data


def network():
    return nn.Sequential(nn.Linear(10, 20), nn.Tanh(), nn.Linear(20, 5))


N = 10 * 20 + 20 + 20 * 5 + 5


def test_bytes_of_adamw_are_sixteen_a_parameter():
    model = network()
    optimizer = torch.optim.AdamW(model.parameters())
    meter = Meter(model, optimizer)
    first = meter.read()
    assert (first.weights, first.gradients, first.optimizer_ram, first.optimizer_disk) == (4 * N, 0, 0, 0)
    model(torch.zeros(3, 10)).sum().backward()
    assert meter.read().gradients == 4 * N
    optimizer.step()
    last = meter.read()
    assert (last.optimizer_ram, last.optimizer_disk, last.ram) == (8 * N, 0, 16 * N)


def test_an_offloaded_optimizer_is_read_by_tier(tmp_path):
    model = network()
    policy = OffloadPolicy(tier="disk", directory=tmp_path)
    with OffloadAdamW(model.parameters(), offload=policy) as optimizer:
        reading = Meter(model, optimizer).read()
        assert {"ram": reading.optimizer_ram, "disk": reading.optimizer_disk} == optimizer.memory()
        assert reading.optimizer_disk >= 2 * 12 * N


def test_activations_are_what_backward_needs_and_go_with_it():
    model = network()
    meter = Meter(model, torch.optim.AdamW(model.parameters()))
    inputs = torch.zeros(3, 10)
    with meter.watching():
        loss = model(inputs).sum()
        # the input of each Linear, and the output of Tanh, which is the second one's input: one storage
        assert meter.read().activations == 4 * (3 * 10 + 3 * 20)
        loss.backward()
    del loss
    assert meter.read().activations == 0


def test_a_graph_that_is_thrown_away_is_not_counted_any_more():
    model = network()
    meter = Meter(model, torch.optim.AdamW(model.parameters()))
    with meter.watching():
        loss = model(torch.zeros(3, 10)).sum()
    assert meter.read().activations > 0
    del loss
    gc.collect()
    assert meter.read().activations == 0


def test_tied_weights_count_once():
    model = network()
    model[2].weight = nn.Parameter(torch.zeros(10, 20).T[:, :10].contiguous())
    tied = nn.ModuleList([model[0], model[0]])
    assert Meter(tied, torch.optim.AdamW(tied.parameters())).read().weights == 4 * 220


class Counting:
    def __init__(self, error=None):
        self.reads, self.error = 0, error

    def read(self):
        self.reads += 1
        if self.error is not None and self.reads > 2:
            raise self.error
        return Meter(network(), torch.optim.AdamW(network().parameters()), clock=lambda: float(self.reads)).read()


def test_readings_are_bounded_evenly_spaced_and_peaks_are_kept():
    sampler = Sampler(Counting(), limit=10)
    for _ in range(100):
        sampler.sample()
    assert 5 <= len(sampler.readings) <= 10
    assert sampler.peak("weights") == 4 * N and sampler.peak("ram") == 4 * N


def test_no_thread_is_left_and_stopping_twice_is_once():
    with Sampler(Counting(), interval=0.001) as sampler:
        pass
    sampler.stop()
    assert not [thread for thread in threading.enumerate() if thread.name == "memory sampler"]
    assert len(sampler.readings) >= 2


@pytest.mark.parametrize("error", [RuntimeError("no meter"), KeyError("no meter"), SystemExit("no meter")])
def test_what_reading_raises_is_raised_by_stop(error):
    sampler = Sampler(Counting(error), interval=0.0001).start()
    sampler._worker.join(timeout=20)
    with pytest.raises(type(error), match="no meter"):
        sampler.stop()
    sampler.stop()


def test_a_graph_that_the_collector_finds_while_the_meter_counts():
    """An error keeps a graph alive in a cycle; the collector may free it in the middle of a count, in the same thread."""
    model = network()
    meter = Meter(model, torch.optim.AdamW(model.parameters()))
    with meter.watching():
        cycle = [model(torch.zeros(3, 10)).sum()]
    cycle.append(cycle)
    del cycle
    done = threading.Event()

    def collects_while_counting():
        with meter._lock:
            gc.collect()
        done.set()

    threading.Thread(target=collects_while_counting, daemon=True).start()
    assert done.wait(20), "the finalizer waits for a lock that its own thread holds"
    assert meter.read().activations == 0


def test_gradients_set_to_none_are_gone_and_those_kept_are_not():
    model = network()
    optimizer = torch.optim.AdamW(model.parameters())
    meter = Meter(model, optimizer)
    model(torch.zeros(3, 10)).sum().backward()
    model[0].zero_grad()
    assert meter.read().gradients == 4 * (20 * 5 + 5)
    optimizer.zero_grad(set_to_none=False)
    assert meter.read().gradients == 4 * (20 * 5 + 5)
    assert Meter(model, optimizer).read().gradients == 4 * (20 * 5 + 5)


def test_a_gradient_that_disappears_while_it_is_read():
    """Reading `parameter.grad` from here would crash the process within seconds."""
    model = network()
    optimizer = torch.optim.AdamW(model.parameters())
    stop = threading.Event()

    def trains():
        while not stop.is_set():
            optimizer.zero_grad()
            model(torch.zeros(3, 10)).sum().backward()
            optimizer.step()

    thread = threading.Thread(target=trains)
    thread.start()
    try:
        with Sampler(Meter(model, optimizer), interval=0.0005) as sampler:
            while len(sampler.readings) < 200:
                stop.wait(0.005)
    finally:
        stop.set()
        thread.join()
    assert sampler.peak("gradients") == 4 * N


def test_process_figures():
    assert rss() > 10_000_000
    if peak_rss() is None:
        pytest.skip("this system has no /proc")
    assert peak_rss() >= rss() * 0.9
    before = vm_data()
    # Straight from the kernel: an allocator may answer from a heap that earlier tests left behind, and VmData stays.
    with mmap.mmap(-1, 50_000_000, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS):
        assert vm_data() - before >= 45_000_000


def test_master_weights_are_read_while_they_train():
    """Their float32 gradients are counted without being touched from here, for the same reason."""
    model = network().to(torch.bfloat16)
    optimizer = MasterWeights(model.parameters(), lambda masters: torch.optim.AdamW(masters))
    meter = Meter(model, optimizer)
    with Sampler(meter, interval=0.0002) as sampler:
        for _ in range(300):
            model(torch.zeros(3, 10, dtype=torch.bfloat16)).sum().backward()
            optimizer.step()
    assert sampler.readings[-1].optimizer_ram == 12 * N and sampler.readings[-1].gradients == 0
