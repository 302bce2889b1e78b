# %% [markdown] id="title"
# # 4 · Hiding the transfers
#
# Time that nobody waits for costs nothing. In this lesson you draw a step as a timeline, find out who waits for whom, let
# transfers run while something else computes, and see when that cannot help. At the end you write the schedule yourself, and it
# is scored against the best that any schedule could do. It takes about forty-five minutes; running all cells takes about twenty
# seconds.

# %% [markdown] id="recall"
# ## Recall
#
# - From lesson 3: gradients and 16-bit weights come down the link, the CPU updates, new weights go up. Each arrow is a wait.
# - From lesson 0: parts that overlap cost no more than the slowest of them.
#
# ## Predict
#
# The state of a model is cut into **10 partitions**. Each is read in 30 ms, updated in 15 ms, and written in 25 ms. Reading,
# updating and writing are three *lanes*: each does one thing at a time, and they do not disturb each other.

# %% id="predict-lanes"
from course.prediction import Prediction

lanes = Prediction(
    "04-lanes",
    "As well as can be overlapped: how long do the ten partitions take together?",
    most=10,
    unit="seconds",
    called="lanes",
)
lanes.show()

# %% [markdown] id="predict-saved-text"
# And a training step, in which forward and backward together take twice as long as the update.

# %% id="predict-saved"
saved = Prediction(
    "04-saved",
    "By how many per cent can overlap shorten such a step, at the very most?",
    most=100,
    unit="percent",
    called="saved",
)
saved.show()

# %% [markdown] id="timeline-text"
# ## A step as a timeline
#
# A step is a list of tasks. Each has a lane, a number of bytes, and the tasks that it waits for. The same list can be run in
# two ways: by the engine, on real threads and files, or by a **simulator** that only divides bytes by bandwidths. What the
# simulator says is predicted, always.
#
# Start with the plainest list: read, update, write, one partition after the other, in one buffer.

# %% id="one-by-one"
from offload_lab.hardware import Figure, Hardware
from offload_lab.plots import timeline
from offload_lab.schedule import Item
from offload_lab.simulate import simulate
from offload_lab.work import TaskList, Work

rate = Figure(1e9, "assumed", "made up: 1 GB/s, so that 1 MB takes 1 ms")
machine = Hardware(
    "made up", ram=rate, dram_bandwidth=rate, disk_read=rate, disk_write=rate, disk_duplex="full"
)
items = tuple(
    Item(number, read_bytes=30_000_000, write_bytes=25_000_000, resident=False, update_bytes=15_000_000)
    for number in range(10)
)
work = Work(items, buffers=4)


def one_by_one(work):
    tasks, written = TaskList(), None
    for item in work.items:
        read = tasks.read(item, buffer=0, after=written)
        update = tasks.update(item, buffer=0, after=read)
        written = tasks.write(item, buffer=0, after=update)
    return tasks


plain = simulate(one_by_one(work), machine)
timeline(plain.events, source="predicted", title="One partition after the other")

# %% [markdown] id="one-by-one-read"
# 10 × (30 + 15 + 25) = 700 ms, and at any moment two of three lanes stand still. A gap in a lane is not a pause that it needs.
# It **waits**: the CPU for the read before it, the disk for the update. The lane with the widest gaps is the fast one, not the
# slow one.
#
# What would have to be different for the next read to begin earlier? It needs another buffer. With enough of them, all three
# lanes work at the same time:

# %% id="pipelined"
from offload_lab.schedulers import write_behind

good = simulate(write_behind(work), machine)
lanes.compare(good.makespan, "Simulated")
timeline(good.events, source="predicted", title="Read ahead, write behind")

# %% [markdown] id="pipelined-read"
# 10 × 30 + 15 + 25 = 340 ms. The slowest lane never pauses: it sets the time. In front of it or behind it is only what has
# nothing left to hide behind: here the update and the write of the last partition. No schedule can do better on this machine,
# for the disk has to read 300 MB at 1 GB/s, and after the last byte of those there is still something to do.
#
# If another lane is the slowest, the same sum is turned around: it waits for one task before it can begin, runs without a
# pause, and is followed by one.
#
# ### When is a buffer free?
#
# Buffers are few. When may partition 4 be read into the buffer where partition 0 was? **When the write of partition 0 has
# ended.** Not when its update has, and not when its write has begun: until then, the buffer holds the only copy of the new
# state. Leave that wait out, and on most days it even works. The engine does not wait for the day when it does not: it checks a
# list before it runs it.

# %% id="race"
from offload_lab.validation import ScheduleError, checked_tasks


def too_early(work):
    tasks, updated = TaskList(), {}
    for item in work.items:
        buffer = item.partition % 4
        # The update of what was there is over. Is its write?
        read = tasks.read(item, buffer, after=updated.get(buffer))
        updated[buffer] = tasks.update(item, buffer, after=read)
        tasks.write(item, buffer, after=updated[buffer])
    return tasks


try:
    checked_tasks(too_early, work)
except ScheduleError as error:
    print(error)

# %% [markdown] id="engine-text"
# ### The real one beside the predicted one
#
# Now the engine itself, with its state in RAM and a pretended link of 1 GB/s each way (as in lesson 3: real copies, made-up
# seconds). Its lanes are the copies down, the update, and the copies up. Afterwards the simulator is given the same list of
# tasks, and the figures of your machine. Do the two agree?

# %% id="engine"
from dataclasses import replace

import torch

from course.machine import yours
from course.pretend import PretendLink
from offload_lab import OffloadAdamW
from offload_lab.plots import predicted_over_measured

LINK = 1e9
own = yours(seconds=4)
mine = replace(
    own,
    host_to_device=Figure(LINK, "assumed", "pretended"),
    device_to_host=Figure(LINK, "assumed", "pretended"),
    link_duplex="full",
)
weights = [torch.nn.Parameter(torch.randn(1_500_000).bfloat16()) for _ in range(8)]
with PretendLink(LINK, LINK).in_place(), OffloadAdamW(weights, lr=1e-5) as optimizer:
    for _ in range(3):
        for weight in weights:
            weight.grad = torch.ones_like(weight)
        optimizer.trace.clear()
        optimizer.step()
    measured, tasks, stats = optimizer.trace.events(), optimizer.last_tasks, optimizer.stats()
predicted = simulate(tasks, mine)
predicted_over_measured(predicted.events, measured, title="A step over a pretended link of 1 GB/s")

# %% [markdown] id="engine-read"
# Down is the busy lane: 4 bytes a parameter, against 2 up, and the update hides behind it almost wholly. (Where the two differ,
# your machine did something else meanwhile, or a short sleep of the pretended link was longer than it was told to be.)
#
# ## Pinned and pageable
#
# A device fetches host memory by itself, by its physical address. But the operating system may move an ordinary, **pageable**
# page, or swap it out. So the driver first copies pageable data into a buffer that must not move, a **pinned** one, and the
# device fetches from there. Each byte moves twice. It is the same DRAM, at the same speed; what pinning saves is a pass over
# the bytes.

# %% id="pinned"
from offload_lab import catalogue

GIGABYTES = 14  # the 16-bit weights of 7 billion parameters
for name in ("pcie3x16", "pcie4x16", "pcie5x16"):
    link = catalogue.link(name)
    pinned, pageable = link.pinned.value, link.pageable.value
    print(f"{name}: pinned {pinned / 1e9:4.1f} GB/s, {GIGABYTES * 1e9 / pinned:4.2f} s", end="   ")
    print(f"pageable {pageable / 1e9:4.1f} GB/s, {GIGABYTES * 1e9 / pageable:4.2f} s   assumed")
if own.host_to_device and own.host_to_device_pageable:
    pinned, pageable = own.host_to_device.value, own.host_to_device_pageable.value
    print(f"\nyours:    pinned {pinned / 1e9:4.1f} GB/s, pageable {pageable / 1e9:4.1f} GB/s   measured")
else:
    print("\nNo accelerator here, so nothing was measured.")

# %% [markdown] id="pinned-read"
# Why not pin everything, then? A pinned page is gone for everybody else, and cannot be swapped. Pinning takes time, too. And
# torch's own allocator of pinned memory rounds each request up to a power of two: ask for 65 MiB, and 128 are gone.
#
# The engine pins three small **slabs**, and uses them in turn: one is being filled, one is updated, one is sent.

# %% id="slabs"
state = stats["resident_bytes"]
print(f"state in RAM:  {state / 1e6:6.1f} MB, pageable: it never crosses the link")
print(f"three slabs:   {stats['staging_bytes'] / 1e6:6.1f} MB, {stats['staging']} (here in name only)")
if torch.cuda.is_available() and hasattr(torch.cuda, "host_memory_stats"):
    asked = 65 << 20
    had = torch.cuda.host_memory_stats().get("allocated_bytes.current", 0)
    block = torch.empty(asked, dtype=torch.uint8, pin_memory=True)
    got = torch.cuda.host_memory_stats().get("allocated_bytes.current", 0) - had
    print(f"torch was asked for {asked >> 20} MiB and pinned {got >> 20} MiB more, measured")
    del block
else:
    print("torch's own:   not measured, there is no CUDA device")

# %% [markdown] id="overlap-text"
# ## Overlap
#
# So far a step hid its own transfers behind each other. The larger thing to hide behind is **compute**.
# `OffloadPolicy(overlap=…)` says how:
#
# | | what happens |
# |---|---|
# | `"none"` | `step()` returns when the update is over |
# | `"forward"` | `step()` returns at once; the update goes on during the next forward, and whoever reads a weight waits for that weight |
# | `"backward"` | a partition is updated as soon as backward has brought its last gradient; the rest goes on during the next forward |
#
# "Whoever reads a weight waits" needs no change to the model. Look:

# %% id="waits"
import statistics
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from offload_lab import OffloadPolicy

with PretendLink(LINK / 4, LINK / 4).in_place():
    with OffloadAdamW(weights, lr=1e-5, offload=OffloadPolicy(overlap="forward")) as optimizer:
        for _ in range(2):  # the first step makes the slabs; look at the second
            for weight in weights:
                weight.grad = torch.ones_like(weight)
            optimizer.wait()
            begun = time.perf_counter()
            optimizer.step()
        print(f"step() returned after      {1000 * (time.perf_counter() - begun):6.1f} ms, measured")
        for number in (0, 3, 7):
            weights[number].sum()  # any use of a weight waits for it
            print(f"weight {number} could be read after {1000 * (time.perf_counter() - begun):6.1f} ms")

# %% [markdown] id="model-text"
# Now a training in which the three can be told apart. It needs compute on a device of its own, and you may have none; so the
# layers of this model **wait** instead of computing. Everything else is real: autograd, gradients, the update, and a state that
# lies on the disk of this folder. First the update alone, with layers that take no time:

# %% id="train"
from course.sleeping import SleepingModel

STEPS = 9


def train(overlap, layer_seconds):
    """(median seconds of a step, events of some steps, the weights at the end)."""
    model = SleepingModel(layers=8, numel=1_000_000, seconds=layer_seconds)
    with tempfile.TemporaryDirectory(dir=".") as folder, PretendLink(LINK, LINK).in_place():
        policy = OffloadPolicy(tier="disk", directory=Path(folder) / "state", overlap=overlap)
        with OffloadAdamW(model.parameters(), lr=1e-3, offload=policy) as optimizer:
            for _ in range(3):  # the first steps lay out files and learn the order of gradients
                model.train_step(optimizer)
            ends = [begun := time.perf_counter()]
            for _ in range(STEPS):
                model.train_step(optimizer)
                ends.append(time.perf_counter())
            seconds = statistics.median(after - before for before, after in pairwise(ends))
            optimizer.wait()
            until = begun + 2.5 * seconds
            tasks = [task for task in optimizer.trace.since(begun) if task.name != "gradient"]
            events = [e for e in [*tasks, *model.events] if begun <= e.start < until]
    return seconds, events, [weight.detach().clone() for weight in model.weights]


update_seconds, _, _ = train("none", 0.0)
print(f"the update takes {1000 * update_seconds:.0f} ms, measured (over a pretended link)")

# %% id="modes"
COMPUTE = 2  # times as long as the update

runs = {}
for overlap in ("none", "forward", "backward"):
    runs[overlap] = train(overlap, COMPUTE * update_seconds / (3 * 8))  # a backward takes two forwards
    print(f'{overlap:9} {1000 * runs[overlap][0]:6.0f} ms a step, measured')
bits = sum(
    int((one != other).sum())
    for overlap in ("forward", "backward")
    for one, other in zip(runs["none"][2], runs[overlap][2], strict=True)
)
print("weights that differ between the three:", bits)
saved.compare(max(0.0, 100 * (1 - runs["backward"][0] / runs["none"][0])))

# %% [markdown] id="modes-read"
# At most, all of the update hides: 2 instead of 3, which is 33 % less. `"forward"` can hide behind the forward only, a third of
# the compute here. `"backward"` has the other two thirds as well, and loses a little at the turn: the gradient that comes
# **last** is that of the first layer, and the first layer is what the next forward wants **first**. (It also has more to
# coordinate. Where other programs want your cores, it can lose what it gains; then run the cell again when the machine is
# quiet.)
#
# Two and a half steps of each are drawn below. Not a bit of the weights differs. These are not approximations that let a step
# use old weights or old gradients (there are such methods); the same numbers are computed, only at better times.

# %% id="none-figure"
timeline(runs["none"][1], source="measured", title="overlap none, over a pretended link")

# %% id="backward-figure"
timeline(runs["backward"][1], source="measured", title="overlap backward, over a pretended link")

# %% [markdown] id="forbidden-text"
# ### What it forbids
#
# With `"backward"`, the first partitions are updated before the last gradient is there. So nothing can be had that needs *all*
# gradients first: clipping by their norm, and `GradScaler`, which looks through all of them for an overflow. And if the last
# gradient turns out to be NaN, what was begun has to be taken back, from a step that lies on the disk. With `"forward"`, all
# gradients are there when `step()` is called; it clips exactly.
#
# Weight decay, and a learning rate that changes from step to step, are known before backward begins. They can be had with all
# three.

# %% id="forbidden"
with tempfile.TemporaryDirectory(dir=".") as folder:
    for tries in ("clip", "scratch files"):
        durability = "step" if tries == "clip" else "checkpoint"
        try:
            policy = OffloadPolicy(
                tier="disk", directory=Path(folder) / "state", overlap="backward", durability=durability
            )
            with OffloadAdamW([torch.nn.Parameter(torch.ones(10))], offload=policy) as optimizer:
                optimizer.clip_grad_norm_(1.0)
        except (RuntimeError, ValueError) as error:
            print(f"{tries}: {error}\n")

# %% [markdown] id="cannot-text"
# ## When it cannot help
#
# Overlap hides the shorter of two things behind the longer one. How much of the sum is that?

# %% id="cannot"
from course.curves import Curves

ratios = [0.05 * tick for tick in range(81)]
Curves(
    "What is saved when compute and update overlap as well as can be",
    {"saved": [(ratio, 100 * min(ratio, 1) / (ratio + 1)) for ratio in ratios]},
    across="compute, in times of the update",
    up="per cent of the step",
    source="predicted",
)

# %% [markdown] id="cannot-read"
# Equal partners gain most: half. Where the update takes a hundredth of compute, all of it may be hidden, and it is a hundredth.
# Where compute takes a hundredth of the update, the update sticks out whatever you do; then make it shorter (more state in RAM,
# a faster disk) or compute more in each step.
#
# The second case is when the two use **the same thing**. Many disks and some links are *half duplex*: reads and writes share
# one bandwidth. Overlap them, and each is slower by as much as the other takes.

# %% id="duplex"
half = replace(machine, disk_duplex="half")
for name, schedule in (("one after the other", one_by_one), ("all overlapped", write_behind)):
    full, shared = (1000 * simulate(schedule(work), there).makespan for there in (machine, half))
    print(f"{name:20} full duplex {full:4.0f} ms   half duplex {shared:4.0f} ms   predicted")

# %% [markdown] id="duplex-read"
# On the half-duplex disk, 10 × (30 + 25) = 550 ms of transfers remain, in any order: it is the updates alone that are hidden.
# Overlap with *compute* still works there, for compute does not use the disk. The same holds for cores: without an accelerator,
# compute and update want the same ones.
#
# ## Explain
#
# Nine questions. If you see no buttons, answer as text, the way each question says.

# %% id="quiz"
from quizzes import Quiz

quiz = Quiz("04")
answers = quiz.answers
quiz.show()

# %% [markdown] id="change-text"
# ## Change one thing
#
# How many buffers does it take? More of them cost memory. Say for 1, 2, 3 and 8 buffers how long the ten partitions take, then
# run the cell. Then keep partitions 0 to 3 in RAM (`RESIDENT = 4`): they are neither read nor buffered, only written.

# %% id="change"
RESIDENT = 0

mixed = tuple(
    replace(item, resident=True, read_bytes=0) if item.partition < RESIDENT else item for item in items
)
for buffers in (1, 2, 3, 4, 8):
    run = simulate(write_behind(Work(mixed, buffers)), machine)
    held = run.peak_bytes / 1e6
    print(f"{buffers} buffers: {1000 * run.makespan:4.0f} ms, at most {held:3.0f} MB in them, predicted")

# %% [markdown] id="make-text"
# ## Make
#
# Now you write the list. A schedule is a function from `work` to a `TaskList`; these are its parts:
#
# - `work.items`: the partitions in their order; `work.buffers`: how many buffers there are, numbered from 0;
# - `tasks.read(item, buffer, after=…)`, `tasks.update(…)`, `tasks.write(…)`: each appends a task and returns its number.
#   `after` is such a number, or several in a tuple; None means nothing to wait for;
# - for an item that stays in RAM (`item.resident`), `read` does nothing and returns None; its buffer may be None.
#
# The check first looks whether the list is right **whenever** its tasks happen to run; then how fast it is on nine machines,
# eight of which you have not seen, as a share of what no schedule can beat. And it draws your step beside the reference's.
#
# ### Puzzle 1: read ahead
#
# Two buffers. While one partition is updated and written, the next is read into the other buffer.

# %% id="make-ahead"
def read_ahead(work):
    tasks = TaskList()
    free = {}  # buffer -> the number of the task after which it may be used again
    for item in work.items:
        buffer = item.partition % 2
        ...  # your lines: read, update, write; and note in free when the buffer is free again
    return tasks


# %% id="make-ahead-check"
from course.checks import lesson_04

ahead_solved = lesson_04.check_schedule(read_ahead, "read ahead")

# %% [markdown] id="make-behind-text"
# ### Puzzle 2: write behind
#
# All buffers, all lanes at once. Mind the items that stay in RAM: they take no buffer, so a buffer's turn must not be lost on
# them.

# %% id="make-behind"
def my_write_behind(work):
    ...  # your lines


# %% id="make-behind-check"
behind_solved = lesson_04.check_schedule(my_write_behind, "write behind")

# %% [markdown] id="make-backward-text"
# ### Puzzle 3: update in backward
#
# The gradients come one by one, in the order of `work.items`. `tasks.gradient(item)` appends the task that ends when those of
# an item are there, and returns its number. Update each partition as soon as it can be. What should the reads wait for?

# %% id="make-backward"
def my_in_backward(work):
    ...  # your lines


# %% id="make-backward-check"
backward_solved = lesson_04.check_schedule(my_in_backward, "update in backward")

# %% [markdown] id="transfer-text"
# ## Transfer
#
# Other numbers: a fast disk, and a memory that is slow beside it. Six partitions; each is read in 8 ms, updated in 25 ms, and
# written in 9 ms. How long does the step take at best, and what would a disk of twice the speed change? Work it out, then run
# the cell.

# %% id="transfer"
from offload_lab.least import Least

six = tuple(Item(number, 8_000_000, 9_000_000, False, update_bytes=25_000_000) for number in range(6))
other = Work(six, buffers=4)
faster = replace(machine, disk_read=Figure(2e9, "assumed"), disk_write=Figure(2e9, "assumed"))
for name, there in (("this disk", machine), ("twice as fast", faster)):
    took, least = simulate(write_behind(other), there).makespan, Least(other, there, {}).seconds
    print(f"{name:14} {1000 * took:6.1f} ms, predicted; no schedule beats {1000 * least:.1f} ms")

# %% [markdown] id="leave"
# **What you leave with**
#
# - A step is tasks in lanes. Its time is the slowest lane, plus what that lane waits for at the start and what follows it at
#   the end.
# - A gap is a wait. The busiest lane is the slow one; only that one is worth making faster.
# - A buffer is free when its write has ended. Leave out that wait, and you have a race that works on most days.
# - Pinned memory saves a pass over the bytes; a few slabs of it, used in turn, are enough.
# - Overlap changes when things happen, never a bit of the result. It hides the shorter behind the longer, and nothing where
#   both want the same thing.
#
# Next: a state that does not even fit into RAM, and the disk that has to hold it.
