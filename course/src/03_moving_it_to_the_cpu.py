# %% [markdown] id="title"
# # 3 · Moving it to the CPU
#
# The state does not fit beside the model, so it moves out, into main memory. But every step needs all of it, and between main
# memory and an accelerator there is only a thin wire. What should cross that wire, and what must not? You count the bytes of
# the real engine, see why the update can just as well run on the CPU, and write the smallest offloaded optimizer that there is.
# It takes about forty minutes; running all cells takes about ten seconds.
#
# You need no accelerator. Where a lesson needs its link, we **pretend** one: the engine makes all the copies that it would
# make, and these are counted. Their bytes are real, their seconds are not, and every figure says which is which.

# %% [markdown] id="recall"
# ## Recall
#
# - From lesson 0: time is bytes divided by bandwidth, and the rungs of the ladder are far apart. An accelerator's own memory
#   moves a few hundred to some thousand GB/s, main memory some tens, and the link between them, PCIe, about 12 to 50.
# - From lesson 2: a bfloat16 weight is the upper half of its master, so a state of 2 + 4 + 4 = 10 bytes a parameter is enough.
#
# ## Predict
#
# A bfloat16 model computes on an accelerator. Its optimizer state lies in main memory, and the CPU updates it.

# %% id="predict-crossing"
from course.prediction import Prediction

crossing = Prediction(
    "03-crossing",
    "How many bytes a parameter cross the link in one step, both directions added up?",
    most=100,
    unit="bytes",
    called="crossing",
)
crossing.show()

# %% [markdown] id="predict-passes-text"
# The update itself can be written as three steps over the whole memory: widen the gradients to float32, run AdamW on the
# masters, round the masters to 16 bits. Or as one loop that does all three to one element before it goes on to the next. The
# arithmetic is the same.

# %% id="predict-passes"
passes = Prediction(
    "03-passes",
    "How many per cent of the time of the three passes does the one pass take?",
    most=200,
    unit="percent",
    called="passes",
)
passes.show()

# %% [markdown] id="crosses-text"
# ## What crosses the link
#
# There are two ways to bring state and gradient together.
#
# - **The state travels.** The accelerator updates. Each step carries the state up the link, and the new state down again.
# - **The gradient travels.** The CPU updates, where the state lies. Gradients come down, new 16-bit weights go up.
#
# Ren et al. (*ZeRO-Offload: Democratizing Billion-Scale Model Training*, 2021) drew a training step as a graph of everything
# that is computed from something else, and looked for the cheapest line that cuts the state off from the accelerator. The
# second way is that line: with 2 + 2 bytes a parameter over the link, none is cheaper. Here is what that means for a model of 7
# billion parameters.

# %% id="crosses"
PARAMETERS, LINK = 7e9, 25e9  # bytes a second each way: about PCIe 4 with 16 lanes

ways = {
    "the state travels": (10, 10),
    "float32 gradients down, float32 weights up": (4, 4),
    "16-bit gradients down, 16-bit weights up": (2, 2),
}
for name, (down, up) in ways.items():
    taken = PARAMETERS * max(down, up) / LINK  # full duplex: both directions at the same time
    print(f"{name:43} {down:2} down + {up:2} up = {down + up:2} bytes   {taken:5.2f} s, predicted")

# %% [markdown] id="crosses-width"
# The middle line is a mistake that costs nothing but time. The gradient is made in bfloat16; widening it *before* the link
# sends two bytes of zeros along with it. Every bfloat16 is also a float32, so it can be widened after the link, and nothing is
# lost. On the way up, the rounding of the master is all that forward will ever read.
#
# Now ask the engine. The pretended link counts what it is told to copy.

# %% id="count"
import torch

from course.pretend import PretendLink
from offload_lab import OffloadAdamW

N = 1_000_000
with PretendLink().in_place() as link:
    weight = torch.nn.Parameter(torch.randn(N).bfloat16())
    with OffloadAdamW([weight], lr=1e-3) as optimizer:
        weight.grad = torch.randn(N).bfloat16()
        optimizer.step()
for way, lies in (("down", "gradients and weights"), ("up", "weights")):
    print(f"{way:5} {link.crossed[way] / N:.0f} bytes a parameter   ({lies}), counted")
crossing.compare(sum(link.crossed.values()) / N, "Counted")

# %% [markdown] id="count-read"
# Four down, not two: this engine fetches the 16-bit **weight** as well. It stores only the lower half of each master; the upper
# half *is* the weight on the device (lesson 2). That saves two bytes of main memory a parameter and costs two bytes down the
# link. It has a second use: if you edit a weight on the device, the update sees it.
#
# What never crosses are the ten bytes of state. That is the rule to keep: **move the work to the large thing, not the large
# thing to the work.**
#
# Down is now the busier direction. How long is that, on the links that are sold?

# %% id="links"
from offload_lab import catalogue

for name in ("pcie3x8", "pcie3x16", "pcie4x16", "pcie5x16", "nvlink-c2c"):
    rate = catalogue.link(name).pinned.value  # 0.83 of the line rate: packets have headers
    down, up = 4 * PARAMETERS / rate, 2 * PARAMETERS / rate
    print(f"{name:11} {rate / 1e9:6.1f} GB/s each way   down {down:5.2f} s   up {up:5.2f} s")
print("\n7 billion bfloat16 parameters, one step. Predicted, from the line rates of data sheets.")

# %% [markdown] id="passes-text"
# ## One pass against three
#
# The accelerator could update faster than the CPU: its memory is ten times as fast. Is the CPU fast enough? AdamW does about a
# dozen operations on each parameter, and for these it touches gradient, weight, half a master and two moments. Count the bytes
# that go through main memory.

# %% id="bytes"
READ_OR_WRITTEN = {
    "three passes": {
        "widen the gradients": 2 + 4,
        "AdamW on float32 (4 arrays read, 3 written)": 4 * 4 + 3 * 4,
        "round the masters to 16 bits": 4 + 2,
    },
    "one pass": {
        "look whether all gradients are finite": 2,
        "gradient, weight, lower half, moments: read": 2 + 2 + 2 + 4 + 4,
        "weight, lower half, moments: written": 2 + 2 + 4 + 4,
    },
}
moved = {}
for way, parts in READ_OR_WRITTEN.items():
    print(way)
    for part, nbytes in parts.items():
        print(f"   {nbytes:3}   {part}")
    moved[way] = sum(parts.values())
    print(f"   {moved[way]:3}   bytes a parameter\n")
share = moved["one pass"] / moved["three passes"]
print(f"If only bytes count, one pass takes {100 * share:.0f} % of the time of three. Predicted.")

# %% [markdown] id="measure-text"
# Measure both on the cores that you have: three passes with torch's own fused AdamW, one pass by the engine (with everything
# else that its `step()` does). They take turns, four steps each, so that whatever else your machine does disturbs both. The
# first step of each four is left out, for it meets the threads of the other one still awake.

# %% id="measure"
import statistics
import time

M = 48_000_000

weight = torch.nn.Parameter(torch.randn(M).bfloat16())
weight.grad = torch.randn(M).bfloat16()
master = torch.nn.Parameter(weight.detach().float())
master.grad = torch.zeros_like(master)
fused = torch.optim.AdamW([master], lr=1e-5, fused=True)


@torch.no_grad()
def three_passes():
    master.grad.copy_(weight.grad)
    fused.step()
    weight.copy_(master)


def seconds(work, times=4):
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun)
    return taken[1:]


def both(rounds=4):
    """Median seconds of a step in one pass, and of one in three."""
    one, three = [], []
    with OffloadAdamW([weight], lr=1e-5) as optimizer:
        for _ in range(rounds):
            one += seconds(optimizer.step)
            three += seconds(three_passes)
    return statistics.median(one), statistics.median(three)


# %% id="measured"
one, three = both()
for name, taken in (("one pass", one), ("three passes", three)):
    rate = moved[name] * M / taken
    print(f"{name:13} {1e9 * taken / M:5.2f} ns a parameter, {rate / 1e9:5.1f} GB/s, measured")
passes.compare(100 * one / three)

# %% [markdown] id="measure-read"
# Look at the GB/s: both move bytes at about the same rate, that of the memory, and so one pass takes about the share that bytes
# alone predict. (On a busy machine it moves about; run the cell again.) Nothing was saved but traffic. In one pass the gradient
# is widened in a register, both moments are brought up to date, the master is joined from weight and lower half, moved,
# rounded, and the rest stored as the new lower half. No float32 gradient ever exists in memory, and nobody reads the masters a
# second time to round them. The results are the same bits.
#
# Does the arithmetic matter at all? Compare with a copy of as many bytes, which computes nothing.

# %% id="copy"
C = M // 4  # parameters' worth of bytes; enough to be in no cache
source, target = torch.zeros(14 * C, dtype=torch.uint8), torch.zeros(14 * C, dtype=torch.uint8)
copied = statistics.median(seconds(lambda: target.copy_(source), times=12))
print(f"a copy: 14 bytes read, 14 written   {1e9 * copied / C:.2f} ns a parameter, measured")
print(f"the update in one pass: 28 bytes    {1e9 * one / M:.2f} ns a parameter, measured")
del source, target

# %% [markdown] id="copy-read"
# The update takes no longer than that copy, or hardly. It is **bandwidth-bound**: the processor computes while it waits for
# memory anyway. So a CPU is a good place for it, and a faster processor on the same memory would gain nothing. Adding cores
# helps only until the memory is busy; often two are enough, sometimes one. (You will try that below.)
#
# ## Gradients leave during backward
#
# One partition, a piece of the parameters, goes through a step like this, and every arrow is a wait:
#
# > backward has made its gradients → they have come down → the CPU updates moments and master → the new 16-bit weights go up →
# > the next forward reads them
#
# The first arrow does not wait for the *whole* backward. Backward runs from the last layer to the first, and the gradient of
# the last layer is complete long before that of the first. torch calls a hook at that moment. What if the gradient leaves then,
# and its memory on the device is given back?

# %% id="leave-code"
from offload_lab.training import Batches, GPTConfig, TinyGPT, corpus, loss_of

model = TinyGPT(GPTConfig(layers=6, width=256, heads=8, context=64, dtype=torch.bfloat16, tied=False))
batch = next(Batches(corpus(), 8, 64))
size = sum(2 * parameter.numel() for parameter in model.parameters())


def backward(leave, link):
    """(seconds, change in the bytes of gradients on the device), of one backward."""
    begun, changes, copies = time.perf_counter(), [], []

    def complete(parameter):
        changes.append((time.perf_counter() - begun, 2 * parameter.numel()))
        if leave:
            gradient, parameter.grad = parameter.grad.flatten(), None
            copies.append(link.fetch(gradient, torch.empty_like(gradient), None))

    hooks = [each.register_post_accumulate_grad_hook(complete) for each in model.parameters()]
    loss_of(model, *batch).backward()
    for hook in hooks:
        hook.remove()
    for copy in copies:
        copy.wait()
    model.zero_grad()
    return sorted(changes + [(event.end - begun, -event.nbytes) for event in link.events])

# %% id="leave-run"
from course.curves import Curves


def held(changes):
    """Points of a line. The last gradient is complete at 100 % of the time."""
    total, points = 0, [(0.0, 0.0)]
    end = max(at for at, change in changes if change > 0)
    for at, change in changes:
        points.append((100 * at / end, total / 1e6))
        total += change
        points.append((100 * at / end, total / 1e6))
    return points


lines = {}
for name, leave in (("kept until step()", False), ("leaving", True)):
    with PretendLink(down=2e9).in_place() as link:
        backward(leave, link)  # warms up
        link.events.clear()
        lines[name] = held(backward(leave, link))
    most = max(y for _, y in lines[name])
    print(f"{name:18} at most {most:5.2f} MB of {size / 1e6:.2f} MB of gradients on the device")

Curves(
    "Gradients on the device during one backward, over a pretended link of 2 GB/s",
    lines,
    across="per cent of the time of backward",
    up="MB of gradients",
)

# %% [markdown] id="leave-read"
# Kept, the gradients pile up to 2 bytes a parameter, all there at once at the end. Leaving, only those are on the device that
# are under way, and the copies hide behind the computing of the other layers. (Backward is real here, the rate of the link is
# not: a slower one would let them pile up, too.) ZeRO-Offload does just this. In this engine `overlap="backward"` goes one step
# further and *updates* each partition when its gradients have come; lesson 4 is about what that hides and what it forbids.
#
# ### Sums of many micro-batches
#
# Often one step sums the gradients of many small batches. Then they can only leave when the last one is in. And a sum in
# bfloat16 rounds at every addition, to 8 significant bits: what lesson 2 showed of weights happens to gradients.

# %% id="accumulate"
generator = torch.Generator().manual_seed(0)
parts = [(0.5 + torch.randn(10_000, generator=generator)).bfloat16() for _ in range(64)]
exact = torch.stack(parts).double().sum(0)

narrow, wide = torch.zeros(10_000, dtype=torch.bfloat16), torch.zeros(10_000)
for part in parts:
    narrow += part
    wide += part
for name, total in (("bfloat16", narrow), ("float32", wide)):
    error = (total.double() - exact).norm() / exact.norm()
    print(f"64 micro-batches summed in {name:8}: {100 * error:.4f} % off")

# %% [markdown] id="accumulate-read"
# `OffloadPolicy(gradients="float32")` makes `.grad` float32, for 2 more bytes a parameter of it on the device and on the link.
# It buys sums that are not rounded 64 times. With one micro-batch a step it buys nothing.
#
# ## When it cannot help
#
# The update has a price: its bytes, through memory and link, once a step. What it is worth depends on how much is computed in
# that step. Does a larger model make it worse? Compute takes about 6 operations for each parameter and token (2 forward, 4
# backward; Kaplan et al., *Scaling Laws for Neural Language Models*, 2020), the update 28 bytes for each parameter. Both grow
# with the model, so its size cancels. What remains is the number of tokens in a step.

# %% id="worth"
from offload_lab.step_time import UTILISATION

TOKENS = 2048  # in a micro-batch


def grown(machine, micro_batches):
    """By how many per cent an update with nothing hidden lengthens a step."""
    flops = UTILISATION["data sheet"] * machine.gpu_flops.value  # what training reaches of it
    computing = micro_batches * 6 * TOKENS / flops
    memory, link = 28 / machine.dram_bandwidth.value, 4 / machine.device_to_host.value
    update = max(memory, link)  # they overlap
    return 100 * update / computing


counts = [1, 2, 4, 8, 16, 24, 32]
Curves(
    "What an update on the CPU adds to a step, nothing hidden",
    {
        name: [(count, grown(catalogue.machine(name), count)) for count in counts]
        for name in ("t4-cloud", "rtx4090-nvme", "a100-80-server")
    },
    across="micro-batches of 2048 tokens in a step",
    up="per cent longer",
    source="predicted",
)

# %% [markdown] id="worth-read"
# Read it from right to left. With many micro-batches the update comes once for all of them and costs a few per cent. With one,
# it can cost more than the computing. A **faster accelerator makes it worse**, not better: it finishes its part sooner, and the
# update takes as long as before. Of these three, the RTX 4090 loses most, for it is fast and sits on the two memory channels of
# a desktop; the A100 is faster still, and its server has more channels. That is why offloading suits large batches.
#
# Is an offloaded step always slower, then? Not necessarily. What counts is what is *left* of the update when compute has hidden
# its share: gradients that come down during backward, an update that goes on during the next forward. If all of it hides, the
# step takes exactly what compute takes, wherever the update ran. Where nothing can hide it, because compute is short,
# offloading costs time, and you pay it for memory.
#
# ## Explain
#
# Eight questions. If you see no buttons, answer as text, the way each question says.

# %% id="quiz"
from quizzes import Quiz

quiz = Quiz("03")
answers = quiz.answers
quiz.show()

# %% [markdown] id="change-text"
# ## Change one thing
#
# How many cores does the update need? Say what one thread alone will take, then run the cell; then try twice as many threads as
# you have cores.

# %% id="change"
THREADS = 1

usual = torch.get_num_threads()
try:
    for count in (usual, THREADS, usual, THREADS):  # twice: how much does the measurement move?
        torch.set_num_threads(count)
        taken, _ = both(rounds=2)
        print(f"with {count:2} thread(s): {1e9 * taken / M:.2f} ns a parameter, measured")
finally:
    torch.set_num_threads(usual)

# %% [markdown] id="make-text"
# ## Make
#
# The smallest offloaded optimizer. `weights` are bfloat16 parameters on the device, and the only way there and back is `wire`:
#
# - `self.wire.down(tensor)` gives a copy of a device tensor in host memory, of the same dtype;
# - `self.wire.up(host, weight)` puts a host tensor into a weight on the device.
#
# Contract: `self.masters` is a list of float32 tensors in host memory, one for each weight, of its shape. What else you keep is
# up to you. `step()` updates every weight that has a gradient by AdamW (`adamw` below is lesson 2's) on its master, so that the
# weight is its master, rounded with `.to(torch.bfloat16)`. Over the wire go 2 bytes down and 2 up for each element that is
# updated, not more: hold whole masters, and the weight need not come down. A weight whose `.grad` is None stays as it is.

# %% id="make-adamw"
def adamw(weight, gradient, exp_avg, exp_avg_sq, step, lr, betas, eps, decay):
    """One AdamW step on float32 tensors, in place. `step` is 1 in the first."""
    beta1, beta2 = betas
    weight *= 1 - lr * decay
    exp_avg += (1 - beta1) * (gradient - exp_avg)
    exp_avg_sq += (1 - beta2) * (gradient * gradient - exp_avg_sq)
    mean = exp_avg / (1 - beta1**step)
    size = (exp_avg_sq / (1 - beta2**step)).sqrt()
    weight -= lr * mean / (size + eps)

# %% id="make"
class SmallestOffload:
    def __init__(self, weights, wire, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, decay=0.01):
        self.weights, self.wire = list(weights), wire
        self.settings = {"lr": lr, "betas": betas, "eps": eps, "decay": decay}
        self.masters = None  # your lines: float32 masters, the moments, a step count

    def step(self):
        ...  # your lines: for each weight that has a gradient: down, update, up


# %% [markdown] id="make-check-text"
# The check counts your bytes first. Then it hands your class to `offload_lab.verify`, the test that this engine has to pass
# itself: five steps on a small GPT, beside `torch.optim.AdamW` and beside float64.

# %% id="make-check"
from course.checks import lesson_03

solved = lesson_03.check_optimizer(SmallestOffload)

# %% [markdown] id="transfer-text"
# ## Transfer
#
# A model of 3 billion parameters in **float32**, on a card with a link of 12 GB/s each way, and a CPU whose update moves 20
# GB/s. A float32 parameter is its own master. What goes down, what goes up, and which of link and memory is the slower one?
# Work it out, then run the cell; the engine counts.

# %% id="transfer"
with PretendLink().in_place() as link:
    weight = torch.nn.Parameter(torch.randn(N))
    with OffloadAdamW([weight], lr=1e-3) as optimizer:
        weight.grad = torch.randn(N)
        optimizer.step()
        update = optimizer.stats()["last_step"]["bytes"]["update"]
down, up = (link.crossed[way] / N for way in ("down", "up"))
through = update / N + 4  # and the look at the gradients
print(f"down {down:.0f}, up {up:.0f}, through memory {through:.0f} bytes a parameter, counted")
print(f"link {3e9 * max(down, up) / 12e9:.1f} s, memory {3e9 * through / 20e9:.1f} s, predicted")

# %% [markdown] id="leave"
# **What you leave with**
#
# - Move the work to the state: gradients and 16-bit weights cross the link, the state never does. Here that is 4 bytes down, 2
#   up.
# - Convert on the side where it makes the copy smaller: widen after the link, round before it.
# - The update is bandwidth-bound. One pass moves 28 bytes a parameter where three move 40; once memory is busy, more cores
#   change nothing.
# - Gradients can leave while backward still runs, and their memory on the device is free again.
# - Its price is paid once a step. Large batches make it small; a fast accelerator with a small batch makes it large.
#
# Next: how much of that price can be hidden, and who has to wait for whom.
