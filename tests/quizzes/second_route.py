"""Every number of the question bank a second time, by a route that shares nothing with the formula in the bank.

Bytes come from the engine's own records (`partition.py`), its predictions (`state_bytes.py`, `planner.py`), times from the
simulator, hits from the cache, rounding from torch, and money is counted step by step in fractions.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from itertools import product

import torch

from offload_lab import catalogue
from offload_lab.caching import Cache, least_recently_used
from offload_lab.catalogue_parts import LINK_SHARE, Link, sheet
from offload_lab.hardware import Figure, Hardware
from offload_lab.partition import cut
from offload_lab.planner import plan
from offload_lab.schedule import Item, Task, in_order
from offload_lab.schedulers import write_behind
from offload_lab.simulate import simulate
from offload_lab.state_bytes import training_bytes
from offload_lab.step_time import disk
from offload_lab.work import Work


def exact(number) -> Fraction:
    return Fraction(str(number))


def whole(billions) -> int:
    return int(exact(billions) * 10**9)


def record(numel=4_194_304):
    """One partition of bfloat16 weights, as the engine lays it out: without padding at this size."""
    return cut([(0, numel, "bfloat16")], numel)[0]


def a_parameter(nbytes) -> Fraction:
    """Of the bytes of `record()`."""
    return Fraction(nbytes, record().numel)


def training(billions, gpus=1):
    return Fraction(training_bytes(whole(billions), "bfloat16", "adamw").steady_bytes, gpus)


def state(billions, dtype="bfloat16"):
    kinds = training_bytes(whole(billions), dtype, "ram").ram
    return sum(nbytes for kind, nbytes in kinds.items() if kind not in ("weights", "gradients"))


def streamed(share):
    """The partitions that are not in RAM when `share` percent are, of a hundred equal ones."""
    return range(share, 100)


def moved(billions, share, way):
    """Bytes that a step moves one way: "read" of what is streamed, "scratch" the same written, "published" all of it."""
    part, count = record(), 100 if way == "published" else len(streamed(share))
    nbytes = part.record_bytes(True) if way == "published" else part.state_bytes
    return a_parameter(nbytes) * Fraction(count, 100) * whole(billions)


def placed(billions):
    """A plan of a model whose state is in RAM and whose weights and gradients are on an accelerator."""
    return plan(
        whole(billions), catalogue.machine("h100-80-server"), batch=1, sequence=16, state="ram", weights="gpu", gradients="gpu"
    )


def over_the_link(billions, direction, rate):
    """Seconds of one direction, whose rate in the plan is replaced by `rate` GB/s."""
    own = {"link-down": "device_to_host", "link-up": "host_to_device"}[direction]
    machine = catalogue.machine("h100-80-server")
    return Fraction(placed(billions).time.lanes[direction] * getattr(machine, own).value) / whole(rate)


def most(fits, upto=200):
    """The largest number of billions for which `fits` is true, to a millionth."""
    low, high = Fraction(0), Fraction(upto)
    while high - low > Fraction(1, 10**6):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(max(1, int(middle * 10**9))) else (low, middle)
    return low


def machine(**rates):
    """One whose figures are given in GB/s; the disk is full duplex."""
    made = {name: Figure(float(rate) * 1e9, "assumed") for name, rate in rates.items()}
    return Hardware(
        "made up", Figure(1e12, "assumed"), made.pop("dram_bandwidth", Figure(1e9, "assumed")), disk_duplex="full", **made
    )


def pipeline(count, read, update, write):
    """Milliseconds a partition, turned into bytes on lanes of 1 GB/s, through the engine's own schedule."""
    items = tuple(Item(n, read * 10**6, write * 10**6, False, update * 10**6) for n in range(count))
    tasks = write_behind(Work(items, count))
    return simulate(tasks, machine(disk_read=1, disk_write=1, dram_bandwidth=1)).makespan


def side_by_side(**seconds):
    """Lanes that wait for nothing but themselves: the makespan of one task in each."""
    lanes = {"compute": ("accelerator", "compute"), "disk": ("disk-read", "read"), "dram": ("cpu", "update")}
    lanes["link"] = ("device-to-host", "fetch")
    tasks = [
        Task(number, lanes[name][1], lanes[name][0], number, int(exact(took) * 10**9), (), None)
        for number, (name, took) in enumerate(seconds.items())
    ]
    return simulate(tasks, machine(gpu_bandwidth=1, disk_read=1, dram_bandwidth=1, device_to_host=1)).makespan


def reads(count, room, steps, order):
    """Misses of a cache without a window, over `steps` scans."""
    cache, missed = Cache(room, 1, least_recently_used), 0
    for step in range(steps):
        for partition in in_order(range(count), order, step):
            missed += not cache.place(partition, lambda other: 0).hit
    return missed


def bytes_of_step(number, partitions, buffers, mb, order):
    """Read in step `number` (from 1) of a cache that is as large as the buffers."""
    cache, read = Cache(buffers, min(3, buffers), least_recently_used), 0
    for step in range(number):
        missed = [not cache.place(partition, lambda other: 0).hit for partition in in_order(range(partitions), order, step)]
        read = sum(missed) * mb * 10**6
    return read


def published_before(killed, every):
    """The last published step when the run is killed in the middle of step `killed`, by walking through its steps."""
    published = 0
    for step in range(1, killed):
        published = step if step % every == 0 else published
    return published


def moves(weight, update):
    return torch.tensor(weight, dtype=torch.float64).add(update).to(torch.bfloat16).item() != weight


def steps_until_it_moves(update):
    master, steps = 1.0, 0
    while torch.tensor(master, dtype=torch.float32).to(torch.bfloat16).item() == 1.0:
        master, steps = master + update, steps + 1
    return steps


def smallest_that_moves(weight):
    low, high = 0.0, float(weight)
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if moves(float(weight), middle) else (middle, high)
    return high


def first_step(gradient, lr):
    weight = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    weight.grad = torch.full_like(weight, gradient)
    torch.optim.AdamW([weight], lr=lr, weight_decay=0.0, eps=1e-12).step()
    return abs(weight.item())


def next_bfloat16(weight):
    bits = torch.tensor(float(weight), dtype=torch.bfloat16).view(torch.int16) + 1
    return bits.view(torch.bfloat16).item() - weight


def run(steps, seconds, price):
    """Dollars of a run whose step `n` takes `seconds(n)`; hours are counted, then paid."""
    return sum(exact(seconds(n)) for n in range(1, steps + 1)) / 60 / 60 * exact(price)


def mean(usual, every, long):
    return sum(exact(long if n == every else usual) for n in range(1, every + 1)) / every


def worst_loss(every, seconds):
    """Killed just before step n is published: what was made since the last multiple of `every`."""
    return max((n - (n - 1) // every * every) * exact(seconds) for n in range(1, 3 * every))


def pageable(gb, rate):
    link = Link("made up", "made up", sheet(rate * 1e9 / LINK_SHARE, "made up"))
    return gb * 1e9 / link.pageable.value


def half_duplex(billions, reads, writes):
    hardware = Hardware(
        "made up", Figure(1e12, "assumed"), Figure(1e9, "assumed"), disk_read=Figure(reads * 1e9, "assumed"),
        disk_write=Figure(writes * 1e9, "assumed"),
    )  # fmt: skip
    return disk(int(moved(billions, 0, "read")), int(moved(billions, 0, "published")), hardware)["disk"]


def memory_seconds(billions, rate):
    return a_parameter(record().update_bytes(False)) * whole(billions) / whole(rate)


def gpu_bytes(n):
    kinds = training_bytes(n, "bfloat16", "ram").ram
    return kinds["weights"] + kinds["gradients"]


def resting_bytes(n):
    kinds = training_bytes(n, "bfloat16", "ram").ram
    return sum(nbytes for kind, nbytes in kinds.items() if kind not in ("weights", "gradients"))


def written(billions, rate):
    """Seconds of the writes of a step in scratch files."""
    return moved(billions, 0, "scratch") / whole(rate)


def runs_of_the_revealer(kinds):
    """Each kind is held back or not."""
    return len(list(product([False, True], repeat=kinds)))


ROUTES = {
    "l00-update-seconds": memory_seconds,
    "l00-tebibytes": lambda tb: exact(tb) * 10**12 / 1024**3,
    "g00-1": lambda billions, rate: Fraction(state(billions)) / whole(rate),
    "l01-gigabytes": lambda: state(3),
    "g01-3": lambda: state(6, "float32"),
    "l01-whole": training,
    "l01-largest": lambda gib: most(lambda n: training_bytes(n, "bfloat16", "adamw").steady_bytes <= gib * 1024**3),
    "l02-first-step": first_step,
    "l02-spacing": next_bfloat16,
    "l02-collected": steps_until_it_moves,
    "g02-1": smallest_that_moves,
    "l03-down": lambda billions: over_the_link(billions, "link-down", 1) * 10**9,
    "l03-link-seconds": lambda billions, rate: over_the_link(billions, "link-down", rate),
    "g03-1": lambda billions: over_the_link(billions, "link-up", 1) * 10**9,
    "l03-accumulated": lambda micro, count, update: (
        100 * (sum([exact(micro)] * count) + exact(update)) / sum([exact(micro)] * count) - 100
    ),
    "l04-bound": lambda compute, disk: side_by_side(compute=compute, disk=disk),
    "l04-pageable-seconds": lambda rate, gb: pageable(gb, rate),
    "l04-pipeline": pipeline,
    "g04-1": pipeline,
    "l05-reads": partial(moved, way="read"),
    "l05-durable-writes": partial(moved, way="published"),
    "l05-wear": lambda tbw, billions: tbw * 10**12 / moved(billions, 0, "published"),
    "l05-space": lambda billions: training_bytes(whole(billions), "bfloat16", "disk").disk_bytes,
    "g05-1": half_duplex,
    "g05-2": lambda billions, every: (
        sum(moved(billions, 0, "published" if n == every else "scratch") for n in range(1, every + 1)) / every
    ),
    "l06-pinned-share": lambda count, kept: Fraction(100 * sum(place < kept for place in range(count)), count),
    "l06-lru-reads": partial(reads, order="forward"),
    "g06-1": partial(reads, order="alternating"),
    "g06-4": partial(bytes_of_step, 4, order="alternating"),
    "l06-traffic": lambda share: (
        100 * (moved(1, share, "read") + moved(1, share, "published")) / (moved(1, 0, "read") + moved(1, 0, "published"))
    ),
    "g06-3": lambda billions, share: moved(billions, share, "read") + moved(billions, share, "scratch"),
    "l07-cases": runs_of_the_revealer,
    "l08-remains": lambda billions: sum(placed(billions).phases["peak"]["gpu"][kind] for kind in ("weights", "gradients")),
    "l08-run-cost": lambda price, seconds, tokens, millions: (
        Fraction(millions * 10**6, tokens) * exact(seconds) * exact(price) / (60 * 60)
    ),
    "l08-slow-and-cheap": lambda slower, cheaper: run(10, lambda n: slower, Fraction(1, cheaper)) / run(10, lambda n: 1, 1),
    "l08-sharded": lambda gpus, billions: training(billions, gpus),
    "g08-1": lambda gb, reserve: most(lambda n: gpu_bytes(n) + reserve * 10**9 <= gb * 10**9),
    "g08-2": lambda dear, fast, cheap, slow, steps: run(steps, lambda n: slow, cheap) * 1000,
    "l09-mean": mean,
    "l09-lost": worst_loss,
    "g09-1": lambda thousands, usual, every, long, price: (
        run(thousands * every, lambda n: usual if n % every else long, price) * 1000 / every
    ),
    "l10-c2c": lambda billions: 4 * whole(billions) / catalogue.link("nvlink-c2c").line_rate.value,
    "l10-limit": lambda compute, dram, disk, times: side_by_side(compute=compute, dram=dram, disk=exact(disk) / times),
    "l10-all-faster": lambda seconds, times: side_by_side(disk=exact(seconds) / times),
    "g10-1": lambda link, dram, billions: side_by_side(
        link=Fraction(4 * whole(billions), whole(link)), dram=memory_seconds(billions, dram)
    ),
    "l11-card": lambda billions: sum(
        nbytes
        for kind, nbytes in training_bytes(whole(billions), "float32", "disk").ram.items()
        if kind in ("weights", "gradients")
    ),
    "l11-streams": lambda billions, free: state(billions, "float32") - Fraction(60, 100) * whole(free),
    "l11-next-step": lambda every, killed: published_before(killed, every) + 1,
    "g11-1": lambda seconds, every, killed: run(killed - 1 - published_before(killed, every), lambda n: seconds, 60 * 60),
    "l12-streamed": lambda billions, kept, rate: (state(billions) - kept * 10**9) / whole(rate),
    "l12-bill": lambda compute, memory, disk, price, thousands: (
        run(1, lambda n: side_by_side(compute=compute, dram=memory, disk=disk), price) * thousands * 1000
    ),
    "l12-worn": lambda billions, seconds, tbw: tbw * 10**12 / moved(billions, 0, "scratch") * seconds,
    "g12-1": lambda gb, reserve, ram: (
        most(lambda n: gpu_bytes(n) <= (gb - reserve) * 10**9 and resting_bytes(n) <= ram * 10**9) * 10**9
    ),
    "g12-3": lambda billions, read, write, millions: (
        Fraction(millions * 10**6, 8192)
        * exact(side_by_side(compute=5, disk=moved(billions, 0, "read") / whole(read), link=written(billions, write)))
    ),
}
