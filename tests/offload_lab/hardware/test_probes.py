"""The probes of memory, matrices and the link: the work that is timed is the right work, and figures follow from it."""

import pytest
import torch

from offload_lab.engine_bytes import engine_bytes
from offload_lab.hardware import Figure
from offload_lab.models import ModelSpec
from offload_lab.policy import OffloadPolicy
from offload_lab.probes import accelerator as link
from offload_lab.probes import matrix, timing
from offload_lab.probes import update as probed
from offload_lab.probes.update import update_bandwidth


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


def test_bandwidth_by_hand(two_seconds_each):
    """28 bytes for each of the elements in two seconds; two tensors, of which one is not whole."""
    elements = (4 << 20) + 1000
    figure = update_bandwidth(elements, 1.0)
    assert figure.value == 14 * elements and figure.source == "measured"
    assert f"{elements:,} bfloat16 parameters in RAM, 28 bytes each, {torch.get_num_threads()} threads, numba" in figure.note


def test_the_bytes_that_a_step_moves_are_those_of_the_plan():
    counted = engine_bytes(ModelSpec.sized(1_000_000), "bfloat16", OffloadPolicy(partition_size=1 << 20))
    assert counted.dram == pytest.approx(probed.BYTES_MOVED * 1_000_000, rel=0.01)


def test_what_a_step_takes_beside_its_bytes_by_hand(monkeypatch, tmp_path):
    """A step of one tensor takes 2 s, one of 256 takes 512: 2 s for each tensor more."""
    seen = []

    def repeat(work, seconds, least=3):
        work()
        (group,) = work.__self__.param_groups
        seen.append([parameter.numel() for parameter in group["params"]])
        return [2.0 * len(group["params"])] * 3

    monkeypatch.setattr(probed, "repeat", repeat)
    step, tensor = probed.step_seconds(1.0)
    assert step.value == 2 and tensor.value == 2 and seen == [[16], [16] * 256]
    published = probed.publish_seconds(tmp_path, 1.0)
    assert published.value == 2 and "on disk" in published.note and list(tmp_path.iterdir()) == []


def test_an_interrupted_step_on_disk_leaves_nothing(monkeypatch, tmp_path):
    def interrupted(work, seconds, least=3):
        work()
        raise KeyboardInterrupt

    monkeypatch.setattr(probed, "repeat", interrupted)
    with pytest.raises(KeyboardInterrupt):
        probed.publish_seconds(tmp_path, 1.0)
    assert list(tmp_path.iterdir()) == []


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
    """Accelerators work on when the call has returned: four kinds of copy, one within the device, three matrix products."""
    device = Pretended()
    link.probe(device, 8.0, 1 << 20, 16)
    assert device.waits == 4 + 1 + 3


@pytest.mark.parametrize("bfloat16, formats", [(8.1, ("float16",)), (60.0, ("bfloat16", "float16"))])
def test_a_format_that_is_emulated_is_found_by_its_speed(monkeypatch, bfloat16, formats):
    rates = {torch.bfloat16: bfloat16, torch.float16: 65.0, torch.float32: 8.1}
    monkeypatch.setattr(link, "matrix_flops", lambda device, dtype, *_: Figure(rates[dtype] * 1e12, "measured"))
    fields, _ = link.probe(Pretended(), 0.01, 1 << 20, 16)
    assert fields["gpu_dtypes"] == formats and fields["gpu_flops"].value == 65e12
    assert fields["gpu_flops_float32"].value == 8.1e12


def test_an_accelerator_without_a_16_bit_product_says_so(monkeypatch):
    def only_float32(device, dtype, *_):
        if dtype != torch.float32:
            raise RuntimeError("not implemented for this type")
        return Figure(1e12, "measured")

    monkeypatch.setattr(link, "matrix_flops", only_float32)
    fields, told = link.probe(Pretended(), 0.01, 1 << 20, 16)
    assert "gpu_flops" not in fields and "gpu_dtypes" not in fields and fields["gpu_flops_float32"].value == 1e12
    assert any("no matrix product in bfloat16 or float16" in text for text in told)


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
