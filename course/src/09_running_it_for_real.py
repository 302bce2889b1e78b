# %% [markdown] id="title"
# # 9 · Running it for real
#
# A run of two weeks is nobody's experiment. Somebody pays for it, somebody waits for it, and at three in the morning a disk is
# full. In this lesson you write down what the run must reach before you know what it reaches, catch benchmarks that mislead, run
# a gate that can say no, set a monitor on the run, provoke five incidents and mend them, and look at what a stranger gets out of
# your files. Then you write the gate's verdict yourself. It takes about forty-five minutes; running all cells takes about a minute.

# %% [markdown] id="recall"
# ## Recall
#
# - From lesson 5: a step that is *published* can be restored from the directory alone. It was written aside, flushed, and made
#   valid by one rename. That is why there are two slots of 12 bytes a parameter; scratch files take 10.
# - From lesson 5, too: the page cache makes a disk look as fast as memory.
#
# ## Predict
#
# You measure ten training steps and take their median. Then you do exactly the same again, ten times in all: same code, same
# data, same machine.

# %% id="predict-spread"
from course.prediction import Prediction

spread = Prediction(
    "09-spread",
    "How many times as long is the longest of the ten medians as the shortest?",
    most=100,
    unit="ratio",
    called="spread",
)
spread.show()

# %% [markdown] id="predict-held-text"
# And a training whose every step is published is killed, by `kill -9`, while it writes step 4. Some partitions of that step are
# on the disk by then, and some are not.

# %% id="predict-held"
held = Prediction(
    "09-held",
    "Which step does its directory hold afterwards?",
    most=100,
    unit="count",
    called="held",
)
held.show()

# %% [markdown] id="targets-text"
# ## Targets first
#
# A figure that is known already is always acceptable. So the numbers come first, and each comes from somebody who needs it: the
# deadline, the bill, the machine that is shared with others, and a loss below which the model is worth having.
#
# Here is a run of our own: a small GPT, 20,000 steps, in a night of eight hours, on a rented machine for half a dollar an hour.

# %% id="targets"
import torch

from offload_lab.health import Targets
from offload_lab.training import GPTConfig, TinyGPT

CONFIG = GPTConfig(layers=2, width=128, context=64, dtype=torch.bfloat16)
PARAMETERS = TinyGPT(CONFIG).parameter_count()
STEPS, NIGHT = 20_000, 8 * 3600

targets = Targets(
    seconds_per_step=NIGHT / STEPS,  # it has to be done in the morning
    cost=5.00,
    run_steps=STEPS,
    price_per_hour=0.50,
    peak_ram_bytes="4GiB",
    disk_bytes=11 * PARAMETERS,  # the state takes 10 bytes, and a bit for whole blocks
    loss=5.55,  # of the rehearsal: better than a guess among 256 bytes, which is ln 256
)
print(targets.to_json())

# %% [markdown] id="targets-read"
# Two kinds are missing on purpose. "As fast as possible" is a wish: no figure can miss it. And a target that nobody will act on
# is an ornament: strike it. (`offload_lab.plan` writes targets, too, from its prediction; `Targets.from_dict` takes a plan.)
#
# ## The gate
#
# A gate is a short run that can say no to the long one. So it is a benchmark; and a benchmark can be right and mislead. See how,
# before you trust one.
#
# ### One run, and ten

# %% id="spread"
import statistics
import tempfile
import time
from pathlib import Path

from course.curves import Curves
from offload_lab import OffloadAdamW, OffloadPolicy
from offload_lab.training import Batches, corpus, train


def step_seconds(count, context=64, **options):
    """Seconds of each of `count` steps of the small GPT, its state on this disk."""
    model = TinyGPT(CONFIG)
    batches, taken = Batches(corpus(), 8, context), []
    with tempfile.TemporaryDirectory(dir=".") as folder:
        policy = OffloadPolicy(tier="disk", directory=Path(folder) / "state", **options)
        with OffloadAdamW(model.parameters(), lr=1e-3, offload=policy) as optimizer:
            for _ in range(count):
                begun = time.perf_counter()
                train(model, optimizer, batches, 1)
                taken.append(time.perf_counter() - begun)
    return taken


runs = [step_seconds(10) for _ in range(10)]
medians = [1000 * statistics.median(run[2:]) for run in runs]
spread.compare(max(medians) / min(medians))
Curves("The same ten steps, ten times", {"median": list(enumerate(medians, 1))}, across="run", up="ms a step")

# %% [markdown] id="spread-read"
# Nothing changed between these runs but the machine: what else it did, how warm it was, where the blocks lay. One run shows one of
# these numbers and no sign that there are others. Two variants that differ by less than this spread have not been told apart. So
# measure several times, in turn (A, B, A, B), and give the spread with the number.
#
# ### Another load
#
# Worse is a number that has no spread at all and is of something else. Four benchmarks of the same training:

# %% id="loads"
def shown(name, seconds):
    print(f"{name:44}{1000 * seconds:8.1f} ms a step, measured")


def median(seconds):
    return statistics.median(seconds[2:])


shown("as it will run", median(step_seconds(10)))
shown("its first step alone", step_seconds(1)[0])
shown("sequences a quarter as long", median(step_seconds(10, context=16)))
shown("through the page cache, nothing published", median(step_seconds(10, direct_io="off", durability="checkpoint")))

# %% [markdown] id="loads-read"
# - The **first step** makes the state and reads nothing, allocates, and on a fresh machine compiles. The run has it once.
# - **Short sequences** leave out compute, and most of the activations: both time and memory are those of another run.
# - **Through the page cache** the disk is not in it. With a real model that cache is needed for other things, or there is
#   none, and the speed is gone. (If it makes little difference here: our GPT is small, and other things take its time.)
#
# And one that no short run shows: many disks write fast only until a small, fast part of their flash is full. A data sheet gives
# 3.3 GB/s and then 1.75 for a consumer disk of PCIe 3 (both quoted, in `offload_lab.catalogue`).

# %% [markdown] id="gate-text"
# ### The gate itself
#
# So a gate takes *your* script: your model, your batches, the disk that the run will use. It has one function, and the gate does
# the backward pass and the step. This one also saves a checkpoint of its own in every fifth step.

# %% id="workload"
WORKLOAD = '''
import torch
from offload_lab import OffloadAdamW, OffloadPolicy
from offload_lab.training import Batches, GPTConfig, TinyGPT, corpus, loss_of

def workload(folder):
    model = TinyGPT(GPTConfig(layers=2, width=128, context=64, dtype=torch.bfloat16))
    policy = OffloadPolicy(tier="disk", directory=folder / "state", durability=DURABILITY)
    optimizer = OffloadAdamW(model.parameters(), lr=1e-3, offload=policy)

    def losses():
        for number, (inputs, targets) in enumerate(Batches(corpus(), 8, 64), start=1):
            yield loss_of(model, inputs, targets)
            if number % 5 == 0:  # what follows a yield is a part of the step
                torch.save(optimizer.state_dict(), folder / "save.pt")

    return model, optimizer, losses()
'''

# %% id="gate"
from offload_lab.health.gate import gate


def gated(durability):
    """Run the gate on the workload, in a process of its own."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        script = Path(folder) / "workload.py"
        script.write_text(WORKLOAD.replace("DURABILITY", repr(durability)), encoding="utf-8")
        return gate(script, targets, steps=12, directory=folder)


first = gated("step")
print(first)

# %% [markdown] id="gate-read"
# No-go, and the gate is right: published steps take 24 bytes a parameter, two slots of 12, and we had written down 11. Better
# here than on day nine.
#
# Now something has to change, and the easiest is the target. Beware. A target that moves after the figure is known says yes to
# everything. It may move: when whoever asked for it says that the disk has room after all. That is a decision of theirs, not a
# correction of yours. Here they say no; so the run changes. We give up published steps, and take scratch files:

# %% id="second"
second = gated("checkpoint")
print(second)

# %% [markdown] id="log-text"
# ### Median and mean
#
# Look at how a gate judges time, twice. `seconds_per_step` is a **median**, what a step usually takes. `cost` follows the
# **mean**: the steps that save are rare, and they are on the bill.

# %% id="mean"
seconds = second.measured.seconds
print("ms a step:", " ".join(f"{1000 * taken:.0f}" for taken in seconds))
print(f"median {1000 * statistics.median(seconds):.0f} ms, mean {1000 * statistics.mean(seconds):.0f} ms, measured")

# %% [markdown] id="log-more"
# ### The decision log
#
# In three months somebody asks why this run lost 500 steps when its machine was restarted. Each gate is added to a log, with
# its figures, the machine and the script's checksum; what is there is never changed, the no included. What no program knows is
# why you went on. That line is yours.

# %% id="log"
from offload_lab.health.decisions import append

WHY = """Go, by A. and B. The disk has no room for two generations. So no step is published; we save
every 500th step ourselves, and a crash costs at most 500 steps (A. accepts that).
"""

with tempfile.TemporaryDirectory(dir=".") as folder:
    for decision in (first, second):
        append(decision, Path(folder))
    log = Path(folder) / "decisions.md"
    with log.open("a", encoding="utf-8") as file:
        file.write(WHY)
    print(log.read_text(encoding="utf-8"))

# %% [markdown] id="monitors-text"
# ## Monitors
#
# A gate looks once, at the beginning. A run changes afterwards: a disk gets full and slow, a neighbour moves in, a batch is
# broken, the data drift away. Four questions to ask all the time, from the machine to the people:
#
# 1. **Errors**: was a step skipped, is something not finite, will the disk be full?
# 2. **Performance**: is a step still what it was?
# 3. **Drift**: is the loss still where it should be?
# 4. **Impact**: who waits for it, and how much longer?
#
# `Monitor` sees a step's figures after each step. Here are those of a real one:

# %% id="figures"
import logging

from offload_lab.health import Monitor, Thresholds

logging.getLogger("offload_lab.health").setLevel(logging.ERROR)  # alarms are logged, too; here we print them

model = TinyGPT(CONFIG)
with tempfile.TemporaryDirectory(dir=".") as folder:
    policy = OffloadPolicy(tier="disk", directory=Path(folder) / "state")
    with OffloadAdamW(model.parameters(), lr=1e-3, offload=policy) as optimizer:
        monitor = Monitor(optimizer, Thresholds(disk_free=None))
        batches = Batches(corpus(), 8, 64)
        train(model, optimizer, batches, 5, on_step=lambda step, loss: monitor.observe(loss))
        print(monitor.line().replace(" ", "\n"))

# %% [markdown] id="shift-text"
# (`monitor.serve(9100)` offers the same to Prometheus, on this machine only.)
#
# When should somebody be woken? Not for one slow step: every disk has those. For a **shift**, steps that are slow and stay slow. To
# see both in seconds, we turn the clock ourselves. **These times are made up (simulated); the monitor is the real one.**

# %% id="shift"
import random

from course.rehearsed import watched

noise = random.Random(9)
times = [noise.uniform(1.9, 2.1) for _ in range(160)]
times[69] = 5.0  # one slow step: number 70
times[100:] = [1.4 * seconds for seconds in times[100:]]  # from step 101 on the disk is slow
for step, alarm in watched(times):
    print(f"step {step}: {alarm.message}")

# %% [markdown] id="shift-read"
# Step 70 woke nobody. The shift at step 101 was seen at step 108: eight steps in a row beyond what the fifty before them make
# normal. Waiting for eight is the price of sleeping well.
#
# What does that alarm mean for people? Not "40 % slower". Translate it:

# %% id="impact"
LEFT = STEPS - 108
for name, seconds in (("as planned", 2.0), ("as it is", statistics.median(times[100:108]))):
    hours = LEFT * seconds / 3600
    print(f"{name:11} {hours:5.1f} hours to go, ${hours * 0.50:.2f}, calculated from made-up times")

# %% [markdown] id="drift-text"
# Now the loss. In one run a single batch is broken. In the other the data drift: the loss creeps up by two thousandths a step, for
# 500 steps. Which of the two raises an alarm? (Losses are made up as well.)

# %% id="drift"
steady = [2.5 * noise.uniform(0.97, 1.03) for _ in range(500)]
spike = [*steady[:200], 6.0, *steady[201:]]
creep = [loss * 1.002**number for number, loss in enumerate(steady)]
for name, losses in (("steady", steady), ("a broken batch", spike), ("creeping", creep)):
    alarms = [f"step {step}: {alarm.message}" for step, alarm in watched([2.0] * 500, losses)]
    print(f"{name}: from {losses[0]:.2f} to {losses[-1]:.2f}")
    print("   ", "\n    ".join(alarms) or "no alarm")

# %% [markdown] id="drift-read"
# The broken batch is seen at once. The creeping loss is now more than twice what it was, and **nobody was told**: each step is
# normal beside the fifty before it. An alarm on change is blind to slow change. A target sees it, asked again and again on the
# same batches:

# %% id="drift-targets"
from offload_lab.health.targets import Measured, compare

limit = Targets(loss=2.6, loss_tolerance=0.2)
for step in (100, 200, 300, 400, 500):
    (check,) = compare(limit, Measured(seconds=(), losses=tuple(creep[:step])))
    print(f"step {step}: {'ok  ' if check.passed else 'FAIL'} {check.text}")

# %% [markdown] id="rollback-text"
# ### An alarm that acts
#
# A broken batch that was seen can be undone. Here a real model trains on real text, and one batch is noise. The alarm `loss` is
# given an action:

# %% id="rollback"
model = TinyGPT(CONFIG)
batches = Batches(corpus(), 8, 64)
noise_batch = iter([tuple(torch.randint(256, (2, 8, 64), generator=torch.Generator().manual_seed(1)))])
with tempfile.TemporaryDirectory(dir=".") as folder:
    policy = OffloadPolicy(tier="disk", directory=Path(folder) / "state")
    with OffloadAdamW(model.parameters(), lr=3e-3, offload=policy) as optimizer:
        monitor = Monitor(
            optimizer, Thresholds(window=20, disk_free=None, step_time=None), actions={"loss": "rollback"}
        )
        losses = train(model, optimizer, batches, 60, on_step=lambda step, loss: monitor.observe(loss))
        before = [parameter.detach().clone() for parameter in model.parameters()]
        train(model, optimizer, noise_batch, 1, on_step=lambda step, loss: monitor.observe(loss))
        same = all(torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True))
        print([f"{event.message} -> {event.action}" for event in monitor.events][-1])
        print("steps:", optimizer.stats()["steps"], "  weights as before the noise, bit for bit:", same)

# %% [markdown] id="drill-text"
# ## The drill
#
# What you have never done, you will do badly at three in the morning. So do it now. Five incidents, each on a small model whose
# every step is published. Each is provoked in step 4 (the slow disk lasts for some steps), mended, and trained to the end; then
# the weights are compared with those of a run that nobody disturbed. Say for yourself what you would do, and what would be lost,
# before you run a cell.
#
# **A kill** in the middle of the writes of a step:

# %% id="killed"
from offload_lab.health import drill

incidents = [drill.killed_in_a_step(".")]
print(incidents[-1])
held.compare(incidents[-1].figures["found_step"])

# %% [markdown] id="killed-read"
# `SIGKILL` asks nobody: no `finally`, no handler, no clean-up runs. What had been written of step 4 lay in the slots that are not
# published, so it counts for nothing. The process is gone; `OffloadAdamW.resume(directory, parameters)`, or `existing="resume"`,
# goes on from the directory alone.
#
# **A full disk.** Filling yours would be rude. So this one is *imitated*: the system call that writes is made to refuse, as a
# full disk does. (That is why the message finds so much space free.)

# %% id="full"
incidents.append(drill.disk_full("."))
print(incidents[-1])

# %% [markdown] id="full-read"
# This time the process lives, with weights of which some were updated and some were not. Calling `step()` again would update some
# of them twice. First take the step back: `optimizer.rollback()`, in the same process, with no loading.
#
# **A damaged file**, and **a gradient that is not finite**:

# %% id="damaged"
incidents += [drill.corrupted_file("."), drill.nan_gradient(".")]
print(*incidents[-2:], sep="\n\n")

# %% [markdown] id="damaged-read"
# Two refusals, and both are deliberate. The damaged step is not skipped in silence: you are told which chunk it is, whether the step
# before is whole, and what to write if you want that one. Going back is a decision, and a decision is for a person (and the log).
# And of a step with a NaN in it nothing is done, not even for the parameters that are sound: a NaN in a moment never leaves it.
#
# **A slow disk**, imitated as well: each read is made to wait.

# %% id="slow"
incidents.append(drill.slow_disk("."))
print(incidents[-1])

# %% id="drilled"
print("\n".join(f"{incident.name:30} intact: {incident.intact}" for incident in incidents))

# %% [markdown] id="drilled-read"
# Slow is not broken: there was nothing to mend but the disk. Three alarms told of one event, and the third one said where to
# look: the update waited for reads.
#
# Write down who is called, what they type and who may decide to go back. Then pull the plug of a rehearsal, and let somebody else
# follow the page. A backup that nobody has restored is a hope.
#
# ## What lies on the disk
#
# The directory alone restores the run. For whom? Look at who may read it: here under two settings of `umask`, the process's own
# rule for files that it makes. (`-rw-------`: the owner reads and writes, nobody else. `r` in the last three: everybody reads.)

# %% id="modes"
import os
import shutil
import stat

from course.rehearsed import trained

for mask in (0o022, 0o077):
    with tempfile.TemporaryDirectory(dir=".") as folder:
        before = os.umask(mask)
        try:
            trained(Path(folder))
        finally:
            os.umask(before)
        print(f"umask {mask:03o}")
        for path in [Path(folder) / "state", *sorted(Path(folder).rglob("*.*"))]:
            print("   ", stat.filemode(path.stat().st_mode), path.relative_to(folder))

# %% [markdown] id="modes-read"
# The engine keeps the numbers, `offload.state`, to its owner, whatever the umask says. The folder, and the manifest with shapes and
# learning rates, follow the umask; and so does `save.pt` beside them, written by `torch.save`, with the same moments, open to
# everybody under the usual 022. With `umask 077`, or in a folder that *you* made with mode 700, all is shut.
#
# Is a copy of any use without your program? Here is a stranger, with an empty model:

# %% id="stranger"
import json

with tempfile.TemporaryDirectory(dir=".") as folder:
    mine = trained(Path(folder))
    copy = shutil.copytree(Path(folder) / "state", Path(folder) / "copy")
    told = json.loads((copy / "offload.json").read_text(encoding="utf-8"))["content"]
    print("what it is:", told["parameters"], "step", told["newest"]["step"])
    theirs = torch.nn.Parameter(torch.zeros_like(mine))
    with OffloadAdamW.resume(copy, [theirs]) as optimizer:
        moments = optimizer.state_dict()["state"][0]
    print("the same weights, bit for bit:", torch.equal(theirs, mine))
    print("mean of past gradients:", moments["exp_avg"].unique().tolist())

# %% [markdown] id="stranger-read"
# Weights and moments: all of it. So treat the folder as the model itself.
#
# - **Moments** are means of gradients, and gradients can give away the batch that they were made of (Zhu, Liu and Han, *Deep
#   Leakage from Gradients*, 2019). A mean over many batches says less than one gradient; nobody promises that it says nothing.
#   Batches and activations themselves are not written.
# - **A checksum is no signature.** It finds damage. Who may write the file can write a fitting checksum, too.
# - **Deleted is not gone.** On flash, even writing over a file leaves old copies behind (Wei, Grupp, Spada and Swanson, *Reliably
#   Erasing Data from Flash-Based Solid State Drives*, 2011). The cure comes first: encrypt the disk below the files, and throw
#   the key away at the end. The engine does not encrypt.
# - **A checkpoint from somebody else** can be a program: pickled files may run code when they are loaded. Leave
#   `torch.load(…, weights_only=True)` as it is. The engine's own files are numbers and JSON.
#
# ## Explain
#
# Ten questions. If you see no buttons, answer as text, the way each question says.

# %% id="quiz"
from quizzes import Quiz

quiz = Quiz("09")
answers = quiz.answers
quiz.show()

# %% [markdown] id="change-text"
# ## Change one thing
#
# How soon, and from how much on, should the alarm ring? Say first what happens with `SLOWER` of 1.2. Then with 1.4 and a `HOLD` of
# 1, which wakes somebody at the first slow step: how often in a night, if one step in a hundred is slow by itself?

# %% id="change"
SLOWER, HOLD = 1.4, 8

times = [noise.uniform(1.9, 2.1) * (2 if number % 100 == 99 else 1) for number in range(600)]
times[500:] = [SLOWER * seconds for seconds in times[500:]]  # from step 501 on
alarms = [step for step, alarm in watched(times, hold=HOLD)]
early = [step for step in alarms if step <= 500]
late = [step for step in alarms if step > 500]
print(f"false alarms: {len(early)} at {early};", f"the real one: step {late[0]}" if late else "the real one: missed")

# %% [markdown] id="make-text"
# ## Make
#
# Write the gate's verdict. `go(figures, targets)` returns a pair: True or False, and the list of the names of all targets that are
# missed, in the order of `targets`.
#
# Contract:
#
# - `targets` is a dict: a name, and the most that passes. None at all raises ValueError.
# - `figures` is a dict: a name, and what was measured, a number; None, or no such name, where it was not measured.
# - One target has another figure: `"seconds_per_step"` is the median of `figures["seconds"]`, a list with the seconds of each step,
#   of which the first two do not count.
# - A target is missed where its figure is above it, is not finite, or was not measured.

# %% id="make"
def go(figures, targets):
    ...  # your lines instead of this one


# %% id="make-check"
from course.checks import lesson_09

solved = lesson_09.go.check(go)

# %% [markdown] id="make-used-text"
# Then let yours judge what the real gate measured in its first run, for which it said no:

# %% id="make-used"
seen = first.measured
figures = {"peak_ram_bytes": seen.peak_ram_bytes, "disk_bytes": seen.disk_bytes}
figures["seconds"] = [0.0, 0.0, *seen.seconds]  # the gate has left out the two that warm up
asked = {name: getattr(targets, name) for name in ("seconds_per_step", "peak_ram_bytes", "disk_bytes")}
print("yours:", go(figures, asked) if solved else "not written yet", "  the gate:", first.why)

# %% [markdown] id="transfer-text"
# ## Transfer
#
# Another run, for which you sign: 200,000 steps on a machine for $2.50 an hour. In the gate, 47 of 50 steps took 8.0 s, and the
# three that save a checkpoint 40 s each. The targets: 9 s a step, and $1,200 for the whole run. Go or no-go?

# %% id="predict-bill"
bill = Prediction("09-bill", "What will the run cost?", most=100_000, unit="dollars", called="bill")
bill.show()
VERDICT = ""  # your word for it: go, or no-go

# %% id="bill"
signed = Targets(seconds_per_step=9, cost=1200, run_steps=200_000, price_per_hour=2.50)
checks = compare(signed, Measured(seconds=(8.0,) * 47 + (40.0,) * 3, losses=()))
bill.compare(checks[1].measured, "Calculated")
verdict = "go" if all(check.passed for check in checks) else "no-go"
print("\n".join(check.text for check in checks))
print(f"You said {VERDICT or 'nothing'}; it is a {verdict}.")

# %% [markdown] id="leave"
# **What you leave with**
#
# - Targets first, from people who need them. A target that moves afterwards moves by a decision, and stands in the log.
# - One number has no spread; another load has another number. Measure what will run, where it will run, more than once.
# - Time is judged by the median, money by the mean.
# - An alarm on change sees shifts and spikes. Slow drift is seen by a target that is asked again.
# - Gone: `resume`. Failed: `rollback()`. Damaged: `"previous"`, by decision. NaN: skipped, and counted. Slow: look at the disk.
# - The directory is the model. `umask 077`, an encrypted disk, and a look at what lies beside it.
#
# Next: what of all this is left when the machine is another one?
