# %% [markdown] id="title"
# # 10 · What comes next
#
# In two years you will have another machine. Its link will be faster, its memory larger, perhaps there will be only one memory
# for everything; and somebody will tell you that offloading is over, or that it is free. In this lesson you ask the simulator.
# You look at the parts that machines are made of now, see the bottleneck move from one to the next, write down the law of a
# memory that two sides share, and predict a machine that nobody has built. It takes about forty minutes; running all cells
# takes about fifteen seconds.
#
# You own none of these machines, and neither do we. So **every figure here is simulated** from numbers that are **quoted** from
# data sheets or **assumed**, and says so; with one exception, which comes first. It is measured, and tells you how far to trust
# the others.

# %% [markdown] id="recall"
# ## Recall
#
# - From lesson 3: of a bfloat16 model, 4 bytes a parameter come down the link in a step (weights and gradients), 26 pass
#   through the CPU's memory, 2 go up. The state, 10 bytes, stays where it is.
# - From lesson 4: lanes run beside each other. A step takes as long as its longest lane, plus what that one waits for and what
#   follows it.
#
# ## Predict
#
# A server with an accelerator: it trains 7 billion parameters, state in RAM. Its link is PCIe 4.0 ×16, and the step waits for
# that link more than for anything else. You exchange the link, and nothing else, for one that is **14 times as fast**.

# %% id="predict-link"
from course.prediction import Prediction

link = Prediction(
    "10-link",
    "How many times as fast is the step?",
    most=100,
    unit="ratio",
    called="link",
)
link.show()

# %% [markdown] id="predict-shared-text"
# And a chip with **one memory** for CPU and accelerator, which moves 300 GB/s in all. The accelerator alone can draw all of
# that, the CPU alone 200 GB/s. Both start at the same moment; the accelerator has 150 GB to move, and the CPU 150 GB.

# %% id="predict-shared"
shared = Prediction(
    "10-shared",
    "After how many seconds have both moved all their bytes?",
    most=10,
    unit="seconds",
    called="shared",
)
shared.show()

# %% [markdown] id="trust-text"
# ## How far to trust it
#
# The simulator divides bytes by bandwidths and lets each task wait for those before it. That is all it knows. How good is that?
# Here is the one machine that can be asked: yours. The engine runs real steps, with 17 million parameters on the disk of this
# folder, with three schedules. Then the simulator is given the same lists of tasks, and the figures of your hardware file.

# %% id="trust"
from course.machine import yours
from course.replayed import furthest, replayed
from offload_lab.plots import predicted_over_measured

own = yours(seconds=4)
replays = replayed(own)
for replay in replays:
    print(replay)
factor = furthest(replays)
print(f"\nAt worst the two differ by a factor of {factor:.2f}: the error bar of this lesson.")

# %% id="trust-figure"
last = replays[-1]
predicted_over_measured(
    last.predicted_events,
    last.measured_events,
    title="Write behind, on this machine: simulated over measured",
)

# %% [markdown] id="trust-read"
# Read off two things. The **order** of the schedules, which one is better, survives a rough prediction. The **seconds** are
# only as good as the figures: yours are measured, perhaps on a quieter day, and a disk has good and bad days. (A factor above
# 1.5 or so means that the machine is doing something else now, or that the hardware file is of another disk; lesson 0 makes a
# new one.)
#
# From here on the figures are from data sheets, which promise. So trust which lane is the longest where it is longest by far,
# and do not trust the second digit of anything.

# %% [markdown] id="links-text"
# ## A table of links
#
# These are the parts: what each can carry in **one direction**, and how long it takes for the 28 GB that come down in a step
# of 7 billion parameters. Watch the direction. *NVLink-C2C*, the link between the two chips of a Grace Hopper, is sold with
# 900 GB/s; that is both directions together, and a copy goes in one.

# %% id="links"
from offload_lab import catalogue

DOWN = 4 * 7e9
links = map(catalogue.link, ("pcie4x16", "pcie6x16", "nvlink-c2c"))
pools = map(catalogue.memory, ("cxl2x16", "cxl3x16"))
memories = map(catalogue.memory, ("ddr5-dual", "ddr5x8", "grace-lpddr5x"))
gpus = map(catalogue.gpu, ("h100-80", "gh200"))
rows = [("consumer NVMe, reading", catalogue.disk("nvme4-consumer").read)]
rows += [(part.title, part.line_rate) for part in links]
rows += [(part.title, part.one_way) for part in pools]
rows += [(part.title, part.peak) for part in memories]
rows += [(f"HBM of {part.title}", part.bandwidth) for part in gpus]
rows.sort(key=lambda row: row[1].value)
for name, figure in rows:
    rate, down = figure.value / 1e9, DOWN / figure.value
    print(f"{name:34}{rate:6.0f} GB/s {down:6.3f} s   {figure.source}")

# %% [markdown] id="sources-text"
# Where they are from (a data sheet, by author, title and year; or how it was assumed):

# %% id="sources"
import textwrap

for name, figure in rows:
    print(textwrap.fill(f"- {name}: {figure.note}", 98, subsequent_indent="    ", break_on_hyphens=False))

# %% [markdown] id="links-read"
# - **HBM** is DRAM in stacks beside the accelerator: terabytes a second, and the scarcest bytes of the machine.
# - **NVLink-C2C** leads from an accelerator to the CPU beside it. It is faster than that CPU's own memory.
# - **CXL** memory is DRAM behind PCIe lanes, which the CPU uses like its own. More bytes, at what the lanes carry: a rung
#   between RAM and NVMe. It is not HBM, and no cache of a disk.
#
# Now the server of the first question. `Step` is the engine's own list of tasks for a step of 7 billion parameters and 4,096
# tokens; only its bandwidths are made of promises. (A copy gets 0.83 of the wires, an update 0.75 of the memory, and training
# 0.4 of the operations: these shares are assumed, and stand in the catalogue.)

# %% id="exchange"
from dataclasses import replace

from course.next_machine import Step, bottleneck, lanes
from offload_lab.plots import roofline

step = Step(parameters=7_000_000_000, tokens=4096, state="ram")
server = catalogue.assemble(
    "server",
    memory=catalogue.memory("ddr5x8"),
    gpu=catalogue.gpu("h100-80"),
    link=catalogue.link("pcie4x16"),
    disk=catalogue.disk("nvme5-server"),
)


def with_link(machine, name):
    wires = catalogue.link(name).pinned
    return replace(machine, name=name, host_to_device=wires, device_to_host=wires)


times = {}
for name in ("pcie3x16", "pcie4x16", "pcie5x16", "pcie6x16", "nvlink-c2c"):
    machine = with_link(server, name)
    run = step.run(machine)
    times[name] = run.makespan
    rate, longest = machine.device_to_host.value / 1e9, bottleneck(run, machine)
    print(f"{name:11}{rate:4.0f} GB/s   step {run.makespan:4.2f} s, simulated   longest: {longest}")
link.compare(times["pcie4x16"] / times["nvlink-c2c"], "Simulated")

# %% [markdown] id="exchange-read"
# Fourteen times the link, and about a third more speed. As soon as the link is no longer the longest lane, the next one is: the
# CPU's memory, through which 26 bytes a parameter have to pass on any of these machines. From PCIe 5.0 on, nearly all that you
# pay for a link is for nothing. The bottleneck did not vanish. It **moved**.

# %% id="exchange-figure"
c2c = with_link(server, "nvlink-c2c")
run = step.run(c2c)
title = "The same server with NVLink-C2C (simulated)"
roofline(lanes(run, c2c), run.makespan, source="predicted", title=title)

# %% [markdown] id="hopper-text"
# That is why Grace Hopper has not only the link, but another memory on the CPU's side: LPDDR5X with 384 GB/s, where eight
# channels of DDR5 have 307. (The two memories are *coherent*, says the data sheet: each side can also read the other's, without a
# copy. That saves code, and not a byte that has to move.)

# %% id="hopper"
from offload_lab.plots import timeline

hopper = catalogue.machine("gh200")
run = step.run(hopper)
print(f"Grace Hopper: {run.makespan:.2f} s a step, simulated; longest: {bottleneck(run, hopper)}")
timeline(run.events, source="predicted", title="A step on Grace Hopper (simulated)")

# %% [markdown] id="cxl-text"
# ### A tier more: CXL, and pools of it
#
# What if the state does not fit into RAM? Until now the next tier was NVMe. CXL memory can take that place: `tier="disk"`, in a
# folder that lies on it.

# %% id="cxl"
from course.next_machine import pooled

below = Step(state="disk")
tiers = {name: catalogue.disk(name) for name in ("nvme4-server", "nvme5-server")}
tiers |= {name: catalogue.memory(name).as_disk() for name in ("cxl2x8", "cxl2x16", "cxl3x16")}
for name, tier in tiers.items():
    machine = catalogue.assemble(
        name, memory=catalogue.memory("ddr5x8"), gpu=catalogue.gpu("h100-80"), disk=tier
    )
    run = below.run(machine)
    longest = bottleneck(run, machine)
    print(f"state on {name:13}{run.makespan:6.2f} s a step, simulated   longest: {longest}")

# %% [markdown] id="cxl-read"
# From twenty seconds to one: with CXL 3.0 the tier below costs nothing that the CPU's memory does not cost as well. (No such
# device has a data sheet yet; its figures are assumed from the specification. And the "disk" of that list is the lane's name.)
#
# The second promise of CXL is the **pool**: memory in a box of its own, lent to whichever server needs it. It saves money,
# because servers do not need their most at the same time (Li et al., *Pond: CXL-Based Memory Pooling Systems for Cloud
# Platforms*, 2023). But an optimizer needs *all* of its state in *every* step. What happens when several servers train at
# once?

# %% id="pool"
wires = catalogue.memory("cxl2x16").one_way.value
behind = 0.75 * 4 * 8 * 4800e6  # assumed: three quarters of four channels of DDR5-4800
for hosts in (1, 2, 4, 8):
    machine = pooled(server, wires, behind, hosts)
    run = below.run(machine)
    print(f"{hosts} training at once: {run.makespan:5.2f} s a step each, simulated")

# %% [markdown] id="pool-read"
# A pool shares bytes well, and bandwidth badly. Its capacity is lent to one after the other; its bandwidth is wanted by all of
# them at once, and from two servers on, each gets its part.

# %% [markdown] id="one-memory-text"
# ## One memory
#
# The other way to end the copying is to have only one memory: CPU and accelerator on one chip, as in Apple's M4 Max or
# NVIDIA's GB10. Nothing has to be copied. Does offloading to the CPU still free anything? Ask the planner, for 13 billion
# parameters: on Grace Hopper, which has two memories that see each other, and on a GB10, which has one of 128 GiB.

# %% id="one-memory"
from offload_lab import plan
from offload_lab.planner import readable

gb10 = catalogue.machine("gb10")
cases = ((hopper, "ram", None), (gb10, "ram", None), (gb10, "disk", "4GB"))
for machine, state, budget in cases:
    made = plan(
        "llama-2-13b",
        machine,
        state=state,
        weights="gpu",
        gradients="gpu",
        ram_budget=budget,
        sequence=512,
        checkpointing="full",
    )
    held = {tier: made.total(tier) for tier in ("gpu", "ram", "disk")}
    verdict = "fits" if made.fits else "does not fit"
    print(f'{machine.name:6} state="{state}": {verdict}, predicted')
    print("       " + ", ".join(f"{tier} {readable(size)}" for tier, size in held.items()))
    if machine.unified:
        both, there = held["gpu"] + held["ram"], made.capacity["ram"]
        print(f"       one memory: {readable(both)} of {readable(there)}")

# %% [markdown] id="one-memory-read"
# The planner says what each *side* holds. On Grace Hopper these are two places. On the GB10 they are one, so what leaves one side
# arrives on the other, and **nothing is freed**. Only the disk is another place.
#
# And the bandwidth? It is one as well. Here is the second question from the beginning, in the simulator:

# %% id="sharing"
from offload_lab.hardware import Figure, Hardware
from offload_lab.simulate import simulate
from offload_lab.work import TaskList

chip = Hardware(
    "a chip with one memory",
    ram=Figure(128e9, "assumed"),
    dram_bandwidth=Figure(200e9, "assumed", "what its CPU draws alone"),
    gpu_bandwidth=Figure(300e9, "assumed", "all of the memory"),
    gpus=1,
    unified=True,
)
both = TaskList()
for piece in range(10):
    both.put("compute", "accelerator", piece, 15_000_000_000)
    both.put("update", "cpu", piece, 15_000_000_000)
run = simulate(both, chip)
shared.compare(round(run.makespan, 6), "Simulated")
two = simulate(both, replace(chip, unified=False))
print(f"with a memory for each, of the same bandwidths: {two.makespan:.2f} s, simulated")

# %% id="sharing-figure"
timeline(run.events, source="predicted", title="Two sides draw from one memory (simulated)")

# %% [markdown] id="sharing-read"
# Alone, the accelerator takes 0.5 s and the CPU 0.75 s. Together they take 1.0 s, for 300 GB have to pass through 300 GB/s.
# Overlap hides nothing behind anything where both want the same thing; lesson 4 showed it with a half-duplex disk.
#
# That each side gets half while both want it is the simulator's assumption. A real memory controller has rules of its own, and
# makers do not print them. What no rule can change: all bytes together need their time.

# %% [markdown] id="true-text"
# ## What stays true
#
# Bandwidths come and go. These did not depend on any:
#
# 1. **Bytes a parameter.** 10 of state, 26 through the memory where the update runs. Count them first, on any machine.
# 2. **The longest lane bounds the step.** A faster lane that is not the longest changes next to nothing.
# 3. **A scan defeats LRU.** It follows from the order in which a step comes to its partitions, not from hardware (lesson 6).
# 4. **Somebody must write what was updated.** A read may hit a cache; a new value has to go somewhere, in every step. And its
#    buffer is free when it is written, not when it is updated.
#
# And there is exactly one kind of faster machine whose speed carries over whole:

# %% id="true"
from course.next_machine import KNOBS, all_faster, faster

base = step.run(hopper).makespan
print(f"as it is                    {base:.3f} s")
for knob in KNOBS:
    print(f"{knob + ' × 4':28}{step.run(faster(hopper, knob, 4)).makespan:.3f} s")
print(f"all of them × 4             {step.run(all_faster(hopper, 4)).makespan:.3f} s")
print("Grace Hopper, simulated")

# %% [markdown] id="explain-text"
# ## Explain
#
# Ten questions. If you see no buttons, answer as text, the way each question says.

# %% id="quiz"
from quizzes import Quiz

quiz = Quiz("10")
answers = quiz.answers
quiz.show()

# %% [markdown] id="change-text"
# ## Change one thing
#
# Which bandwidth is worth money? Double each in turn, and halve each in turn. A picture of that is called a **tornado**, for
# the longest bar is on top. Before you run the cell: which will be on top for the server, and which for Grace Hopper? Then
# run it with `MACHINE = hopper`, and with `state="disk"`.

# %% id="change"
from course.next_machine import sensitivity
from course.tornado import Tornado

MACHINE = server  # or c2c, or hopper
which = Step(state="ram")

Tornado(
    f"What matters for a step on: {MACHINE.name} (simulated)",
    which.run(MACHINE).makespan,
    sensitivity(which, MACHINE),
)

# %% [markdown] id="change-read"
# The two directions are not alike. Halve the longest lane, and the step pays for it in full. Double it, and you gain only until
# the next lane is the longest. And compute matters a little even where it is not the longest: the forward comes first, and no
# gradient can go anywhere before it is over.

# %% [markdown] id="make-text"
# ## Make
#
# Write down the law of the shared memory. The accelerator has `computed` bytes to move, the CPU `updated`; both start at once.
# Alone they draw `accelerator` and `cpu` bytes a second. The `memory` moves at most that many in all: while both want it, each
# gets half of it, or what it can draw alone, if that is less. When one has ended, the other goes on as if alone.
#
# Contract: `shared_seconds(computed, updated, accelerator, cpu, memory) -> float`, seconds until both have ended. Bytes and
# bytes a second; a bandwidth that is not above 0 raises ValueError. What is expected is what the simulator says.

# %% id="make"
def shared_seconds(computed, updated, accelerator, cpu, memory):
    ...  # your lines instead of this one


# %% id="make-check"
from course.checks import lesson_10

solved = lesson_10.shared_seconds.check(shared_seconds)

# %% [markdown] id="transfer-text"
# ## Transfer
#
# Now a machine that does not exist. Put one together from the catalogue (`print(catalogue.names())` lists all parts; `gb10` and
# `m4-max` are a memory and a GPU that go together). The card says what it has, and whether the model fits.

# %% id="compose"
MEMORY, GPU, LINK = "ddr5x12", "h100-80", "nvlink-c2c"
BELOW = "cxl3x16"  # the tier below RAM: a disk, or one of cxl…
next_step = Step(parameters=13_000_000_000, tokens=4096, state="disk")

tier = catalogue.memory(BELOW).as_disk() if BELOW.startswith("cxl") else catalogue.disk(BELOW)
mine = catalogue.assemble(
    "mine",
    memory=catalogue.memory(MEMORY),
    gpu=catalogue.gpu(GPU),
    link=catalogue.link(LINK),
    disk=tier,
)
rates = ("gpu_flops", "gpu_bandwidth", "device_to_host", "dram_bandwidth", "disk_read", "disk_write")
for name in rates:
    figure = getattr(mine, name)
    print(f"{name:16}{figure.value:9.3g} a second   {figure.source}")
for name, needed, there in next_step.needs(mine):
    print(f"does not fit: {readable(int(needed))} needed of {name}, {readable(int(there))} there")

# %% [markdown] id="next-text"
# How long will a step take, and which lane will be the longest? Divide bytes by bandwidths, lane by lane: 4 down, 2 up, 26
# through memory, 10 read and 10 written below, and 6 operations a parameter and token at 0.4 of `gpu_flops`.

# %% id="next"
upcoming = Prediction(
    "10-next", "How long is a step on your machine?", most=1e5, unit="seconds", called="upcoming"
)
upcoming.show()
LONGEST = ""  # your word for it: compute, link, memory, disk

# %% id="next-run"
run = next_step.run(mine)
upcoming.compare(run.makespan, "Simulated")
longest = bottleneck(run, mine)
if LONGEST:
    print(f"You said that {LONGEST} would be the longest lane; it is {longest}.")
low, high = run.makespan / factor, run.makespan * factor
print(f"If it is as far off as it was on your machine: {low:.2f} to {high:.2f} s.")
title = "A machine that does not exist (simulated)"
roofline(lanes(run, mine), run.makespan, source="predicted", title=title)

# %% id="next-tornado"
Tornado("What to buy for it (simulated)", run.makespan, sensitivity(next_step, mine))

# %% [markdown] id="leave"
# **What you leave with**
#
# - A faster part moves the bottleneck to the next lane. It ends there.
# - Sold bandwidth counts both directions; a copy goes in one.
# - In one memory nothing is copied and nothing is freed, and its bandwidth is shared. Only the disk is another place.
# - CXL is a tier between RAM and NVMe. A pool lends bytes; its bandwidth it can only share.
# - Bytes a parameter, the longest lane, the order of the scan, and the write of what was updated: these come along to every
#   machine. So do you, with a simulator that you know how far to trust.
#
# Next: one GPU, and a model that does not fit on it. This time it is not simulated.
