# %% [markdown] id="title"
# # 6 · What to keep hot
#
# Some of the state fits into RAM, the rest does not. Which share should stay there, and in which order should a step go through
# it? In this lesson you watch the best-known rule save nothing at all, replace it by three that do save, let a scheduler learn an
# order that nobody told it, and write a rule of your own, which runs in the simulator and on the real engine. It takes about
# forty minutes; running all cells takes about half a minute.

# %% [markdown] id="recall"
# ## Recall
#
# - From lesson 5: a step reads 10 bytes a parameter of what is not in RAM. A published step writes 12 of everything.
# - From lesson 4: partitions stream through **buffers**. A few are always in use: one is read into, one updated, one written.
#
# ## Predict
#
# A cache that is full has to give something up. The rule that nearly every cache goes by is **LRU**: give up what has been
# *least recently used*, that is, unused for longest.
#
# The state is cut into **8 partitions**, and there are **6 buffers** for it. Each step goes through the partitions from 0 to 7. A
# partition that is still in a buffer need not be read again.

# %% id="predict-scan"
from course.prediction import Prediction

scan = Prediction(
    "06-scan",
    "With LRU: how many of the 8 partitions does a step read, once some steps are over?",
    most=8,
    unit="count",
    called="scan",
)
scan.show()

# %% [markdown] id="predict-turn-text"
# Now the same, but every second step goes from 7 down to 0.

# %% id="predict-turn"
turn = Prediction(
    "06-turn",
    "With LRU, up and down in turn: how many of the 8 does a step read?",
    most=8,
    unit="count",
    called="turn",
)
turn.show()

# %% [markdown] id="scan-text"
# ## A scan
#
# First by hand, with less: 4 partitions, 3 buffers, LRU. One line is one use.

# %% id="by-hand"
from offload_lab.caching import Cache

cache = Cache(buffers=3, window=1)  # gives up the least recently used
for step in (1, 2):
    for partition in range(4):
        before = list(cache.held())
        place = cache.place(partition, lambda other: 0)
        what = "hit" if place.hit else "read" + (f", gives up {place.evicted}" if place.evicted >= 0 else "")
        print(f"step {step} wants {partition}, held {before!s:10} {what}")

# %% [markdown] id="by-hand-read"
# Read the last column of step 2 and compare it with the *next* line: each time, LRU gives up exactly the partition that comes
# next. It is no bad luck. On a scan, what has been unused for longest is what comes soonest. LRU bets that the recent past comes
# back; a scan is the one order in which it comes back last of all.
#
# Now the engine. This trains eight partitions on the disk, and notes for each step what was read, updated and written.

# %% id="train"
import tempfile
from pathlib import Path
from types import SimpleNamespace

import torch

from course.keeping import system_reads
from offload_lab import OffloadAdamW, OffloadPolicy
from offload_lab.residency import buffer_bytes

SIZE, WARM, STEPS = 200_000, 2, 4  # parameters a partition; steps before counting, and steps that are counted


def train(size=SIZE, **options):
    weight, seen = torch.nn.Parameter(torch.ones(8 * size, dtype=torch.bfloat16)), []
    with tempfile.TemporaryDirectory(dir=".") as folder:
        policy = OffloadPolicy(
            tier="disk", directory=Path(folder) / "state", partition_size=size, **options
        )
        with OffloadAdamW([weight], offload=policy) as optimizer:
            for step in range(WARM + STEPS):
                if step == WARM:
                    before, system = optimizer.stats(), system_reads()
                weight.grad = torch.full_like(weight, 0.01)
                optimizer.trace.clear()
                optimizer.step()
                seen.append(optimizer.trace.events())
            after, now = optimizer.stats(), system_reads()
    run = SimpleNamespace(events=seen, weight=weight.detach().clone(), system=None)
    for name in ("bytes_read", "bytes_written", "bytes_needed"):
        setattr(run, name, (after[name] - before[name]) / STEPS)
    if now is not None:
        run.system = (now - system) / STEPS
    run.reads = sum(e.name == "read" for events in seen[WARM:] for e in events) / STEPS
    return run

# %% id="lru"
from offload_lab.plots import residency, residency_flags

ROOM = 6 * buffer_bytes(SIZE)  # bytes of RAM: six buffers

lru = train(ram_budget=ROOM, residency="lru")
used, read = lru.bytes_needed / 1e6, lru.bytes_read / 1e6
print(f"a step uses {used:.1f} MB of state and reads {read:.1f} MB, counted")
if lru.system:
    print(f"the operating system counted {lru.system / 1e6:.1f} MB that came from the disk for a step")
scan.compare(lru.reads, "Counted")


def kept_map(run, title):
    return residency(residency_flags(run.events[1:]), source="measured", title=title, first_step=2)


kept_map(lru, "LRU, always up")

# %% [markdown] id="lru-read"
# Six of eight partitions are in RAM at any time, and not one is there when its turn comes. (The map begins with step 2: in the
# first, the state does not exist yet. Where the system's figure is missing, the folder lies in memory, or the reads went through
# the page cache.)
#
# The usual advice for a cache that misses is to give it more memory. How far does that get you here?

# %% id="more"
from course.curves import Curves

POLICIES = {
    "LRU": {"residency": "lru"},
    "pinned": {"residency": "pinned"},
    "furthest": {"residency": "furthest"},
    "alternating": {"residency": "lru", "order": "alternating"},
}
SMALL = 20_000
lines = {name: [] for name in POLICIES}
for name, options in POLICIES.items():
    for buffers in (4, 5, 6, 7, 8):
        run = train(SMALL, ram_budget=buffers * buffer_bytes(SMALL), **options)
        lines[name].append((buffers, run.reads))
Curves("Reads of a step, of 8 partitions", lines, across="RAM, in buffers", up="partitions read")

# %% [markdown] id="more-read"
# Look at LRU first: from 4 buffers to 7 nothing changes, and at 8, when everything fits, all reads vanish. A cliff, and no slope
# before it. Who tries a little more memory sees no effect, and concludes that memory is not what is missing.
#
# The other three lines are other rules with the same memory.
#
# ## Pinned, alternating, furthest
#
# Three ways to do better than the recent past:
#
# | | the idea |
# |---|---|
# | **pinned** | some partitions stay always, the others stream through four buffers: `residency="pinned"`, what the engine does by itself |
# | **alternating** | up, then down: each step begins with what the last one left, `order="alternating"` |
# | **furthest** | give up what is needed furthest in the future: `residency="furthest"` |
#
# All with the RAM of six buffers:

# %% id="policies"
runs = {name: train(ram_budget=ROOM, **options) for name, options in POLICIES.items()}
print(f"{'':12} reads a step   from RAM   read, MB   the system's count")
for name, run in runs.items():
    hits = 1 - run.bytes_read / run.bytes_needed
    system = f"{run.system / 1e6:.1f}" if run.system is not None else "not told"
    print(f"{name:12} {run.reads:6.1f} of 8 {hits:10.0%} {run.bytes_read / 1e6:10.1f} {system:>12}")
bits = sum(int((runs["LRU"].weight != run.weight).sum()) for run in runs.values())
print("\nweights that differ between the four:", bits)
turn.compare(runs["alternating"].reads, "Counted")

# %% [markdown] id="policies-read"
# Where does each number come from? N = 8 partitions, B = 6 buffers, of which w = 4 have to be free for what is under way (the
# policy's `depth`).
#
# - **Pinned** keeps B − w = 2, and reads N − 2 = 6. It saves its share, in any order. Which ones it keeps does not matter: a step
#   uses each partition once, and none is hotter than another.
# - **Alternating** reads N − B = 2. What is under way when the step ends counts as well: it is where the next step begins.
# - **Furthest** reads N × (N − B) / (N − w) = 4. Every N − w uses, its map below begins again: first B − w hits, then N − B reads.
#
# And no bit of the result differs. Where a state lies does not change what is computed from it.

# %% id="furthest-map"
kept_map(runs["furthest"], "Furthest, always up")

# %% id="alternating-map"
kept_map(runs["alternating"], "LRU, up and down in turn")

# %% [markdown] id="maps-read"
# To give up what is needed furthest away is **optimal**: no rule reads less (Belady, *A study of replacement algorithms for a
# virtual-storage computer*, 1966). An operating system cannot do it, for it does not know the future. An optimizer does: a step
# uses every partition once, in an order that is known before it begins.
#
# Then how can alternating beat it? Look at what is optimal: the rule, *for a given order*. Alternating gives it another order. And
# on that one, plain LRU is as good as Belady's rule: what has been unused for longest is now what comes last.
#
# Would you pin **and** alternate? Two pinned, and four buffers that turn around: the same 2 reads. You can check that with
# `train(ram_budget=ROOM, order="alternating")`.
#
# ### What a hit saves
#
# A read, certainly. And a write?

# %% id="writes"
print(f"{'':12} every step published      scratch files")
for name, options in POLICIES.items():
    cells = []
    for durability in ("step", "checkpoint"):
        run = train(SMALL, ram_budget=6 * buffer_bytes(SMALL), durability=durability, **options)
        read, written = (count / SMALL / 8 for count in (run.bytes_read, run.bytes_written))
        cells.append(f"{read:5.1f} read, {written:5.1f} written")
    print(f"{name:12} " + "   ".join(cells))
print("bytes a parameter and step, counted (records are padded to whole blocks)")

# %% [markdown] id="writes-read"
# A published step has to be whole on the disk, so it writes everything, whatever is in RAM. To say "75 % hits, so a quarter of
# the traffic" counts the bytes both ways, and they go only one way: 2.5 + 12 instead of 10 + 12.
#
# With scratch files, a partition may stay changed in its buffer, and is written when it is given up. There a hit saves both.
#
# ## Learning the order
#
# So far the engine chose the order. With `overlap="backward"` it does not: gradients come when autograd brings them, and that
# depends on the model. Here is one whose eight layers are used in another order than they were made in. Hooks note in which order
# the gradients come.

# %% id="path"
def gradient_order(weights, path):
    """Run the layers in the order of `path`, then backward; the order in which gradients came."""
    came, x = [], torch.ones(())
    hooks = [
        weight.register_post_accumulate_grad_hook(lambda _, number=number: came.append(number))
        for number, weight in enumerate(weights)
    ]
    for number in path:
        x = x * weights[number].float().mean()
    x.backward()
    for hook in hooks:
        hook.remove()
    return came


PATH = [3, 0, 6, 1, 7, 4, 2, 5]
layers = [torch.nn.Parameter(torch.ones(8, dtype=torch.bfloat16)) for _ in range(8)]
came = gradient_order(layers, PATH)
print("layers were made as    ", list(range(8)))
print("gradients came as      ", came)

# %% [markdown] id="engine-order-text"
# What does the engine do, which nobody tells? It guesses once, and then it learns. Its trace shows in which order it updated:

# %% id="engine-order"
from course.sleeping import SleepingModel
from offload_lab.schedulers import learned_order

model = SleepingModel(layers=8, numel=SMALL, seconds=0.01)  # layers that wait instead of computing
made = [model.weights[PATH.index(number)] for number in range(8)]  # not the order of their use
with tempfile.TemporaryDirectory(dir=".") as folder:
    policy = OffloadPolicy(
        tier="disk", directory=Path(folder) / "state", partition_size=SMALL, overlap="backward"
    )
    with OffloadAdamW(made, offload=policy) as optimizer:
        for step in (1, 2, 3, 4):
            optimizer.trace.clear()
            model.train_step(optimizer)
            optimizer.wait()
            print(f"step {step}: updated in the order {learned_order(optimizer.trace.events())}, measured")

# %% [markdown] id="engine-order-read"
# Step 1 waits for all gradients: no step is on the disk yet that could be taken back. In step 2 the engine takes gradients to come
# from the end, as those of most models do, and prepares partition 7 first; but 5 was there first, and 5 had to wait. From step 3
# on it goes by what it saw. (The last few may be in another order: what backward did not get to is updated afterwards.)
#
# A wrong guess is not a wrong result. It costs time: partitions lie in buffers and wait for gradients, while gradients wait for
# partitions. How much? Simulated, with a gradient every 10 ms and four buffers:

# %% id="guess"
from dataclasses import replace

from course.keeping import made_up
from course.two_runs import two_runs
from offload_lab.simulate import simulate
from offload_lab.work import TaskList


def expecting(work, order, came):
    """Read and update in `order`; the gradients come as in `came`."""
    tasks, free, items = TaskList(), {}, {item.partition: item for item in work.items}
    gradient = {partition: tasks.gradient(items[partition]) for partition in came}
    for place, partition in enumerate(order):
        item, buffer = items[partition], place % work.buffers
        read = tasks.read(item, buffer, after=free.get(buffer))
        update = tasks.update(item, buffer, after=(read, gradient[partition]))
        free[buffer] = tasks.write(item, buffer, after=update)
    return tasks


case = made_up(read=2e9, write=2e9)
work = replace(case.work, buffers=4, gradients=True)
guessed, learned = (
    simulate(expecting(work, order, came), case.hardware, seconds={"gradient": 0.01})
    for order in (list(range(8))[::-1], came)
)
print(f"guessed {1000 * guessed.makespan:.0f} ms, learned {1000 * learned.makespan:.0f} ms, predicted")
two_runs("A step that expects its gradients", {"guessed": guessed.events, "learned": learned.events})

# %% [markdown] id="predict-path-text"
# ### When the past is no guide
#
# One traced step is a table: *after 5 comes 2, after 2 comes 4 …* In the next step, look up what comes next, and fetch it while
# the present one is still in work. ZeRO-Infinity's prefetcher goes by such a trace, and takes a new one in each iteration, since
# a model need not do the same twice (Rajbhandari et al., 2021). How good is the table if a model **never** does the same twice,
# and takes its eight layers in a random order each time?

# %% id="predict-path"
path = Prediction(
    "06-path",
    "For how many per cent of the layers does the step before foretell the right successor?",
    most=100,
    unit="percent",
    called="path",
)
path.show()

# %% id="foretold"
import random
from itertools import pairwise


def foretold(before, now):
    """How many successors of `now` the table of `before` has right."""
    after = dict(pairwise(before))
    return sum(after.get(one) == other for one, other in pairwise(now))


print("the same path again:", foretold(came, gradient_order(layers, PATH)), "of 7 right, counted")
rng = random.Random(6)
orders = [gradient_order(layers, rng.sample(range(8), 8)) for _ in range(400)]
right = sum(foretold(before, now) for before, now in pairwise(orders)) / (7 * 399)
path.compare(100 * right, "Counted")

# %% [markdown] id="foretold-read"
# One in eight, which is chance: a pair (5, then 2) stands somewhere in a random order of eight with probability 7 / 56. A table
# is as good as the model is regular. Most models are: the same layers in the same order in each step. A mixture of experts, or
# layers that are dropped at random, are not; then a prefetcher has to be able to be wrong, at the cost of time only.
#
# ## Explain
#
# Eleven questions. If you see no buttons, answer as text, the way each question says.

# %% id="quiz"
from quizzes import Quiz

quiz = Quiz("06")
answers = quiz.answers
quiz.show()

# %% [markdown] id="change-text"
# ## Change one thing
#
# Fewer reads: is a step faster, too? Say it for this disk, which reads and writes 1 GB/s at the same time; then run the cell. Then
# for one on which reads and writes share the bandwidth (`DUPLEX = "half"`); then for one that writes three times as fast as it
# reads (`WRITE = 3e9`, full duplex).

# %% id="change"
from functools import partial

from offload_lab import schedulers

READ, WRITE, DUPLEX = 1e9, 1e9, "full"

case = made_up(read=READ, write=WRITE, duplex=DUPLEX)
for name, schedule in {
    "LRU": schedulers.lru,
    "pinned": partial(schedulers.pinned, free=4),
    "furthest": schedulers.furthest,
    "alternating": schedulers.alternating,
}.items():
    begun, ended = case.run(schedule).steps[-1]
    print(f"{name:12} {1000 * (ended - begun):5.0f} ms a step, predicted")

# %% [markdown] id="make-text"
# ## Make
#
# Write the rule. `give_up(held, place, order, following)` says which partition leaves its buffer:
#
# - `held`: a list of partitions that may be given up, least recently used first;
# - `order`: the partitions of this step, in their order; `order[place]` is the one that needs the buffer now, so those before it
#   have been used already;
# - `following`: the order of the next step.
#
# Contract: returns one of `held` whose next use is furthest away; one that is in neither the rest of `order` nor `following` goes
# before all others. In an order, a partition stands at most once. An empty `held` raises ValueError. The lists are not changed.

# %% id="make"
def give_up(held, place, order, following):
    ...  # your lines instead of this one


# %% id="make-check"
from course.checks import lesson_06

solved = lesson_06.check_give_up(give_up)

# %% [markdown] id="make-engine-text"
# And now for real: your rule as the engine's schedule. It is checked before it runs (lesson 4), so it may be slow, but not wrong.

# %% id="make-engine"
from course.keeping import kept, reads

if not solved:
    print("Not yet: the rule above runs here as soon as it is right.")
else:
    for name, alternating in (("always up", False), ("up and down", True)):
        schedule = kept(give_up, alternating)
        mine = train(ram_budget=ROOM, residency="lru", schedule=schedule)
        same = torch.equal(mine.weight, lru.weight)
        hits = 1 - mine.bytes_read / mine.bytes_needed
        print(f"{name:12} {mine.reads:.1f} of 8 read, {hits:.0%} hits, counted;", end=" ")
        print(f"{reads(made_up(), schedule)[-1]} predicted; same weights: {same}")

# %% [markdown] id="puzzle-text"
# ### Puzzle: beat the reference
#
# On these machines partitions may differ in size, and disks may be half or full duplex; you do not know which. The reference is
# `schedulers.alternating`. Write a schedule that is faster over nine of them, eight of which are drawn when you run the check.
#
# `keep(work, choose, order, following)` makes the list of tasks from two decisions. `order` (partitions) is that of this step.
# `choose(candidates, turns_until)` says which of `candidates`, least recently used first, is given up; `turns_until(partition)` is
# the number of turns until its next use, by `order` and `following`. `work.number` counts the steps from 0, `work.held` is what
# the last one left, and each of `work.items` has a `partition` and its `read_bytes`. Get level first. Then ask: a hit saves
# *bytes*; whose are the most?

# %% id="puzzle"
from offload_lab.schedulers import keep


def my_schedule(work):
    ...  # your lines: return keep(work, …)


# %% id="puzzle-check"
beaten = lesson_06.check_puzzle(my_schedule)

# %% [markdown] id="transfer-text"
# ## Transfer
#
# A bfloat16 model of 7 billion parameters: 70 GB of state in 40 partitions, RAM for 16 buffers, 4 of them for what is under way.
# The disk reads 7 GB/s and writes 5 GB/s, at the same time, and every step is published. How many gigabytes does a step read with
# each rule, and how long does it take at least? Work it out, then run the cell.

# %% id="transfer"
N, B, W = 40, 16, 4

for name, count in {
    "LRU": N,
    "pinned": N - (B - W),
    "furthest": N * (N - B) / (N - W),
    "alternating": N - B,
}.items():
    read = 70 * count / N
    print(f"{name:12} {read:5.1f} GB read, {read / 7:4.1f} s; 84 GB written, {84 / 5:4.1f} s; predicted")

# %% [markdown] id="transfer-read"
# Writing takes 16.8 s in any case, so on this disk no rule shortens the step: another lane is the slowest. With half duplex the
# two add up, and alternating saves 6 of 26.8 s. First find the slowest lane, then choose what to keep.
#
# **What you leave with**
#
# - LRU saves nothing on a scan: what is unused for longest is what comes next. More memory does not help, until everything fits.
# - A pinned set saves its share, in any order. Furthest next use is optimal for a given order. Turning the order around is better
#   still, and needs no cleverness.
# - A hit saves a read. It saves a write only where a step need not be whole on the disk.
# - An order that repeats can be learned from one step. A wrong guess may cost time, never a bit.
#
# Next: what happens if one wait is missing, and how to find out which.
