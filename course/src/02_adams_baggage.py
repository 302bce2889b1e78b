# %% [markdown] id="title"
# # 2 · Adam's baggage
#
# Twelve bytes a parameter are optimizer state. Before we carry them anywhere, let us see whether we could do without. You write
# Adam down in ten lines, take its parts away one by one, and watch what breaks. It takes about forty minutes; running all cells
# takes about half a minute.

# %% [markdown] id="recall"
# ## Recall
#
# From lesson 1: a float32 model trained with AdamW holds `exp_avg` and `exp_avg_sq` beside its weights. A bfloat16 model also holds
# a float32 **master weight**, 4 bytes. That is 2 + 2 + 4 + 4 + 4.
#
# bfloat16 has float32's range and much less precision: 1 sign bit, 8 bits of exponent, **7 bits of fraction**.
#
# ## Predict
#
# A weight is 1.0 in bfloat16. You add 0.001 to it, a thousand times. What is it then?

# %% id="predict-sum"
from course.prediction import Prediction

total = Prediction(
    "02-sum", "1.0 and a thousand times 0.001, in bfloat16: what comes out?", most=1e6, unit="count", called="total"
)
total.show()

# %% [markdown] id="predict-moved-text"
# And a real model: weights in bfloat16, trained with AdamW at a learning rate of 3e-5, as for fine-tuning. Of all its weights, how
# many per cent does **one** step change at all?

# %% id="predict-moved"
moved = Prediction("02-moved", "How many per cent of the weights does one step change?", 100, "percent", "moved")
moved.show()

# %% [markdown] id="hand-text"
# ## Adam by hand
#
# Kingma and Ba, *Adam*, 2015; with the decoupled weight decay of Loshchilov and Hutter, *AdamW*, 2019. Ten lines:

# %% id="hand"
import torch


def adamw(weight, gradient, exp_avg, exp_avg_sq, step, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, decay=0.01):
    beta1, beta2 = betas
    weight *= 1 - lr * decay                                              # weight decay, beside the gradient
    exp_avg += (1 - beta1) * (gradient - exp_avg)                         # a running mean of gradients ...
    exp_avg_sq += (1 - beta2) * (gradient * gradient - exp_avg_sq)        # ... and of their squares
    mean = exp_avg / (1 - beta1**step)                                    # both began at zero:
    size = (exp_avg_sq / (1 - beta2**step)).sqrt()                        # bias correction makes them whole
    weight -= lr * mean / (size + eps)


for size in (1e-6, 1.0, 1e6):
    weight, gradient = torch.zeros(1), torch.full((1,), size)
    adamw(weight, gradient, torch.zeros(1), torch.zeros(1), step=1)
    print(f"first step along a gradient of {size:7g}: {weight.item():+.6f}")

# %% [markdown] id="hand-read"
# The gradient grew by twelve orders of magnitude, the step did not: it is the learning rate, 0.001. That is what `exp_avg_sq` is for.
# It divides each step by the usual size of its gradient, so the scale cancels. Without it we are back at gradient descent, which
# needs a learning rate for each kind of weight.
#
# So all three numbers earn their keep: the mean gives the direction, the mean square the scale, the step count makes both whole.
#
# ## The last bit
#
# Is this AdamW? The oracle is `torch.optim.AdamW`. In float64 the two must agree almost to the end of the number. In float32 they
# do the same operations in another order, and each order rounds differently. How far apart are they after fifty steps?

# %% id="parity"
def train_both(dtype, steps=50):
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(10_000, generator=generator, dtype=dtype)
    ours, theirs = start.clone(), torch.nn.Parameter(start.clone())
    state = torch.zeros_like(ours), torch.zeros_like(ours)
    optimizer = torch.optim.AdamW([theirs], lr=1e-3)
    for step in range(1, steps + 1):
        gradient = torch.randn(10_000, generator=generator, dtype=dtype)
        adamw(ours, gradient, *state, step)
        theirs.grad = gradient
        optimizer.step()
    return ours, theirs.detach()


def units_apart(ours, theirs):
    one = torch.nextafter(theirs.abs(), torch.full_like(theirs, torch.inf)) - theirs.abs()
    return (ours - theirs).abs() / one


for dtype in (torch.float64, torch.float32):
    ours, theirs = train_both(dtype)
    units = units_apart(ours, theirs)
    print(f"{str(dtype):14} largest difference {(ours - theirs).abs().max():.1e}")
    print(f"{'':14} identical in every bit: {(units == 0).float().mean():.0%}", end=", ")
    print(f"half of them within {units.median():.0f} units in the last place")

# %% [markdown] id="parity-read"
# Two correct programs, and their last bits differ. This is the bit that can be expected and no more: the differences are about as
# large as float32 is fine. Whoever claims "identical to torch" has to say which operations, in which order.
#
# `OffloadAdamW` makes another promise, a stronger one, about *itself*: its own bits never depend on where the state lies. The update
# goes element by element, so no sum depends on how the tensor is cut, cached or ordered.

# %% id="tiers"
import tempfile

from offload_lab import OffloadAdamW, OffloadPolicy


def run(policy, steps=10):
    generator = torch.Generator().manual_seed(1)
    weight = torch.nn.Parameter(torch.randn(100_003, generator=generator).to(torch.bfloat16))
    with OffloadAdamW([weight], lr=1e-3, offload=policy) as optimizer:
        for _ in range(steps):
            weight.grad = torch.randn(100_003, generator=generator).to(torch.bfloat16)
            optimizer.step()
    return weight.detach()


in_ram = run(OffloadPolicy(tier="ram"))
with tempfile.TemporaryDirectory(dir=".") as folder:
    on_disk = run(OffloadPolicy(tier="disk", directory=folder, partition_size=7_001))
print("bits that differ between RAM and disk:", (in_ram != on_disk).sum().item())

# %% [markdown] id="master-text"
# ## The master copy
#
# Now the expensive one: four bytes for a second copy of each weight. Why not update the bfloat16 weight in place?

# %% id="sum"
sixteen, master = torch.tensor(1.0, dtype=torch.bfloat16), torch.tensor(1.0)
for _ in range(1000):
    sixteen += 0.001
    master += 0.001
print(f"float32:  {master:.4f}")
print(f"bfloat16: {sixteen:.4f}")
total.compare(sixteen.item())

# %% [markdown] id="sum-read"
# Nothing happened, a thousand times. With 7 bits of fraction there are 2⁷ = 128 steps between 1 and 2, so the next number after 1.0
# is 1 + 1/128 = 1.0078. An update is rounded to the *nearest* number: to move, it must be larger than half of that gap, 0.0039.
# 0.001 is not, so the sum is 1.0 again. It is not that each step is a little wrong. Each step is lost as a whole.
#
# A float32 master collects the updates, and after four of them the sum crosses the half-way point:

# %% id="crossing"
master = torch.tensor(1.0)
for step in range(1, 13):
    master += 0.001
    print(f"update {step:2}: master {master:.4f}, as bfloat16 {master.to(torch.bfloat16):.6g}")

# %% [markdown] id="model-text"
# That was one number. Now a model: the same small GPT three times, from the same weights, on the same text, with the learning rate
# of a fine-tuning. First a single step: how many of its weights move at all?

# %% id="moved"
from offload_lab.training import Batches, GPTConfig, TinyGPT, corpus, train

LR, STEPS = 3e-5, 150


def model_of(dtype):
    return TinyGPT(GPTConfig(layers=2, width=128, heads=4, context=64, dtype=dtype))


probe = model_of(torch.bfloat16)
before = [weight.detach().clone() for weight in probe.parameters()]
train(probe, torch.optim.AdamW(probe.parameters(), lr=LR), Batches(corpus(), 8, 64), 1)
changed = sum((old != new).sum().item() for old, new in zip(before, probe.parameters(), strict=True))
share = 100 * changed / probe.parameter_count()
moved.compare(share)

# %% id="train"
losses = {}
for name, dtype, with_master in [
    ("float32", torch.float32, False),
    ("bfloat16 with masters", torch.bfloat16, True),
    ("bfloat16 alone", torch.bfloat16, False),
]:
    model = model_of(dtype)
    kind = OffloadAdamW if with_master else torch.optim.AdamW
    optimizer = kind(model.parameters(), lr=LR)
    losses[name] = train(model, optimizer, Batches(corpus(), 8, 64), STEPS)
    print(f"{name:22} mean loss of the last 20 steps: {sum(losses[name][-20:]) / 20:.3f}")

# %% [markdown] id="curves-text"
# Does the difference grow, or is it a stumble at the start?

# %% id="curves"
from course.curves import Curves, smoothed

Curves(
    "The same training, with and without a master copy",
    {name: smoothed(values, 20) for name, values in losses.items()},
    across="step",
    up="loss, mean of 20 steps",
)

# %% [markdown] id="curves-read"
# With masters, bfloat16 follows float32; the two lines lie on each other. Alone it falls behind, more with every step, for the
# weights whose updates are under half a unit stand still. The dangerous part is that *it still learns*: nothing crashes, no NaN, only
# a model that is worse than it could be.
#
# ### Half of a master is free
#
# A bfloat16 number is the upper half of a float32 number. So a bfloat16 weight already *is* the upper half of its master, and only
# the lower 16 bits need a place. One thing has to be settled: is the upper half rounded, and how are ties broken? If ties go to even,
# one lower half can belong to the weight above or below it, and a seventeenth bit is needed to tell. If they go **away from zero**,
# the lower half alone says which way was rounded. That is why this engine rounds ties away from zero, and stores a state of
# 2 + 4 + 4 = 10 bytes instead of 12.

# %% id="halves"
import numpy as np

from offload_lab.halves import join_words, split_words

masters = np.random.default_rng(0).standard_normal(1_000_000).astype(np.float32)
weights, lower_halves = split_words(masters)  # what the model holds, and what is stored beside it
again = join_words(weights, lower_halves)

number = masters[0]
print(f"master {number:.8f} = {number.view(np.uint32):032b}")
print(f"weight (rounded)    = {weights[0]:016b}")
print(f"lower half                          = {lower_halves[0]:016b}")
print(f"of {masters.size:,} masters put together again, {(again.view(np.uint32) != masters.view(np.uint32)).sum()} differ in a bit")

# %% [markdown] id="explain"
# ## Explain
#
# Eight questions. If you see no buttons, answer as text, the way each question says.

# %% id="quiz"
from quizzes import Quiz

quiz = Quiz("02")
answers = quiz.answers
quiz.show()

# %% [markdown] id="change-text"
# ## Change one thing
#
# float16 has 10 bits of fraction, eight times as fine as bfloat16. Would it learn alone? Predict; then set `DTYPE` to
# `torch.float16`, and after that `UPDATE` to 0.0004.

# %% id="change"
DTYPE, UPDATE = torch.bfloat16, 0.001

weight = torch.tensor(1.0, dtype=DTYPE)
gap = torch.finfo(DTYPE).eps
for _ in range(1000):
    weight += UPDATE
print(f"{DTYPE}: the next number after 1 is 1 + {gap:.6f}; half of the gap is {gap / 2:.6f}")
print(f"1 and a thousand times {UPDATE}: {weight.item():.4f}")

# %% [markdown] id="make-text"
# ## Make
#
# When does a weight start to move? `steps_until_it_moves(weight, update, fraction_bits)` gets a positive weight, a positive update
# that is added in every step, and the number of fraction bits of its format (bfloat16: 7). A master in exact arithmetic collects the
# updates. It returns the number of the first step after which the *rounded* weight is larger than at the start, or 0 if the weight
# moves by itself, without a master, in the first step. Half of the gap counts as moving: ties go away from zero.
#
# Contract: `weight` is a power of two times a number that the format can hold exactly; the answer is an int. The gap at `weight` is
# 2^(exponent − fraction_bits), where 2^exponent ≤ weight < 2^(exponent + 1).

# %% id="make"
def steps_until_it_moves(weight, update, fraction_bits):
    ...  # your lines instead of this one


# %% id="make-check"
from course.checks import lesson_02

solved = lesson_02.steps_until_it_moves.check(steps_until_it_moves)

# %% [markdown] id="transfer-text"
# ## Transfer
#
# Could the *moments* do with 16 bits, then? `exp_avg_sq` moves by a thousandth of its distance in each step: beta2 is 0.999. What does
# that mean for a format with 7 bits of fraction? Say it before you run the cell.

# %% id="transfer"
square = torch.tensor(1.0, dtype=torch.bfloat16)
exact = torch.tensor(1.0)
for _ in range(2000):  # the gradients have become small: the mean of their squares should decay towards 0
    square += (1 - 0.999) * (0.0 - square)
    exact += (1 - 0.999) * (0.0 - exact)
print(f"float32:  {exact:.4f}")
print(f"bfloat16: {square:.4f}")

# %% [markdown] id="leave"
# It never forgets: the steps stay as short as they were for the largest gradients of long ago. (Engines that store moments in 8 or 16
# bits round them at random or by blocks with scales; here that is `state_dtype=`, and it is another algorithm.)
#
# **What you leave with**
#
# - Adam needs a direction, a scale and a count; the scale makes its steps independent of the size of the gradient.
# - Parity has a last bit: float64 to 1e-15, float32 to some units in the last place. The engine's own bits never depend on the tier.
# - An update smaller than half a unit in the last place vanishes as a whole. A bfloat16 model without masters goes on learning, worse.
# - The bfloat16 weight is the upper half of its master, so ten bytes of state are enough.
#
# Next: where these ten bytes go, and what has to cross the link.
