# %% [markdown] id="title"
# # 5 · Spilling to NVMe
#
# Main memory is full as well. Below it lies a disk: ten times as large, ten times as slow, and full of surprises. In this
# lesson you look at the files that hold an optimizer's state, catch the operating system at reporting a speed that no disk has,
# go past it, train in less memory than the state needs, kill a training in the middle of a step, and work out how long the disk
# will live. It takes about forty-five minutes; running all cells takes about half a minute. All files lie in temporary folders
# here, and are gone afterwards.

# %% [markdown] id="recall"
# ## Recall
#
# - From lesson 2: the state of a bfloat16 parameter takes 10 bytes: two moments, and the lower half of the master.
# - From lesson 4: reading, updating and writing are lanes. The step takes as long as the slowest of them, plus what comes
#   before and after.
#
# ## Predict
#
# You read a large file from the disk, and then the same file once more.

# %% id="predict-twice"
from course.prediction import Prediction

twice = Prediction(
    "05-twice",
    "How many times as fast is the second reading?",
    most=1000,
    unit="ratio",
    called="twice",
)
twice.show()

# %% [markdown] id="predict-wear-text"
# Flash wears by being written. A disk for a laptop is sold with a promise of 600 TB; you train a bfloat16 model of 7 billion
# parameters on it, and every step is written down so that a crash loses nothing.

# %% id="predict-wear"
wear = Prediction(
    "05-wear",
    "After how many steps has the disk written what it was sold for?",
    most=1e9,
    unit="count",
    called="wear",
)
wear.show()

# %% [markdown] id="files-text"
# ## Real files
#
# Rajbhandari et al. (*ZeRO-Infinity: Breaking the GPU Memory Wall for Extreme Scale Deep Learning*, 2021) moved the state on
# from main memory to NVMe. Here is what that is: train a few steps, and look into the folder.

# %% id="files"
import tempfile
from pathlib import Path

import torch

from offload_lab import OffloadAdamW, OffloadPolicy

N = 4_000_000


def some_steps(optimizer, weight, count):
    for _ in range(count):
        weight.grad = torch.full_like(weight, 0.01)
        optimizer.step()


with tempfile.TemporaryDirectory(dir=".") as folder:
    weight = torch.nn.Parameter(torch.ones(N, dtype=torch.bfloat16))
    policy = OffloadPolicy(tier="disk", directory=Path(folder) / "state", partition_size=500_000)
    with OffloadAdamW([weight], offload=policy) as optimizer:
        some_steps(optimizer, weight, 2)
        for path in sorted((Path(folder) / "state").iterdir()):
            size = path.stat().st_blocks * 512
            print(f"{path.name:15} {size:12,} bytes on the disk   {size / N:6.2f} a parameter")
        print()
        stats = optimizer.stats()
        print("partitions:", stats["partitions"], "  direct I/O:", stats["direct_io"])

# %% [markdown] id="files-read"
# One file holds the state of all partitions. The small one beside it, the *manifest*, says what lies where and which of it
# counts. The lock keeps a second process out. (24 bytes a parameter, and not 10? In a moment.)
#
# Now count what a step moves, with none, some and many of the partitions kept in RAM.

# %% id="traffic"
def traffic(weights=N, steps=6, **options):
    """Bytes read and written a step and parameter, and how many partitions stay in RAM."""
    weight = torch.nn.Parameter(torch.ones(weights, dtype=torch.bfloat16))
    with tempfile.TemporaryDirectory(dir=".") as folder:
        policy = OffloadPolicy(
            tier="disk", directory=Path(folder) / "state", partition_size=weights // 8, **options
        )
        with OffloadAdamW([weight], offload=policy) as optimizer:
            some_steps(optimizer, weight, steps)  # the first step makes the state, and reads nothing
            before = optimizer.stats()
            some_steps(optimizer, weight, steps)
            after = optimizer.stats()
    read, written = (after[name] - before[name] for name in ("bytes_read", "bytes_written"))
    return read / steps / weights, written / steps / weights, after["resident_partitions"]


for budget in (None, "36MB", "48MB"):
    read, written, resident = traffic(ram_budget=budget)
    print(f"{resident} of 8 partitions in RAM:", end=" ")
    print(f"{read:5.2f} read, {written:5.2f} written, bytes a parameter, counted")

# %% [markdown] id="traffic-read"
# Read are the moments, 8 bytes, and the lower halves, 2, of what is not in RAM. **Not** read: gradients, which backward makes
# in memory; weights, which never left; activations, which the optimizer never sees.
#
# Written are 12: the state and the 2 bytes of weight. (The hundredth more is padding.) And keeping partitions in RAM saves
# reads but no writes. Why, is the next section but two. First: how fast is this disk?
#
# ## The page cache
#
# Write a file of 256 MB, and read it twice.

# %% id="twice"
import time

from offload_lab.storage.direct_io import BlockFile
from offload_lab.storage.memory import Slab

SIZE, CHUNK = 256 << 20, 4 << 20


def read_once(file, slab):
    begun = time.perf_counter()
    for at in range(0, SIZE, CHUNK):
        file.read(slab.bytes, at)
    return SIZE / (time.perf_counter() - begun)


def read_twice(direct):
    """Whether it went past the page cache, and the rates of two readings of the same file."""
    slab = Slab(CHUNK)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        file = BlockFile(Path(folder) / "file", SIZE, direct)
        try:
            slab.bytes[:] = 7
            for at in range(0, SIZE, CHUNK):
                file.write(slab.bytes, at)
            file.sync()
            file.drop_cached()  # as if it had been written long ago
            return file.direct, read_once(file, slab), read_once(file, slab)
        finally:
            file.close()
            slab.close()


_, first, second = read_twice("off")
print(f"first {first / 1e9:5.2f} GB/s, second {second / 1e9:5.2f} GB/s, measured")
twice.compare(second / first)

# %% [markdown] id="twice-read"
# No disk learned anything in between. The second time, the bytes came from main memory: the system keeps what was read or
# written in the **page cache**, wherever memory is free. For most programs that is a gift. Here it lies twice.
#
# - It lies about **speed**. Measure a disk with a file that fits into memory, and you measure memory.
# - It lies about **memory**. State is moved to the disk to free RAM, and the cache puts it back into RAM. Under a limit, in a
#   container, or when the model needs that memory, the cache is gone, and with it the speed that you measured.
#
# ## Direct I/O
#
# `O_DIRECT`, a flag of `open()` on Linux, goes past the cache: the device writes straight into your buffer. The same two
# readings:

# %% id="direct"
direct, first, second = read_twice("auto")
print(f"first {first / 1e9:5.2f} GB/s, second {second / 1e9:5.2f} GB/s, measured")
print("past the page cache" if direct else "no direct I/O here: these went through the page cache")

# %% [markdown] id="direct-read"
# Now both are the disk. (If both are still very fast: is it a disk? In a container or a virtual machine, the host below may
# have a cache of its own.) This is the figure to plan with, and what the engine uses wherever it can; `stats()["direct_io"]`
# says so.
#
# ### Alignment
#
# Nobody stands between you and the device any more, and a device moves whole blocks. So three things have to be multiples of a
# block: the offset in the file, the length, and the address of the buffer. (O_DIRECT and `O_SYNC` are often mixed up. `O_SYNC`
# waits until the device has the bytes, and still goes through the cache.)

# %% id="aligned"
import errno
import mmap
import os

memory = memoryview(mmap.mmap(-1, 16384))  # begins at a whole page
with tempfile.NamedTemporaryFile(dir=".") as file:
    file.write(bytes(65536))
    file.flush()
    try:
        descriptor = os.open(file.name, os.O_RDONLY | os.O_DIRECT)
    except (AttributeError, OSError) as error:
        print("no direct I/O here:", error)
    else:
        for name, offset, length, address in (
            ("whole blocks", 4096, 4096, 0),
            ("offset not", 100, 4096, 0),
            ("length not", 4096, 100, 0),
            ("address not", 4096, 4096, 1),
        ):
            try:
                moved = os.preadv(descriptor, [memory[address : address + length]], offset)
                print(f"{name:13} {moved} bytes read")
            except OSError as error:
                print(f"{name:13} {errno.errorcode[error.errno]}: {error.strerror}")
        os.close(descriptor)

# %% [markdown] id="aligned-read"
# (Some file systems and disks are more generous, with an address above all. Do not count on it.) That is why the engine pads
# the record of each partition to whole blocks of 4096 bytes, less than a block each, and takes its buffers from memory that
# begins at a page.
#
# ### Block size and depth
#
# A disk takes some time to answer, and it can answer several requests at once. How large should a request be, and how many
# should be under way?

# %% id="depth"
from course.curves import Curves
from course.reading import read_rate

KIB = [4, 16, 64, 256, 1024, 4096]
lines = {}
with tempfile.TemporaryDirectory(dir=".") as folder:
    file = BlockFile(Path(folder) / "file", SIZE)
    slab = Slab(CHUNK)
    slab.bytes[:] = 7
    for at in range(0, SIZE, CHUNK):
        file.write(slab.bytes, at)
    file.sync()
    for depth in (1, 4, 16):
        rates = [read_rate(file, kib << 10, depth, seconds=0.15) for kib in KIB]
        powers = [kib.bit_length() - 1 for kib in KIB]
        lines[f"{depth} at a time"] = [(x, rate / 1e9) for x, rate in zip(powers, rates, strict=True)]
    file.close()
    slab.close()
Curves(
    "Reading past the page cache",
    lines,
    across="block of 2^x KiB: 2 is 4 KiB, 12 is 4 MiB",
    up="GB/s",
)

# %% [markdown] id="depth-read"
# Small blocks pay the way to the disk again and again. Asking for several at once hides that wait, until either the disk or the
# processor can do no more. With large blocks, a few at a time are enough. The engine moves chunks of 4 MiB, four at a time in
# each direction; `chunk_bytes` and `io_threads` of the policy change that, and `OffloadPolicy.auto` measures which are best.
#
# ## Under a hard limit
#
# Does it really take less memory? Two processes, each with a model of 24 million parameters. Beyond what it has when everything
# is loaded, each may have 4 bytes a parameter for weights and gradients, and 80 MB. The state takes 240 MB. The operating
# system enforces it.

# %% id="limited"
from course.children import under_limit

P = 24_000_000
for run in under_limit(["ram", "disk"], P, limit=4 * P + 80_000_000, ram_budget=24_000_000):
    print(run)

# %% [markdown] id="limited-read"
# All of the state is on the disk; in RAM are only a few buffers, through which it streams. (Where your system cannot enforce a
# limit, both trained. Linux can.) Direct I/O matters here, too: what passes through the page cache would count against a
# container's limit.
#
# ## Two generations
#
# A disk has one more thing to offer: it remembers. But a step takes time, and the process can die in it. Half of the partitions
# would be those of step 25, half those of step 24, and the state would be worth nothing.
#
# So each partition has **two slots**. A step writes to the slot that is *not* in use, and becomes valid at one moment:
#
# 1. write every partition to the slot that is not published;
# 2. flush these to the device;
# 3. write a new manifest beside the old one, and flush it;
# 4. rename it over the old one. The file system does that as a whole or not at all.
#
# Until the rename, the old step stands; after it, the new one does. There is no third state. Why flush? A file that was written
# and closed may be in the page cache only. It survives a `kill -9`, for the cache belongs to the system, not to the process. It
# does not survive a power cut. Without the flush, the manifest could get to the device *before* the partitions that it points
# to.
#
# `durability` says how often that is done. Three trainings, each killed by `kill -9` in the middle of the writes of step 7:

# %% id="killed"
from course.children import killed

for durability, step in killed(["step", 5, "checkpoint"]).items():
    restored = f"step {step}" if step is not None else "nothing; load your own last checkpoint"
    print(f"durability={durability!r:13} its directory can restore: {restored}")

# %% [markdown] id="killed-read"
# - `"step"`: the step before. It was published, so it is whole.
# - a number N: the last step that is a multiple of N.
# - `"checkpoint"`: nothing. These files are scratch space, written in place; you save the state yourself, when you want to.
#
# What does each cost?

# %% id="costs"
for durability in ("step", 3, "checkpoint"):
    for budget in (None, "36MB"):
        read, written, resident = traffic(durability=durability, ram_budget=budget)
        print(f"durability={durability!r:13} {resident} of 8 in RAM:", end=" ")
        print(f"{read:5.2f} read, {written:5.2f} written, bytes a parameter, counted")

# %% [markdown] id="costs-read"
# A published step must be restored **from the directory alone**, by a process that has nothing else. So it writes the weights
# as well, 2 bytes (the upper halves of the masters!), and what stays in RAM, too. The steps between write no weights and no
# residents; but the state that streams has to be written in *every* step, for there is nowhere else to put it. Two slots of 12
# bytes are the 24 that you saw above. Scratch files have one slot and no weights: 10.
#
# ## Wear
#
# A cell of flash can be erased some thousand times. A disk is sold with a promise of how much may be written to it, *TBW*,
# terabytes written. Reading costs nothing.

# %% id="wear"
from offload_lab import catalogue

print("Steps of a model of 7 billion parameters, from the promises of data sheets:\n")
print(f"{'disk':18}{'promised':>12}{'every step':>14}{'every 10th':>14}{'scratch':>14}")
for part in catalogue.DISKS:
    if part.endurance is not None:
        promised = part.endurance.value
        steps = [promised / (each * 7e9) for each in (12, 10 + 2 / 10, 10)]
        print(f"{part.name:18}{promised / 1e12:9,.0f} TB" + "".join(f"{count:14,.0f}" for count in steps))
wear.compare(600e12 / (12 * 7e9), "Calculated")

# %% [markdown] id="wear-read"
# A few thousand steps of a model this large are enough for a cheap disk: a fine-tuning, not a training from scratch. What helps
# is not a gentler durability alone (12 or 10.2 bytes, that is all it can do) but fewer *steps*, with larger batches; and more
# state in RAM, where not every step is published. Or a disk made for it. Watch the counter of your disk (`smartctl -a`, "Data
# Units Written").
#
# ## Explain
#
# Ten questions. If you see no buttons, answer as text, the way each question says.

# %% id="quiz"
from quizzes import Quiz

quiz = Quiz("05")
answers = quiz.answers
quiz.show()

# %% [markdown] id="change-text"
# ## Change one thing
#
# What do smaller chunks do to a whole step? Say it, then run the cell with `CHUNKS` of "64KiB"; then with one I/O thread.

# %% id="change"
import statistics

CHUNKS, THREADS = "4MiB", 4

weight = torch.nn.Parameter(torch.ones(2 * N, dtype=torch.bfloat16))
taken = []
with tempfile.TemporaryDirectory(dir=".") as folder:
    policy = OffloadPolicy(
        tier="disk",
        directory=Path(folder) / "state",
        durability="checkpoint",
        partition_size=1_000_000,
        chunk_bytes=CHUNKS,
        io_threads=THREADS,
    )
    with OffloadAdamW([weight], offload=policy) as optimizer:
        for _ in range(7):
            begun = time.perf_counter()
            some_steps(optimizer, weight, 1)
            taken.append(time.perf_counter() - begun)
step = 1000 * statistics.median(taken[2:])
print(f"chunks of {CHUNKS}, {THREADS} thread(s) each way: {step:.0f} ms a step, measured")

# %% [markdown] id="make-text"
# ## Make
#
# Write down what a step writes, on average. `bytes_written(parameters, resident, every)` is for a bfloat16 model of which the
# share `resident` (0 to 1) of the partitions stays in RAM. `every` is how often a step is published: 1 for each, 10 for each
# tenth, None for scratch files.
#
# Contract: returns bytes a step, a float. A share outside 0 to 1, or an `every` below 1, raises ValueError.

# %% id="make"
def bytes_written(parameters, resident, every):
    ...  # your lines instead of this one


# %% id="make-check"
from course.checks import lesson_05

solved = lesson_05.bytes_written.check(bytes_written)

# %% [markdown] id="transfer-text"
# ## Transfer
#
# A bfloat16 model of 3 billion parameters, no partition in RAM, scratch files, on a disk that reads 7 GB/s and writes 5 GB/s.
# It is half duplex: what is written takes time from what is read. How long is a step at least, how much disk does it need, and
# how many steps does a promise of 1200 TB allow? Work it out, then run the cell.

# %% id="transfer"
n = 3e9
print(f"a step:  {10 * n / 7e9 + 10 * n / 5e9:6.1f} s at least, predicted")
print(f"files:   {10 * n / 1e9:6.0f} GB; with every step published {2 * 12 * n / 1e9:.0f} GB")
print(f"steps:   {1200e12 / (10 * n):6,.0f}")

# %% [markdown] id="leave"
# **What you leave with**
#
# - A step reads 10 bytes a parameter of what is not in RAM. It writes 12 of everything when it is published, 10 of what streams
#   when not.
# - The page cache makes disks look fast and memory look free. Direct I/O shows both as they are, and wants whole blocks.
# - Large blocks, several at a time. Beyond that, the disk is what it is.
# - Write aside, flush, then rename: a crash finds the old step or the new one, never half of one.
# - Flash wears by being written. Count the steps before you begin.
#
# Next: a share of the state fits into RAM. Which share should that be, and in which order should the rest come?
