# %% [markdown] id="title"
# # 0 · Is your machine ready?
#
# This course moves numbers: from an accelerator to main memory, from there to a disk, and back in time. How long that takes
# depends on *your* machine, so the first thing that you do is measure it. Nothing here needs a GPU: two cores, 2 GB of free
# memory and 3 GB of disk are enough.
#
# At the end you have a **hardware file**, and every later lesson predicts with its figures. Allow half an hour; running all
# cells takes under a minute.

# %% [markdown] id="recall"
# ## Recall
#
# Three things to have at hand:
#
# 1. **Bandwidth** is bytes a second. Time is bytes divided by bandwidth; most of this course is that one division.
# 2. **GB and GiB differ.** A GB is 10⁹ bytes, a GiB is 2³⁰, which is 7.4 % more. Disks are sold in GB or TB, memory in GiB.
#    This course says GB and means 10⁹.
# 3. A figure is **measured** (this machine did it), from a **data sheet** (a maker promises it), or **assumed**. Here each
#    figure says which.
#
# ## What is here

# %% id="here"
from course.machine import inventory

print(inventory())

# %% [markdown] id="predict-text"
# ## Predict
#
# Two guesses before anything is measured. A wrong guess that you wrote down teaches more than a right one that you read.
#
# The first: AdamW's update walks once through weights, gradients and optimizer state. How many bytes a second does your main
# memory move while it does?

# %% id="predict-memory"
from course.prediction import Prediction

memory = Prediction(
    "00-memory",
    "How many bytes a second does the update move through main memory?",
    most=1e13,
    unit="bytes_per_second",
    called="memory",
)
memory.show()

# %% [markdown] id="predict-disk-text"
# The second: the same bytes could lie on the disk of this folder. How many *times slower* is reading them from there?

# %% id="predict-disk"
slower = Prediction(
    "00-disk",
    "How many times slower is the disk than the memory?",
    most=1e5,
    unit="ratio",
    called="slower",
)
slower.show()

# %% [markdown] id="measure-text"
# ## Measure it
#
# `measure` times what the engine really does: its own update over memory that no cache holds, and reads and writes of large
# files that go past the page cache. It says what it is doing, keeps the result for a month, and takes about ten seconds here.
# In a terminal, `offload-lab measure` takes half a minute and is more careful.

# %% id="measure"
from offload_lab.cli_measure import table
from offload_lab.measuring import measure

hardware = measure(".", seconds=10, say=print)
print()
print(table(hardware))

# %% [markdown] id="measure-read"
# Every line says where its figure is from. Two of them deserve a second look.
#
# *Memory, by the update* is less than the label on a memory module. The label counts what the wires could carry; the update
# reads and writes in turn, with the number of cores that you have.
#
# *Disk* is the disk under **this folder**. If it says that the folder is a tmpfs, there is no disk: a tmpfs is memory that looks
# like a folder, and state that is "offloaded" there takes the RAM that it should free. If a warning says that the bandwidth falls
# with the size of the file, believe the small figure.

# %% id="compare"
memory.compare(hardware.dram_bandwidth.value)
slower.compare(hardware.dram_bandwidth.value / hardware.disk_read.value)

# %% [markdown] id="ladder-text"
# ## The rungs
#
# How far apart are the rungs of this ladder? Take the optimizer state of a model with 140 million parameters, 10 bytes each as
# this engine stores it on disk, and let it pass each rung once.

# %% id="ladder"
from course.machine import ladder

print(ladder(hardware, 10 * 140e6))

# %% [markdown] id="prediction-text"
# ## Read a prediction
#
# A *plan* divides bytes by bandwidths for every part of a training step. Each part is bounded by one figure of the machine:
#
# | part of a step | bounded by |
# |---|---|
# | forward and backward | matrix throughput |
# | the update on the CPU | bandwidth of main memory |
# | gradients down, 16-bit weights up | the link to the accelerator |
# | moments to and from the disk | read and write rates of the disk |
#
# The update does a dozen operations for 26 bytes a parameter (bfloat16): it waits for memory, not for arithmetic. (The table
# above says 28: the engine looks through every gradient once before it begins, so that a NaN stops the step and not the model.)
# Parts that overlap cost no more than the slowest of them.
#
# Here is the plan for an update of 34 million parameters whose state is on this disk.

# %% id="plan"
from offload_lab import plan

PARAMETERS = 34_000_000
made = plan(
    PARAMETERS, hardware, sequence=1, state="disk", directory=".", ram_budget="64MiB", durability="checkpoint"
)
for lane, seconds in made.time.lanes.items():
    print(f"{lane:12} {seconds * 1000:7.1f} ms   predicted")
print(f"\nThe slowest lane is {made.time.bound_by}. Predicted for a step: {made.seconds_per_step * 1000:.0f} ms")

# %% [markdown] id="check-text"
# A prediction is worth what it gets right. Run the same step on the real engine, five times, and take the middle one.

# %% id="check"
import statistics
import tempfile
import time

import torch

from offload_lab import OffloadAdamW, OffloadPolicy

weights = [torch.nn.Parameter(torch.zeros(PARAMETERS // 8, dtype=torch.bfloat16)) for _ in range(8)]
taken = []
with tempfile.TemporaryDirectory(dir=".") as folder:
    policy = OffloadPolicy(tier="disk", directory=folder, ram_budget="64MiB", durability="checkpoint")
    with OffloadAdamW(weights, offload=policy) as optimizer:
        for _ in range(6):
            for weight in weights:
                weight.grad = torch.full_like(weight, 1e-3)
            before = time.perf_counter()
            optimizer.step()
            taken.append(time.perf_counter() - before)
measured = statistics.median(taken[1:])  # the first step also lays out the files
print(f"predicted {made.seconds_per_step * 1000:.0f} ms, measured {measured * 1000:.0f} ms")
print(f"the measured step took {measured / made.seconds_per_step:.2f} times the predicted one")

# %% [markdown] id="check-read"
# On a quiet machine the two are within a fifth of each other. If yours are further apart, something else was running: a browser
# tab, a backup, a cloud neighbour on the same disk. Run the cell again and see how much *the measurement* moves. A figure without
# its spread is half a figure.
#
# ## Explain
#
# Seven questions. Each answer tells at once what is right about it, and what is not.

# %% id="quiz"
from quizzes import Quiz

quiz = Quiz("00")
answers = quiz.answers
quiz.show()

# %% [markdown] id="change-text"
# ## Change one thing
#
# What would a disk of twice the speed change? And memory of twice the speed? Predict which of the two shortens the step, then
# change `FASTER` and run the cell again. (These are predictions; no part of your machine was harmed.)

# %% id="change"
from dataclasses import replace

from offload_lab.hardware import Figure

FASTER = ["disk_read", "disk_write", "disk_mixed"]  # or ["dram_bandwidth"], or all four

changed = {name: Figure(2 * getattr(hardware, name).value, "assumed") for name in FASTER}
other = plan(
    PARAMETERS,
    replace(hardware, **changed),
    sequence=1,
    state="disk",
    directory=".",
    ram_budget="64MiB",
    durability="checkpoint",
)
print(f"twice {', '.join(FASTER)}")
print(f"step: {made.seconds_per_step * 1000:.0f} ms -> {other.seconds_per_step * 1000:.0f} ms, predicted")
print(f"slowest lane: {made.time.bound_by} -> {other.time.bound_by}")

# %% [markdown] id="make-text"
# ## Make
#
# Write the division down. `step_seconds` takes a number of parameters and two bandwidths in bytes a second; the state is on disk
# (10 bytes a parameter are read, and 10 are written, both at `disk`), and the update moves 26 bytes a parameter at `dram`.
# `overlapped` says whether the two run at the same time. It returns seconds.
#
# Contract: `step_seconds(parameters: int, disk: float, dram: float, overlapped: bool) -> float`. A bandwidth that is not above 0
# raises ValueError.

# %% id="make"
def step_seconds(parameters, disk, dram, overlapped):
    ...  # your lines instead of this one


# %% id="make-check"
from course.checks import lesson_00

solved = lesson_00.step_seconds.check(step_seconds)

# %% [markdown] id="transfer-text"
# ## Transfer
#
# The same division for a machine that you do not have. The catalogue has its figures from data sheets, so this is a prediction
# about a promise: expect less. Where does the time of a step go there?

# %% id="transfer"
from offload_lab import catalogue

theirs = catalogue.machine("rtx4090-nvme")
for name in ("dram_bandwidth", "disk_read", "host_to_device", "gpu_flops"):
    figure = getattr(theirs, name)
    print(f"{name:16} {figure.value:10.3g}   {figure.source}")
far = plan("llama-2-7b", theirs, state="disk")
print()
for lane, seconds in far.time.lanes.items():
    print(f"{lane:12} {seconds:7.2f} s   predicted")
print(f"slowest: {far.time.bound_by}")

# %% [markdown] id="keep-text"
# ## Your hardware file
#
# Last, keep your figures. Later lessons read this file; `offload-lab plan --hardware FILE` takes it, too. Run this lesson again
# when you change the machine.

# %% id="keep"
from course.machine import keep

print("Written:", keep(hardware))

# %% [markdown] id="leave"
# **What you leave with**
#
# - Time is bytes divided by bandwidth; each part of a step is bounded by one figure of the machine.
# - Overlapped, a step takes as long as its slowest lane. Making another lane faster changes nothing.
# - Measured, promised and assumed are three different things; a prediction is checked by a measurement, and both have a spread.
# - A file of your own machine's figures.
