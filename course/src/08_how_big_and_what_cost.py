# %% [markdown] id="title"
# # 8 · How big can you go, and what does it cost?
#
# You know where the bytes are, and how to move them. Now somebody asks you for a plan: which model, on which machine, for how
# much money? In this lesson you ask the planner what fits on one card of 24 GB and on eight, find out when the cheap machine is
# cheap and when it is dear, and hand the same plan to DeepSpeed and to Accelerate. It takes about forty-five minutes; running
# all cells takes about twenty seconds, and forty where DeepSpeed is installed.
#
# No machine of this lesson's first two parts stands before you. **What the planner says is predicted**, from figures that are
# quoted from data sheets or assumed. The third part runs, and is **measured**.

# %% [markdown] id="recall"
# ## Recall
#
# - From lesson 1: a bfloat16 parameter takes 16 bytes while it is trained. 2 are the weight, 2 the gradient, 12 the state: a
#   float32 master and two moments. (Our engine keeps 10 of these 12, for it stores half of the master only.)
# - From lesson 3: the state moves to RAM, and the CPU updates it there.
# - From lesson 5: it moves on to disk, and every step reads and writes all of it.
#
# ## Predict
#
# A card of 24 GB, and a bfloat16 model of 13 billion parameters. All optimizer state is in RAM; nothing else has moved.

# %% id="predict-left"
from course.prediction import Prediction

left = Prediction(
    "08-left",
    "How much memory do weights and gradients still take on the card?",
    most=1e12,
    called="left",
)
left.show()

# %% [markdown] id="predict-times-text"
# That model is to be trained on 100 million tokens, 2,048 a step. Machine A is rented: a card of 80 GB, $1.30 an hour. Machine
# B stands in your room: a card of 24 GB, 128 GB of RAM, an NVMe disk; bought and worn out, it comes to $0.44 an hour.

# %% id="predict-times"
times = Prediction(
    "08-times",
    "The run on B costs how many times what it costs on A?",
    most=1e4,
    unit="ratio",
    called="times",
)
times.show()

# %% [markdown] id="fits-text"
# ## What fits
#
# Start with what you would like: everything on the card. Then move one thing after the other, the state first. Each line is a
# plan; `!` marks a tier that is too small.

# %% id="ways"
from offload_lab import catalogue, plan
from offload_lab.planner import readable

card = catalogue.machine("rtx4090-nvme")
TIERS = ("gpu", "ram", "disk")
WAYS = {  # where the state is, the gradients, the weights
    "nothing moves": ("gpu", "gpu", "gpu"),
    "state in RAM": ("ram", "gpu", "gpu"),
    "gradients, too": ("ram", "ram", "gpu"),
    "weights, too": ("ram", "ram", "ram"),
    "only weights in RAM": ("disk", "disk", "ram"),
}


def held(made):
    sizes = {tier: made.total(tier) for tier in TIERS}
    return "".join(f"{readable(size) + '!' * (size > made.capacity[tier]):>11}" for tier, size in sizes.items())


plans = {}
print(f"{'llama-2-13b, predicted':26}{'card':>11}{'RAM':>11}{'disk':>11}")
for name, (state, gradients, weights) in WAYS.items():
    made = plan("llama-2-13b", card, state=state, gradients=gradients, weights=weights)
    plans[name] = made
    print(f"{name:26}{held(made)}   {'fits' if made.fits else 'does not fit'}")
print(f"{'what there is':26}" + "".join(f"{readable(made.capacity[tier]):>11}" for tier in TIERS))

n = made.model.parameters
left.compare(4 * n, "Counted")

# %% [markdown] id="ways-read"
# The state was by far the largest, and moving it is **not enough**: weights and gradients are 52 GB. Let each gradient leave as
# soon as backward has made it, and 26.0 GB of weights are left. The card has 24 GiB, which are 25.8 GB. It fails by a
# quarter of a GB, before a single activation is there!
#
# Here is the same in bytes a parameter. What the card has is 1.98 for each of the 13 billion.

# %% id="ways-figure"
from offload_lab.plots import bytes_per_parameter

print(f"the card has {made.capacity['gpu'] / n:.2f} bytes a parameter")
bytes_per_parameter(
    {name: {kind: size / n for kind, size in one.tiers["gpu"].items()} for name, one in plans.items()},
    source="predicted",
    title="On the card at the peak: bytes a parameter of llama-2-13b",
)

# %% [markdown] id="peak-text"
# *At the peak*: a plan has to leave room for what is there only for a moment. Activations are gone when backward is over,
# gradients when they are cleared, and the copies of the first bar are float32 gradients, which plain AdamW makes in its step.
# Between two steps you would see none of them, and the step fails all the same.
#
# So the weights have to leave as well. They lie in RAM and come to the card layer by layer, twice a step, and only two layers
# are ever there. That is what the planner takes, and here is why, in its own words.

# %% id="why"
import textwrap

chosen = plan("llama-2-13b", card)
print(textwrap.fill(chosen.why, 100))

# %% [markdown] id="sizes-text"
# Who can do that? Our engine moves the optimizer's state, and lets gradients leave early. Moving *weights* through the card is
# DeepSpeed's work; the planner knows both, and says which one a plan is for. Ask it how far this one machine goes.

# %% id="sizes"
NAMES = ("llama-3.2-1b", "llama-3.2-3b", "llama-2-7b", "llama-2-13b", "qwen2.5-32b", "llama-3-70b", 175 * 10**9)
print(f"{card.name}, 2,048 tokens a step, predicted")
print(f"{'billions':>8}  {'state':6}{'grads':6}{'weights':8}{'card':>9}{'RAM':>9}{'disk':>9}{'a step':>14}")
for name in NAMES:
    made = plan(name, card)
    at, sizes = made.placement, "".join(f"{readable(made.total(tier)):>9}" for tier in TIERS)
    places = f"{at.state:6}{at.gradients:6}{at.weights:8}"
    step = f"{made.seconds_per_step:12,.1f} s   {at.runs_with}" if made.fits else "  does not fit"
    print(f"{made.model.parameters / 1e9:8.1f}  {places}{sizes}{step}")

# %% [markdown] id="sizes-read"
# How big can you go? On one card of 24 GB, to 70 billion; then the disk of 2 TB is full. So the card is hardly a limit. But
# there is a price: from 7 to 13 billion the parameters double, and a step takes forty times as long. From there on the state
# does not fit into RAM, and every step waits for the disk. A planner that looks for what *fits* is easily pleased. Always read
# the seconds, too.
#
# And what fits nearby stays nearby: of the placements that fit, the plan takes the one that moves least (unless its step takes
# more than four times as long as the fastest one's).
#
# ### A few cards
#
# Several GPUs **share out** weights, gradients and state, and nothing is held twice; a layer is gathered from all of them when
# it is needed. So each would hold sixteen bytes a parameter, divided by the number of cards. And each reads tokens of its own,
# so that eight of them read eight times as many a step. Here: 32 billion parameters on a server with 256 GiB of RAM, a fast NVMe, and 1, 2, 4 or 8 of our cards.

# %% id="several"
parts = {
    "memory": catalogue.memory("ddr5x8"),
    "gpu": catalogue.gpu("rtx4090"),
    "disk": catalogue.disk("nvme5-server"),
    "ram": 256 * 2**30,
}
print("qwen2.5-32b, predicted")
for gpus in (1, 2, 4, 8):
    made = plan("qwen2.5-32b", catalogue.assemble("server", gpus=gpus, **parts))
    share = 16 * made.model.parameters / gpus
    rate = made.time.tokens / made.seconds_per_step
    print(
        f"GPUs: {gpus}   16 bytes a parameter are {readable(round(share)):>8} each;"
        f"{made.seconds_per_step:6.1f} s a step of {made.time.tokens:6,} tokens,{rate:6.0f} tokens a second"
    )
    print(f"         {made.placement}; bound by {made.time.bound_by}")

# %% [markdown] id="several-read"
# Two things to see. Even eight cards cannot hold their 65.5 GB each; the disk has to help with any number of them. And from one
# card to four a step takes the same time: the disk reads and writes the *same* state, however many cards wait for it. They
# bring more tokens for that time, so tokens a second double with the cards. With eight, each card holds an eighth of the weights
# for good, gradients wait in RAM, and nothing but the state passes through the disk: the step is half as long.
#
# ## What it costs
#
# Money is arithmetic: tokens by tokens a step are steps, times seconds are hours (there are 3,600 seconds in one), times the
# price of an hour. The prices are the weak part.

# %% id="prices"
from offload_lab import prices

MACHINES = ("rtx4090-nvme", "a100-80-server", "h100-80-server")
table = prices.load()
for name in MACHINES:
    hour = table[name].figure()
    print(f"{name}: ${hour.value:.2f} an hour, {hour.source}")
    print(textwrap.fill(hour.note, 100, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False))

# %% [markdown] id="prices-read"
# Each has its date, and says where it is from; nothing here is ever fetched. When you read this they are old. They are **inputs**:
# edit `offload_lab/prices.toml`, or name a file of your own in the variable `OFFLOAD_LAB_PRICES`, or set them below, in *Change
# one thing*. A machine that is bought costs what it loses: price by the hours that it *works*, and electricity.

# %% id="cost"
TOKENS = 100_000_000


def run_of(model, machine, tokens_a_step=2048):
    """The plan of a run of TOKENS tokens, in sequences of 2,048."""
    return plan(model, machine, run_tokens=TOKENS, accumulation=tokens_a_step // 2048)


def where(made):
    at = made.placement
    return f"state {at.state}, gradients {at.gradients}, weights {at.weights}"


runs = {}
for model in ("llama-2-7b", "llama-2-13b"):
    print(f"{model}, 100 million tokens, 2,048 a step, predicted")
    for name in MACHINES:
        made = runs[model, name] = run_of(model, catalogue.machine(name, table))
        step, hours, dollars = made.seconds_per_step, made.time.run_hours, made.time.run_cost
        print(f"  {name:15}{step:7.2f} s a step{hours:8,.0f} hours   ${dollars:8,.2f}   {where(made)}")

cheap, dear = (runs["llama-2-13b", name].time.run_cost for name in MACHINES[:2])
times.compare(cheap / dear, "Calculated")

# %% [markdown] id="cost-read"
# (A is `a100-80-server` here, and B `rtx4090-nvme`.) Look at 7 billion first. B needs the most hours, more than twice those of
# A, and it is the cheapest: its hour costs a third. Neither the shortest step nor the cheapest hour decides, but their
# **product**. Where do the seconds go? (All three wait for the memory of the CPU, where the update runs: *dram*.)

# %% id="cost-figure"
from offload_lab.plots import plans as side_by_side

side_by_side(
    [
        {
            "name": name,
            "seconds": made.time.lanes,
            "bytes": {tier: made.total(tier) for tier in TIERS},
            "cost": made.time.run_cost,
            "fits": made.fits,
        }
        for (model, name), made in runs.items()
        if model == "llama-2-7b"
    ],
    title="llama-2-7b, 100 million tokens (predicted)",
)

# %% [markdown] id="thirteen"
# And 13 billion? The same machine, and the same price of an hour; but now the state is on a disk that writes 1.4 GB/s (a
# consumer's, when its fast cells are full), and the run takes more than three months. Cheap became dear because **one tier was
# too small**.

# %% [markdown] id="tokens-text"
# ### What a step costs, and what a token
#
# Most of what a disk costs is paid *per step*, however many tokens the step has: the state is read and written once. So take
# more tokens a step, over several backward passes (`accumulation`), and see what the same 100 million tokens cost then.

# %% id="tokens"
PER_STEP = (2048, 8192, 32_768, 131_072)
for model in ("llama-2-7b", "llama-2-13b"):
    print(f"{model + ', predicted':25}" + "".join(f"{count:>11,}" for count in PER_STEP) + "   tokens a step")
    for name in MACHINES:
        machine = catalogue.machine(name, table)
        costs = [run_of(model, machine, count).time.run_cost for count in PER_STEP]
        print(f"  {name:23}" + "".join(f"{f'${cost:,.2f}':>11}" for cost in costs))

# %% [markdown] id="tokens-read"
# From a thousand dollars to thirty-two: the same three minutes of disk, for 64 times as many tokens. And for 7 billion the order
# has changed: with few tokens a step all machines wait for memory, and the cheap hour wins; with many they compute, and the
# H100 wins.
#
# Is the small card so bad at computing? No; it gives the most operations for a dollar of the three. But its gradients do not
# fit beside the weights, so they leave it after *each* of the 64 backward passes, and not once a step. A small card is paid for
# per token, too.
#
# But these are not the same training. 131,072 tokens a step are 763 steps, not 48,829; whether the loss gets as far with them is
# a question to your model, not to the planner. (McCandlish et al., *An Empirical Model of Large-Batch Training*, 2018, tell how
# to find out how many tokens a step are still of use.)
#
# And one thing is on no bill: the disk.

# %% id="wear"
worn = catalogue.machine("rtx4090-nvme", table)
for count in (2048, 131_072):
    made = run_of("llama-2-13b", worn, count)
    share = made.time.wear * made.time.steps / 1000
    written = made.time.disk_written * made.time.steps
    print(f"{count:7,} tokens a step: {readable(written)} written, {share:.2f} of what such a disk is made for; predicted")

# %% [markdown] id="elsewhere-text"
# ## The same plan elsewhere
#
# A plan is not bound to our engine. Others do the same, under names of their own:
#
# | name | what it does with memory |
# |---|---|
# | **ZeRO**, stages 1, 2, 3 (Rajbhandari et al., *ZeRO: Memory Optimizations Toward Training Trillion Parameter Models*, 2020) | shares out over GPUs: first the state, then the gradients as well, at last the weights, too. From the largest and least often needed to what every layer needs all the time |
# | **ZeRO-Offload** (Ren et al., *ZeRO-Offload: Democratizing Billion-Scale Model Training*, 2021) | state in RAM, updated by the CPU |
# | **ZeRO-Infinity** (Rajbhandari et al., *ZeRO-Infinity: Breaking the GPU Memory Wall for Extreme Scale Deep Learning*, 2021) | state, and weights where needed, on NVMe |
# | **FSDP** (Zhao et al., *PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel*, 2023) | weights, gradients and state in shards, as stage 3; PyTorch's own |
# | **activation checkpointing** (Chen et al., *Training Deep Nets with Sublinear Memory Cost*, 2016) | keeps few activations, and computes the others again; no optimizer has a part in it |
#
# Here is a plan that this machine can run: eight million parameters, no accelerator, the state on disk. And here is what it
# looks like as a configuration of DeepSpeed.

# %% id="deepspeed"
from course.elsewhere_child import LR, PARAMETERS
from course.exported import explained
from offload_lab.export import Recipe, as_deepspeed

laptop = catalogue.machine("laptop")
recipe = Recipe(lr=LR, clip=None)


def small(directory, durability="checkpoint"):
    """The plan; "checkpoint": no step is published, as in DeepSpeed."""
    kept = {"state": "disk", "directory": directory, "durability": durability}
    return plan(PARAMETERS, laptop, batch=4, sequence=1, ram_budget="64MiB", **kept)


made = small("state")
config = as_deepspeed(made, recipe)
print(f"{made.placement}: {'fits' if made.fits else 'does not fit'}, predicted\n")
print(explained(config))

# %% [markdown] id="notes-text"
# Not everything translates. What differs from the plan stands in the file itself, as a note:

# %% id="notes"
for note in config["_note"][1:]:
    print(textwrap.fill(f"- {note}", 100, subsequent_indent="  "))

# %% [markdown] id="accelerate-text"
# Accelerate is another kind of thing: it holds no state at all, and launches a script that does. Of the plan it needs hardly
# anything; the rest goes into the script, and the file says what. (It can start DeepSpeed, too: `kind="deepspeed"`.)

# %% id="accelerate"
from offload_lab.export import as_accelerate

print(as_accelerate(made, recipe))

# %% [markdown] id="predict-disk-text"
# Now run them. Before you do: our engine keeps 10 bytes of state a bfloat16 parameter. DeepSpeed keeps master, both moments,
# and the gradient with them, and nothing in halves.

# %% id="predict-disk"
disk = Prediction(
    "08-disk",
    "How many bytes a parameter does DeepSpeed have on disk?",
    most=1000,
    called="disk",
)
disk.show()

# %% [markdown] id="side-text"
# Three trainings of the same model on the same batch take turns, a few steps each, so that what disturbs this machine disturbs
# them all. (DeepSpeed runs in a process of its own. Where it is not installed, which is the usual case, the cell says so, and
# goes on without it.)

# %% id="side"
import tempfile
from contextlib import ExitStack

from course.elsewhere import DeepSpeed, NotHere
from course.in_turns import in_turns
from course.ours import Ours

turns, on_disk = [], {}
with tempfile.TemporaryDirectory(dir=".") as folder, ExitStack() as opened:
    ways = {
        "ours, each step kept": lambda: Ours(small(f"{folder}/kept", "step")),
        "ours, scratch files": lambda: Ours(small(f"{folder}/scratch")),
        "DeepSpeed": lambda: DeepSpeed(as_deepspeed(small(f"{folder}/deepspeed"), recipe)),
    }
    trainings = {}
    for name, start in ways.items():
        try:
            training = opened.enter_context(start())
            training.train(1)
        except NotHere as reason:
            print(textwrap.fill(str(reason), 100, break_long_words=False), end="\n\n")
        else:
            trainings[name] = training
    if trainings:
        turns = in_turns({name: training.train for name, training in trainings.items()})
        on_disk = {name: training.disk / PARAMETERS for name, training in trainings.items()}
        print("Measured here, in turns:")

for turn in turns:
    print(f"{turn}   {on_disk[turn.name]:.0f} bytes a parameter on disk")

# %% id="recorded"
from course.recorded_sides import RECORDED

print(RECORDED)
if "DeepSpeed" in on_disk:
    disk.compare(on_disk["DeepSpeed"])
else:
    disk.compare(RECORDED.disk["DeepSpeed"], "Recorded")

# %% [markdown] id="side-read"
# **The losses agree.** It is the same algorithm, on the same numbers; a plan that is exported changes where bytes are, not what
# is learned. (Had we not written `gradient_clipping` into the file, they would not: DeepSpeed 0.19 clips at 1 when nothing is
# said. Defaults are where exports go wrong.)
#
# **The bytes differ.** 16 are master, moments and gradient in float32. Ours are 10; or 24, where every step is kept so that a
# crash loses nothing: state and weights, twice.
#
# **Do not carry the times further.** A step of eight million parameters is mostly what is paid once a step and once a tensor, and
# with other work on the machine we have seen their order turn. The ranges say how far to trust them.
#
# With 336 million parameters, on the machine of the recorded figures, DeepSpeed's step took 1.33 times as long as ours, and with its
# backward, which moves gradients to the disk, 2.4 times (`bench/README.md`, recorded on 2026-12-02). The bytes say 1.4: 28 a
# parameter and step against 20.
#
# Last, Accelerate: the exported file, given to `accelerate launch`, which starts a script with `OffloadAdamW` in it.

# %% id="launch"
from course.elsewhere import launch

with tempfile.TemporaryDirectory(dir=".") as folder:
    made = small(f"{folder}/launched", "step")
    try:
        told = launch(as_accelerate(made, recipe), made)
    except NotHere as reason:
        print(textwrap.fill(str(reason), 100, break_long_words=False))
        print(RECORDED.launched)
    else:
        losses = ", ".join(f"{loss:.4f}" for loss in told["losses"])
        size = told["disk"] / PARAMETERS
        print(f"measured here: losses {losses}; {size:.0f} bytes a parameter on disk; on {told['device']}")

# %% [markdown] id="explain-text"
# ## Explain
#
# Nine questions. If you see no buttons, answer as text, the way each question says.

# %% id="quiz"
from quizzes import Quiz

quiz = Quiz("08")
answers = quiz.answers
quiz.show()

# %% [markdown] id="change-text"
# ## Change one thing
#
# B was cheap for 7 billion parameters because its 128 GiB of RAM held the state. RAM is dear now; what if it had 64? Say which
# machine will be the cheapest, then set `RAM_GIB`. Then give 131,072 tokens a step, and at last prices of your own.

# %% id="change"
from dataclasses import replace

from offload_lab.hardware import Figure

MODEL, TOKENS_A_STEP, RAM_GIB = "llama-2-7b", 2048, 128
HOUR = {"rtx4090-nvme": None, "a100-80-server": None, "h100-80-server": None}  # dollars, or None: that of the table

for name, own in HOUR.items():
    machine = catalogue.machine(name, table)
    if own is not None:
        machine = replace(machine, price=Figure(own, "assumed", "mine"))
    if name == "rtx4090-nvme":
        machine = replace(machine, ram=Figure(RAM_GIB * 2**30, "assumed", "mine"))
    made = run_of(MODEL, machine, TOKENS_A_STEP)
    cost = f"${made.time.run_cost:,.2f}" if made.fits else "does not fit"
    print(f"{name:16}{made.seconds_per_step:8.2f} s a step   {cost:>12}, predicted   {where(made)}")

# %% [markdown] id="make-text"
# ## Make
#
# A planner's last line: of several offers, the cheapest that fits. An `Offer` has `name`, `card_gib` (memory of the card, in
# **GiB**), `weights`, `gradients` and `activations` (**bytes** that have to be on the card at the peak, together), `seconds` (of
# a step) and `hour` (dollars).
#
# Contract: `cheapest(offers, steps) -> float`, dollars for a run of `steps` steps on the cheapest offer whose bytes fit on its
# card. Where none fits, it raises ValueError.

# %% id="make"
def cheapest(offers, steps):
    ...  # your lines instead of this one


# %% id="make-check"
from course.checks import lesson_08

solved = lesson_08.cheapest.check(cheapest)

# %% [markdown] id="make-use-text"
# When it is right, it answers the question of this lesson with the planner's own figures:

# %% id="make-use"
if solved:
    offers = []
    for name in MACHINES:
        made = runs["llama-2-7b", name]
        sizes = [made.tiers["gpu"].get(kind, 0) for kind in ("weights", "gradients", "activations")]
        card_gib, hour = made.capacity["gpu"] / 2**30, made.hardware.price.value
        offers.append(lesson_08.Offer(name, card_gib, *sizes, made.seconds_per_step, hour))
    print(f"7 billion, 100 million tokens: ${cheapest(offers, made.time.steps):,.2f} by your function, predicted")
else:
    print("Later, when the check above says that it is right.")

# %% [markdown] id="transfer-text"
# ## Transfer
#
# Your own model, your own machine. A model comes with a `config.json`, and nobody prints its parameters there. Count them: an
# embedding of `vocab_size` × `hidden_size`; in each of `num_hidden_layers` layers four matrices of attention (query and output
# are `hidden_size` × `hidden_size`; keys and values have `num_key_value_heads` of `num_attention_heads` heads only), three of
# `hidden_size` × `intermediate_size`, and two norms of `hidden_size`; one norm at the end; and a head as large as the embedding,
# unless `tie_word_embeddings` says that it *is* the embedding. No biases.
#
# Contract: `parameters(config) -> int`, of a dict with these seven fields.

# %% id="transfer"
def parameters(config):
    ...  # your lines instead of this one


# %% id="transfer-check"
counted = lesson_08.parameters.check(parameters)

# %% [markdown] id="own-text"
# Now put in the figures of a model that you would like to train, and parts that you have or would buy
# (`print(catalogue.names())` lists them). What will the planner move, and will you like the bill? Say it first.

# %% id="own"
CONFIG = {
    "vocab_size": 50_000,
    "hidden_size": 4096,
    "intermediate_size": 14_336,
    "num_hidden_layers": 40,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "tie_word_embeddings": False,
}
OWN = {"memory": "ddr5-dual", "gpu": "rtx4090", "disk": "nvme4-server"}
DOLLARS_AN_HOUR, OWN_TOKENS_A_STEP = 0.50, 32_768

parts = {kind: getattr(catalogue, kind)(name) for kind, name in OWN.items()}
mine = catalogue.assemble("mine", price=Figure(DOLLARS_AN_HOUR, "assumed"), **parts)
count = parameters(CONFIG) if counted else 9_134_084_096  # what your function should say of this CONFIG
made = run_of(count, mine, OWN_TOKENS_A_STEP)
print(f"{count:,} parameters: {made.placement}; {'fits' if made.fits else 'does not fit'}")
cost = f"${made.time.run_cost:,.2f} for 100 million tokens"
print(f"{made.seconds_per_step:.1f} s a step, {made.time.run_hours:,.0f} hours, {cost}; predicted")

# %% [markdown] id="leave"
# **What you leave with**
#
# - Offloading the optimizer is enough for a model whose weights and gradients fit: 4 bytes a parameter. Beyond that weights
#   have to leave, too, or be shared out.
# - A plan needs room for the peak. And GB are not GiB: here a quarter of a GB decides.
# - Fitting is easy, time is the price. Seconds a step times dollars an hour: only the product counts.
# - A disk is paid per step. More tokens a step hide it, if your training bears that; the disk wears all the same.
# - ZeRO-Offload, ZeRO-Infinity, FSDP: the same few moves. A plan can be handed over; look at the defaults, and compare losses.
#
# Next: running it for real, where things break.
