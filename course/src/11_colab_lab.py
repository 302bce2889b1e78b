# %% [markdown] id="title"
# # 11 · Colab lab: one GPU, a model that does not fit
#
# Ten lessons measured, simulated and predicted. In this one you fine-tune all parameters of a model that your card cannot train
# with AdamW: you see it run out of memory, move the state to RAM and then to the disk, and go on after the training was killed.
# It takes about forty minutes; running all cells takes about a minute without a GPU.
#
# The lab is made for one GPU, for instance the free one of Google Colab. On a machine without one **the same cells run on the
# CPU**, with a smaller model, and each figure says what played the card.
#
# [![Open in Colab](../pictures/colab.svg)](https://colab.research.google.com/github/OWNER/REPO/blob/main/course/en/11_colab_lab.ipynb)
#
# *On Colab, first choose a GPU: Runtime → Change runtime type → T4 GPU.*

# %% [markdown] id="install-text"
# ## Install
#
# Colab comes with a torch that fits its driver, and a numpy that fits its torch. An installation that replaces one of them breaks
# the runtime. So this cell asks `pip` for its *plan* first, stops if one of the two is in it, and compares their versions
# afterwards. Anywhere but on Colab it installs nothing.

# %% id="install"
import importlib.util
import json
import subprocess
import sys
from importlib import metadata

REPOSITORY = "OWNER/REPO"  # where the course is published
KEPT = ("torch", "numpy")


def versions():
    return {name: metadata.version(name) for name in KEPT}


def pip(*words):
    command = [sys.executable, "-m", "pip", "install", "--quiet", *words]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print("pip could not do it:", done.stderr.strip()[-500:])
    return None if done.returncode else done.stdout


if importlib.util.find_spec("course") is not None:
    print("The course is installed here; nothing is installed now.")
elif "google.colab" not in sys.modules:
    print("The course is not installed here, and this is not Colab: see its README.")
elif REPOSITORY == "OWNER/" + "REPO":
    print("Write the course's repository into REPOSITORY, and run this cell again.")
else:
    before, source = versions(), f"git+https://github.com/{REPOSITORY}"
    report = pip("--dry-run", "--report", "-", source)
    planned = [package["metadata"]["name"] for package in json.loads(report or "{}").get("install", [])]
    replaced = sorted(set(KEPT) & set(planned))
    if replaced:
        print("Nothing was installed: pip would have replaced", *replaced)
    elif planned and pip(source) is not None:
        importlib.invalidate_caches()
        same = versions() == before
        print(f"{len(planned)} packages installed;", before, "are as before:", same)

# %% [markdown] id="recall"
# ## Recall
#
# - From lesson 1: training with AdamW takes 16 bytes a parameter before the first activation. Weight and gradient are 8 of them
#   in float32, and 4 in bfloat16.
# - From lesson 5: with `durability="step"` the disk holds two generations, and after every step the directory alone restores
#   weights and state.
# - From lesson 10: where there is only one memory, what leaves one side of it arrives on the other.

# %% [markdown] id="room-text"
# ## The card
#
# What is here? Three figures, measured now; what other programs hold is taken off.

# %% id="room"
from course.one_gpu import room

here = room(".")
print(here)

# %% [markdown] id="choose-text"
# Now a model for it: the smallest one that AdamW *cannot* train on this card, while weights and gradients fit.
#
# **Nothing is downloaded unless you say so.** With `DOWNLOAD = True` the model comes pretrained from the Hugging Face hub: one of
# the *Pythia* models (Biderman et al., *Pythia: A Suite for Analyzing Large Language Models Across Training and Scaling*, 2023),
# for a T4 the one with a billion parameters, a download of 2 GB. With `False` it is the course's own small GPT with random
# weights, cut to the card. It can say nothing before it is trained; memory and steps are the same matter.

# %% id="choose"
from course.fitting import choose
from course.one_gpu import fetched

DOWNLOAD = False  # True: fetch a pretrained model

choice = fetched(choose(here, download=DOWNLOAD), here)
print(choice)

# %% [markdown] id="choose-read"
# These figures are *predicted*: bytes a parameter times parameters. Without a GPU a hard limit of 14 bytes a parameter plays
# the card, in a process of its own; the operating system enforces it, as in lesson 1.
#
# ## Predict
#
# Two numbers, before anything runs. First: take the state away. How many bytes **a parameter** does the card hold at the fullest
# moment then, activations included?

# %% id="predict-card"
from course.prediction import Prediction

on_card = Prediction("11-card", "How many bytes a parameter, at most, on the card?", called="on_card")
on_card.show()

# %% [markdown] id="predict-step-text"
# And later a training is killed with `kill -9`, at once when it says that its step **10** is over. It has no time to tidy up.

# %% id="predict-step"
resumes = Prediction(
    "11-resumes",
    "Which step can it do next, once it is started again?",
    most=1000,
    unit="count",
    called="resumes",
)
resumes.show()

# %% [markdown] id="full-text"
# ## Out of memory
#
# First the thing itself: `torch.optim.AdamW` on this model. It runs in a process of its own, so that its end is not the end of
# this notebook, and what it had is given back. The model fits. So do the gradients. When will it fail?

# %% id="full"
from course.lab_runs import tried

print(tried(choice, "adamw"))

# %% [markdown] id="full-read"
# Forward and backward of the first step went through. AdamW makes its moments **in the first `step()`**, and there was no room for
# them: the words above are the allocator's own. A model that loads, and answers, and even has its gradients, may still not be
# one that can be trained.
#
# The same card, or the same limit, with the state on the disk:

# %% id="fits"
print(tried(choice, "disk"))

# %% [markdown] id="ram-text"
# ## State in RAM
#
# Now here, where you can watch. The loop is the one that you know; only the optimizer is another one. If the state would take more
# than 60 % of the RAM that is free, only a part of it stays there and the rest streams: a notebook whose kernel is ended for want
# of RAM has lost more than a step.
#
# In the plot, weights, gradients and activations lie where the model is: on the card. The optimizer's state is in RAM.

# %% id="ram-start"
from course.lab_runs import in_ram
from course.one_gpu import let_go, load
from offload_lab import OffloadAdamW
from offload_lab.meter import Meter
from offload_lab.plots import LiveMemory
from offload_lab.training import train

STEPS = 20


def watch(name, optimizer, model, batches, steps):
    meter = Meter(model, optimizer)
    view = LiveMemory(name, sample_seconds=0.02)

    def work(stop, on_step):
        return train(model, optimizer, batches, steps, stop=stop, on_step=on_step, meter=meter)

    view.start(work, meter)
    return view


model, batches = load(choice)
policy = in_ram(choice, "lesson-11-scratch")
optimizer = OffloadAdamW(model.parameters(), lr=choice.lr, offload=policy)
view = watch("state in RAM", optimizer, model, batches, STEPS)

# %% id="ram-wait"
from course.one_gpu import tiers

ram_run = view.wait(timeout=1800)
let_go(model, optimizer)
print(ram_run)
on_card.compare(tiers(ram_run.readings).card / choice.parameters)

# %% [markdown] id="disk-text"
# ## State on the disk
#
# About eight, and no activations? They are there, in the plot: but they go as the gradients come, and the fullest moment was the
# end of backward, when all gradients were there. (You change that further down.)
#
# And now with nothing of the state in RAM but a few buffers. Same model, same text, same seed.

# %% id="disk-start"
from offload_lab import OffloadPolicy

model, batches = load(choice)
policy = OffloadPolicy(
    tier="disk",
    directory="lesson-11-scratch",
    ram_budget=choice.buffers,
    durability="checkpoint",
)
optimizer = OffloadAdamW(model.parameters(), lr=choice.lr, offload=policy)
view = watch("state on the disk", optimizer, model, batches, STEPS)

# %% id="disk-wait"
disk_run = view.wait(timeout=1800)
let_go(model, optimizer)
print(disk_run)

# %% [markdown] id="read-off-text"
# ## Read it off
#
# Three tiers, measured: the most that lay in each, at any moment. And the same over time, for the run with its state on the disk.

# %% id="read-off"
from offload_lab.state_bytes import readable

print(f"{'most bytes':20}{'card':>10}{'RAM':>10}{'disk':>10}")
for run in (ram_run, disk_run):
    held = tiers(run.readings)
    sizes = (held.card, held.ram, held.disk)
    print(f"{run.name:20}" + "".join(f"{readable(size):>10}" for size in sizes))
needed, there = choice.on_card["AdamW"], choice.card
print(f"\nAdamW would need {readable(needed)} of {readable(there)}, predicted.")
losses = list(zip(ram_run.losses, disk_run.losses))  # fewer where one was stopped
if losses:
    print(f"loss: {losses[0][1]:.3f} in step 1, {losses[-1][1]:.3f} in step {len(losses)}")
    apart = max(abs(ram - disk) for ram, disk in losses)
    print(f"state in RAM and on the disk: losses at most {apart:.6f} apart")

# %% id="tiers-figure"
from course.curves import Curves
from course.one_gpu import over_time

Curves(
    "State on the disk: what lies where",
    over_time(disk_run.readings),
    across="seconds",
    up="MB",
)

# %% [markdown] id="read-off-discuss"
# The card holds weights, gradients and activations; the state holds its tier, and the loss falls along the same numbers. (Without a
# GPU, card and RAM are two parts of one memory, and moving from one to the other frees nothing. Only the disk does; that is why
# only it was tried under the limit.)
#
# ## A killed runtime
#
# A free runtime ends when it likes: a browser that is closed, a kernel that takes too much RAM, the end of the day. Now each step is
# **published**: `durability="step"`. The training runs in another process, and gets `kill -9` when it reports step 10.

# %% id="kill"
from course.lab_runs import killed_after, on_disk

RUN, KILL = "lesson-11-run", 10

let_go(model, optimizer)  # the card is wanted by the other process
killed = killed_after(choice, RUN, step=KILL)
print(f"killed; the last loss that it told was {killed[-1]:.3f}, of step {len(killed)}")

# %% id="look"
from pathlib import Path

from offload_lab.inspect import inspect

found = inspect(Path(RUN))
print(found.text())
resumes.compare(found.step + 1)

# %% [markdown] id="resume-text"
# No half of a step, although it was in the middle of one. `OffloadAdamW.resume` puts weights, moments and settings back; the model
# that you give it may be a fresh one.
#
# It does **not** know how far you were in the *text*. That is yours: the loop leaves out the batches that were seen.

# %% id="resume"
let_go(model, optimizer)  # where this cell is run again
model, batches = load(choice)
optimizer = OffloadAdamW.resume(RUN, model.parameters(), offload=on_disk(choice, RUN))
done = optimizer.stats()["steps"]
for _seen in range(done):
    next(batches)
view = watch("resumed", optimizer, model, batches, max(STEPS - done, 0))

# %% id="resume-wait"
resumed = view.wait(timeout=1800)
print(resumed)

# %% [markdown] id="checkpoint-text"
# The directory lies on the runtime's own disk. It outlives the kernel, and **not the runtime**: when Colab takes that back, its disk
# goes with it. So now and then save a checkpoint to a place that stays, such as a mounted Drive. This one has torch's own format:
# `torch.optim.AdamW` loads it too, where there is room.

# %% id="checkpoint"
import tempfile

import torch

KEEP = None  # a folder that stays, for instance "/content/drive/MyDrive"

with tempfile.TemporaryDirectory(prefix="lesson-11-", dir=".") as folder:
    target = Path(KEEP or folder)
    torch.save(model.state_dict(), target / "model.pt")
    optimizer.save(target / "optimizer.pt")
    for name in ("model.pt", "optimizer.pt"):
        print(f"{name:14}{readable((target / name).stat().st_size):>9}")
    saved = torch.load(target / "optimizer.pt", map_location="cpu", mmap=True)
    entry = saved["state"][0]
    print("of the first parameter:", {name: tuple(value.shape) for name, value in entry.items()})
    del saved, entry

# %% [markdown] id="curve-text"
# Does the loss go on where it was? If it does, the line of the run that was never stopped lies exactly under the other two.

# %% id="curve"
def steps_from(first, losses):
    return [(first + place, loss) for place, loss in enumerate(losses)]


shared = list(zip(disk_run.losses[done:], resumed.losses))
if shared:
    apart = max(abs(one - other) for one, other in shared)
    print(f"{len(shared)} steps after the kill: losses at most {apart:.6f} apart")
Curves(
    f"Killed after step {KILL}, and gone on",
    {
        "never stopped": steps_from(1, disk_run.losses),
        "killed": steps_from(1, killed),
        "resumed": steps_from(done + 1, resumed.losses),
    },
    across="step",
    up="loss (nats)",
)

# %% [markdown] id="explain-text"
# ## Explain
#
# Nine questions. If you see no buttons, answer as text, the way each question says.

# %% id="quiz"
from quizzes import Quiz

quiz = Quiz("11")
answers = quiz.answers
quiz.show()

# %% [markdown] id="change-text"
# ## Change one thing
#
# Eight times the batch. Which of the three tiers will hold more? Then try `context`, and think of a reason why nothing that this
# lab did helps with it.

# %% id="change"
from dataclasses import replace

from course.one_gpu import is_full

CHANGES = {"batch": 8 * choice.batch}  # or {"context": choice.context // 2}

for changed in (choice, replace(choice, **CHANGES)):
    let_go(model, optimizer)  # of the run before
    model, batches = load(changed)
    policy = in_ram(changed, "lesson-11-scratch")
    optimizer = OffloadAdamW(model.parameters(), lr=changed.lr, offload=policy)
    name = f"batch {changed.batch}, context {changed.context}"
    view = watch(name, optimizer, model, batches, 2)
    try:
        held = tiers(view.wait(timeout=600).readings)
    except RuntimeError as error:
        if not is_full(error):
            raise
        print(f"{name:26} out of memory: activations and gradients are too much for the card")
    else:
        print(f"{name:26} card {readable(held.card):>8}   RAM {readable(held.ram):>8}")
let_go(model, optimizer)

# %% [markdown] id="change-read"
# Activations grow with the batch, and they stay on the card. A small batch did not show them: they go as the gradients come, and the
# fullest moment was the one with all gradients. Where activations are what does not fit, take a smaller batch, or recompute them
# (*activation checkpointing*). Moving optimizer state does not touch them.

# %% [markdown] id="make-text"
# ## Make
#
# You come to a machine with one card. Where does the state go? Write `place(parameters, dtype, card, ram, disk) -> str`.
#
# Contract: sizes in bytes, activations and buffers left out; `dtype` is `"float32"` or `"bfloat16"`, another one raises
# ValueError. Return `"card"` where AdamW's sixteen bytes a parameter fit on the card. Else weights and gradients stay there:
# `"ram"` where OffloadAdamW's state fits in RAM, else `"disk"` where its two generations, weights included, fit on the disk.
# `"nowhere"` where nothing of that works. What fits exactly, fits.

# %% id="make"
def place(parameters, dtype, card, ram, disk):
    ...  # your lines instead of this one


# %% id="make-check"
from course.checks import lesson_11

solved = lesson_11.place.check(place)

# %% [markdown] id="transfer-text"
# ## Transfer
#
# Other cards. What would this lab choose on each? The memory of a card is *quoted* from its data sheet; RAM (twice that, of which
# half is free) and 500 GB of disk are *assumed*. Nothing is fetched for this.

# %% id="transfer"
from course.fitting import Room
from offload_lab import catalogue

for name in ("t4", "l4", "a100-80"):
    gpu = catalogue.gpu(name)
    size = int(gpu.memory.value)
    native = "bfloat16" in gpu.dtypes
    other = Room("cuda", gpu.title, size, size, size, 500_000_000_000, native)
    print(f"{gpu.title}:\n{choose(other, download=True)}\n")

# %% [markdown] id="leave"
# **What you leave with**
#
# - A model that loads is not yet one that trains: AdamW asks for its moments in the first step.
# - State in RAM or on the disk leaves weights, gradients and activations on the card, and not a loss changes.
# - A published directory survives `kill -9`; the runtime's disk does not survive the runtime. The place in the data is yours to
#   keep.
# - On a machine that is lent, install without replacing what it came with, and ask before you download.
#
# The last cell removes what this lesson wrote. Next: the final quiz, and your certificate.

# %% id="tidy"
import shutil

for folder in ("lesson-11-run", "lesson-11-scratch"):
    shutil.rmtree(folder, ignore_errors=True)
