# %% [markdown] id="title"
# # 1 · Where did the memory go?
#
# A model of 7 billion parameters in bfloat16 is a file of 14 GB. Try to train it on a card of 24 GB, and the very first step
# ends in *out of memory*. Where did the rest go?
#
# In this lesson you measure it on a model in front of you, watch it move to a disk while the model trains, and see the same
# training fail and succeed under one hard limit. It takes about half an hour; running all cells takes about a minute. Every
# cell can be run again, in any front end, with or without a GPU.

# %% id="machine"
from course.machine import inventory

print(inventory())

# %% [markdown] id="recall"
# ## Recall
#
# Two things that you have met before:
#
# 1. **Backward** leaves one gradient for each weight.
# 2. **Adam** does not step along that gradient alone. It keeps a running mean of the gradients (`exp_avg`) and one of their
#    squares (`exp_avg_sq`), and divides the one by the root of the other.
#
# ## Predict
#
# A small GPT has float32 weights, 4 bytes each. Between two training steps with AdamW, how many bytes of memory does **one
# parameter** take: weight, gradient and whatever Adam keeps, activations left out? Guess before you run on. A wrong guess
# that you wrote down teaches more than a right one that you read. You may skip it.
#
# Your prediction is kept in this notebook, and drawn as a line on the plots below.

# %% id="predict"
from course.prediction import Prediction

prediction = Prediction(
    "01-sixteen",
    "How many bytes does one parameter take between two steps of AdamW?",
)
prediction.show()

# %% [markdown] id="sixteen-text"
# ## The sixteen bytes
#
# Here is the model: a GPT that reads bytes, small enough for a laptop. The meter counts tensors, by kind. It is asked three
# times: before anything has happened, after one backward, and after one step.

# %% id="sixteen"
import torch

from offload_lab.meter import Meter
from offload_lab.training import Batches, GPTConfig, TinyGPT, corpus, loss_of, train

SHAPE = GPTConfig(layers=4, width=512, heads=8, context=64)
model = TinyGPT(SHAPE)
n = model.parameter_count()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
meter = Meter(model, optimizer)
batches = Batches(corpus(), batch=4, context=SHAPE.context)


def a_parameter(moment, reading):
    print(
        f"{moment:15}",
        f"weight {reading.weights / n:.2f}",
        f"gradient {reading.gradients / n:.2f}",
        f"optimizer state {reading.optimizer_ram / n:.2f}",
        f"= {reading.ram / n:5.2f}",
        sep="   ",
    )


print(f"{n:,} parameters. Bytes a parameter, measured:\n")
a_parameter("built", meter.read())
loss_of(model, *next(batches)).backward()
a_parameter("after backward", meter.read())
optimizer.step()
last = meter.read()
a_parameter("after one step", last)
print()
prediction.compare(last.ram / n)

# %% [markdown] id="sixteen-read"
# Sixteen: 4 for the weight, 4 for the gradient, 4 for `exp_avg` and 4 for `exp_avg_sq`. Half of the memory is **optimizer
# state**: numbers that forward and backward never look at, and that the update needs once a step.
#
# Does bfloat16 save us? Weight and gradient shrink to 2 bytes each. But a step is often smaller than the smallest change
# that a bfloat16 weight can show, so one keeps a float32 copy of it, the **master weight**, and the moments in float32:
# 2 + 2 + 4 + 4 + 4. Sixteen again. Of these, twelve are optimizer state.
#
# ## Watch it
#
# Now train, and watch the same kinds over time. The plot is redrawn while the model trains in a thread of its own; the Stop
# button ends the training after the step it is in.

# %% id="watch-start"
from offload_lab.plots import LiveMemory

STEPS = 30
model = TinyGPT(SHAPE)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
meter = Meter(model, optimizer)
guess = int(prediction.value * n) if prediction.value else None
adamw_view = LiveMemory("AdamW", prediction_bytes=guess, sample_seconds=0.02)


def train_with_adamw(stop, on_step, model=model, optimizer=optimizer, meter=meter):
    batches = Batches(corpus(), batch=4, context=SHAPE.context)
    return train(model, optimizer, batches, STEPS, stop=stop, on_step=on_step, meter=meter)


adamw_view.start(train_with_adamw, meter)

# %% id="watch-wait"
adamw_run = adamw_view.wait(timeout=60)
print(adamw_run)

# %% [markdown] id="offload-text"
# Each tooth is one step. Forward piles up activations, backward turns them into gradients, and the next step begins by
# letting the gradients go. Weights and optimizer state never shrink: they are held from the first step to the last. At its
# fullest, just before the update, the memory is the sixteen bytes again.
#
# ## The same training, offloaded
#
# What is needed once a step need not lie in expensive memory. `OffloadAdamW` is AdamW with its state elsewhere: here in files,
# read ahead of the update and written behind it, through a few small buffers in RAM. Same model, same text, same seed.

# %% id="offload-start"
from offload_lab import OffloadAdamW, OffloadPolicy

model = TinyGPT(SHAPE)
policy = OffloadPolicy(
    tier="disk",
    directory="lesson-1-state",
    ram_budget="8MiB",
    durability="checkpoint",
)
optimizer = OffloadAdamW(model.parameters(), lr=3e-4, offload=policy)
meter = Meter(model, optimizer)
disk_view = LiveMemory(
    "OffloadAdamW on disk", prediction_bytes=guess, sample_seconds=0.02
)


def train_offloaded(stop, on_step, model=model, optimizer=optimizer, meter=meter):
    batches = Batches(corpus(), batch=4, context=SHAPE.context)
    return train(model, optimizer, batches, STEPS, stop=stop, on_step=on_step, meter=meter)


disk_view.start(train_offloaded, meter)

# %% id="offload-wait"
disk_run = disk_view.wait(timeout=60)
moved = optimizer.stats()
optimizer.close()
print(disk_run)

# %% [markdown] id="read-off-text"
# ## Read it off
#
# Side by side, as measured: the most of each kind at any moment.

# %% id="read-off"
from offload_lab.state_bytes import readable
from offload_lab.plots import MemoryPlot


def most(run, kind):
    return max(getattr(reading, kind) for reading in run.readings)


print(f"{'':24}{'AdamW':>12}{'on disk':>12}")
for label, kind in [
    ("weights", "weights"),
    ("gradients", "gradients"),
    ("optimizer state in RAM", "optimizer_ram"),
    ("activations", "activations"),
    ("all in RAM, at once", "ram"),
    ("optimizer state on disk", "optimizer_disk"),
]:
    in_ram, on_disk = most(adamw_run, kind), most(disk_run, kind)
    print(f"{label:24}{readable(in_ram):>12}{readable(on_disk):>12}")
losses = list(zip(adamw_run.losses, disk_run.losses))  # fewer where one was stopped
if losses:
    print(f"\nloss of step {len(losses)}: {losses[-1][0]:.5f} and {losses[-1][1]:.5f}")
    print(f"disk: read {readable(moved['bytes_read'])}", end=", ")
    print(f"wrote {readable(moved['bytes_written'])} in {len(disk_run.losses)} steps")
MemoryPlot(
    {"AdamW": adamw_run.readings, "OffloadAdamW on disk": disk_run.readings},
    title="Memory of the same training",
    prediction_bytes=guess,
)

# %% [markdown] id="read-off-discuss"
# The optimizer state left the RAM; weights, gradients and activations stayed. The loss is the same to the last digits that
# float32 arithmetic leaves: moving numbers does not change them. What you pay is time: the state is read and written in every
# step. (Why there is more on the disk than the state itself: two generations are kept, so that a step that is interrupted
# never leaves half of one.)
#
# ## Under a limit
#
# Saving memory is one thing, training where it did not fit is another. This cell starts three processes. Each may take
# **16 bytes a parameter** beyond what it had before the model was built, and the operating system enforces it. AdamW needs all
# of that for the sixteen bytes alone, and then come the activations. What will happen to each of the three?

# %% id="limit"
from offload_lab.demo import run_demo

result = run_demo(preset="lesson", steps=6)
result

# %% [markdown] id="explain"
# The RAM tier passed by two bytes a parameter: a bfloat16 weight *is* the high half of its master, so only the low half is
# kept beside it. The disk tier passed with most of the limit to spare.
#
# ## Explain
#
# Eight questions. Each answer tells at once what is right about it, and what is not. If you see no buttons, answer as text, in a
# cell of your own, the way each question says.

# %% id="quiz"
from quizzes import Quiz

quiz = Quiz("01")
answers = quiz.answers
quiz.show()

# %% [markdown] id="change-text"
# ## Change one thing
#
# Change `DTYPE` to `torch.bfloat16` and run the cell again; then to `torch.float16`. Before you do: which of the three figures
# will change, and to what?

# %% id="change"
DTYPE = torch.float32

probe = TinyGPT(GPTConfig(layers=1, width=128, heads=4, context=64, dtype=DTYPE))
with OffloadAdamW(probe.parameters(), offload=OffloadPolicy(tier="ram")) as in_ram:
    train(probe, in_ram, Batches(corpus(), 2, 64), 1)
    reading = Meter(probe, in_ram).read()
    count = probe.parameter_count()
print(f"{DTYPE}, bytes a parameter, measured:")
print(f"weight {reading.weights / count:.1f}", end=", ")
print(f"gradient {reading.gradients / count:.1f}", end=", ")
print(f"optimizer state {reading.optimizer_ram / count:.1f}")

# %% [markdown] id="make-text"
# ## Make
#
# Write the arithmetic down as a function. It takes a number of parameters, the dtype of the weights (`"float32"` or
# `"bfloat16"`) and where the state lies: `"adamw"` (torch's AdamW, with masters for a bfloat16 model), `"ram"` or `"disk"`
# (OffloadAdamW; leave its buffers out). It returns the bytes in RAM between two steps, as a whole number.

# %% id="make"
def bytes_in_ram(parameters, dtype, where):
    ...  # your lines instead of this one


# %% id="make-check"
from course.checks import lesson_01

solved = lesson_01.bytes_in_ram.check(bytes_in_ram)

# %% [markdown] id="transfer-text"
# ## Transfer
#
# `training_bytes` does the same arithmetic for any size. These figures are *predicted*, without activations; nothing was run.
# Would 7 billion bfloat16 parameters train on a card of 24 GB, if only the optimizer state moved?

# %% id="transfer"
from offload_lab.state_bytes import training_bytes

for where in ("adamw", "ram", "disk"):
    print(training_bytes(7_000_000_000, "bfloat16", where), end="\n\n")

# %% [markdown] id="leave"
# No: weights and gradients alone are 28 GB. Moving the optimizer state takes 84 GB of 112 away from the card, and here the
# gradients must leave it as well. How they do is lesson 3.
#
# **What you leave with**
#
# - Training with AdamW takes 16 bytes a parameter before the first activation, in float32 and with float32 masters.
# - Twelve of them (float32: eight) are optimizer state, which only the update reads.
# - They can lie in RAM or on a disk. The numbers stay the same; the price is time.
# - `OffloadAdamW` takes the place of `torch.optim.AdamW` in your own training loop, as it did here.
