"""The probes of memory, matrices and the link: the work that is timed is the right work, and figures follow from it."""

import threading

import numpy as np
import pytest
import torch

from offload_lab import kernels
from offload_lab.probes import accelerator as link
from offload_lab.probes import matrix, timing
from offload_lab.probes import update as probed
from offload_lab.probes.update import Update, update_bandwidth
from offload_lab.update import GRADIENT_ADDRESS, WEIGHT_ADDRESS


@pytest.fixture
def two_seconds_each(monkeypatch):
    """Every call takes two seconds, by the clock of these tests."""

    def repeat(work, seconds, least=3):
        work()
        return [2.0, 2.0, 2.0]

    for module in (probed, matrix, link):
        monkeypatch.setattr(module, "repeat", repeat)


def test_work_is_repeated_until_time_is_up_but_often_enough(monkeypatch):
    clock, calls = [0.0], []
    monkeypatch.setattr(timing.time, "perf_counter", lambda: clock[0])

    def work():
        calls.append(clock[0])
        clock[0] += 1.0

    assert timing.repeat(work, 5.0) == [1.0] * 4  # the first of five warms up
    assert len(timing.repeat(work, 0.0)) == 3
    assert timing.spread([1e9, 3e9]) == "median of 2, 1.00 to 3.00 GB/s"


@pytest.mark.parametrize("threads", [1, 3])
def test_the_update_is_of_every_element_once(threads, monkeypatch):
    """From m = 0 and v = 0 with a gradient of 1: m = 0.1 and v = 0.001, which a second update would change."""
    monkeypatch.setattr(probed, "_PARTITION", 1000)
    update = Update(2500, kernels.choose("auto"), threads)
    update.run()
    for part, arguments in zip(update._parts, update._arguments, strict=True):
        exp_avg, exp_avg_sq = arguments[2], arguments[3]
        assert exp_avg.size == part.numel
        np.testing.assert_allclose(exp_avg, 0.1, rtol=1e-6)
        np.testing.assert_allclose(exp_avg_sq, 0.001, rtol=1e-5)
    addresses = [int(arguments[0][0, WEIGHT_ADDRESS]) for arguments in update._arguments]
    assert np.diff(addresses).tolist() == [2000, 2000], "weights of 2 bytes, one partition behind the other"
    gradients = [int(arguments[0][0, GRADIENT_ADDRESS]) for arguments in update._arguments]
    assert min(gradients) > max(addresses) + 1000 or max(gradients) + 1000 < min(addresses), "apart from the weights"
    update.close()


def test_bandwidth_by_hand(two_seconds_each):
    """26 bytes for each of 1,000 elements in two seconds."""
    figure = update_bandwidth(1000, 1.0, kernels.choose("auto"), 2)
    assert figure.value == 13_000 and figure.source == "measured"
    assert "1,000 bfloat16 parameters, 26 bytes each, 2 threads, numba" in figure.note


def test_an_error_of_one_thread_is_raised_and_none_goes_on():
    def failing(*arguments):
        raise ZeroDivisionError("of the kernel")

    kernel = kernels.Kernel("broken", failing, failing)
    with pytest.raises(ZeroDivisionError, match="of the kernel"):
        update_bandwidth(10_000, 1.0, kernel, 3)
    assert not [thread for thread in threading.enumerate() if thread.name == "offload measure"]


def test_matrix_throughput_by_hand(two_seconds_each):
    """2 · 64³ operations in two seconds."""
    figure = matrix.matrix_flops(torch.device("cpu"), torch.float32, 64, 1.0)
    assert figure.value == 64**3 and "64 × 64 float32" in figure.note


class Pretended(link.Accelerator):
    """The host as an accelerator: the same copies, with nothing that needs one."""

    count, name, unified = 2, "pretended", False

    def __init__(self, free=1 << 30, pins=True, streams=False):
        self.device, self._free, self._pins, self._streams = torch.device("cpu"), free, pins, streams
        self.waits = 0

    def wait(self):
        self.waits += 1

    def memory(self):
        return None if self._free is None else (self._free, 4 << 30)

    def pinned(self, nbytes):
        if not self._pins:
            raise RuntimeError("CUDA error: out of memory\nmore lines")
        return torch.empty(nbytes, dtype=torch.uint8)

    def other_stream(self):
        import contextlib

        return contextlib.nullcontext() if self._streams else None


def test_the_link_by_hand(two_seconds_each):
    """4,096 bytes in two seconds in each direction; within the device each is read and written."""
    fields, told = link.probe(Pretended(), 8.0, 4096 << 8, 32)
    assert fields["gpus"] == 2 and fields["gpu_memory"].value == 4 << 30
    for name in ("host_to_device", "device_to_host"):
        assert fields[name].value == fields[f"{name}_pageable"].value == 2048 << 8
        assert "pinned" in fields[name].note and "pageable" in fields[f"{name}_pageable"].note
    assert fields["gpu_bandwidth"].value == 4096 << 8
    assert fields["gpu_flops"].value == 32**3
    assert "link_duplex" not in fields and told == []


def test_both_directions_at_once_are_called_full_duplex(two_seconds_each):
    fields, _ = link.probe(Pretended(streams=True), 8.0, 1 << 20, 32)
    assert fields["link_duplex"] == "full"  # twice the bytes in the same two seconds


def test_every_piece_of_work_is_waited_for_before_the_clock_is_read(two_seconds_each):
    """Accelerators work on when the call has returned: four kinds of copy, one within the device, two matrix products."""
    device = Pretended()
    link.probe(device, 8.0, 1 << 20, 16)
    assert device.waits == 4 + 1 + 2


def test_memory_that_cannot_be_pinned_is_a_warning_and_pageable_copies_are_measured():
    """Case 74."""
    fields, told = link.probe(Pretended(pins=False), 0.01, 1 << 20, 16)
    assert "host_to_device" not in fields and fields["host_to_device_pageable"].value > 0
    assert any("1,048,576 bytes of host memory could not be pinned (CUDA error: out of memory)" in text for text in told)


def test_copies_are_cut_to_the_memory_that_is_free():
    fields, _ = link.probe(Pretended(free=16 << 20), 0.01, 1 << 30, 16)
    assert "copies of 2,097,152 bytes" in fields["host_to_device"].note
    fields, told = link.probe(Pretended(free=None), 0.01, 1 << 20, 16)
    assert "gpu_memory" not in fields and "memory is not known" in told[0]


@pytest.mark.skipif(not torch.accelerator.is_available(), reason="needs an accelerator")
def test_a_real_accelerator():
    device = link.Accelerator.here()
    fields, _ = link.probe(device, 2.0, 64 << 20, 1024)
    assert fields["gpus"] >= 1 and fields["gpu_flops"].value > 0 and fields["device_to_host_pageable"].value > 0
