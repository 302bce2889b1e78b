# %% [markdown] id="title"
# # 7 · Find the race
#
# This program passes its tests. It can pass them a thousand times. It is wrong nevertheless, and one day, on a busy machine, it
# leaves a state on the disk that is half of one partition and half of another. Nothing crashes. The loss looks a little odd.
#
# In this lesson you find six such faults, all of the kind that gets into real training code. Before each is revealed, you say
# which line it is. Then you write the checker that finds all of them without running anything. It takes about forty minutes;
# running all cells takes about twenty seconds.

# %% [markdown] id="recall"
# ## Recall
#
# - From lesson 4: a transfer that is *started* is not over. A buffer is free when its **write** has ended, not when the update
#   has.
# - From lesson 5: a read asks the disk for bytes, and returns before they are there, so that something else can go on meanwhile.
#
# ## Predict
#
# Here is a step on a **bench**: a small engine with five partitions on a disk and two buffers. `read` and `write` only start a
# transfer, and return something that can be waited for; `update` adds the gradient to what is in a buffer, and is over when it
# returns. After the step, each partition on the disk has to be what it was, plus its gradient.

# %% id="listing"
from offload_lab.races import RACES, source

program = RACES[1].broken
print(source(program))

# %% [markdown] id="predict-text"
# There is a race in it. Don't look for it yet. In a moment this program will run 400 times on this machine, with real files and
# real threads, each time from the start.

# %% id="predict-right"
from course.prediction import Prediction

right = Prediction(
    "07-right",
    "Of 400 runs, how many will leave the right numbers on the disk?",
    most=400,
    unit="count",
    called="right",
)
right.show()

# %% [markdown] id="predict-careful-text"
# One could wait for **every** transfer right where it is started. Then nothing can go wrong. Say a read takes 30 ms, an update
# 15, and a write 25, as in lesson 4.

# %% id="predict-careful"
careful = Prediction(
    "07-careful",
    "How many times as long does that take as a program with two buffers that waits only where it has to?",
    most=10,
    unit="ratio",
    called="careful",
)
careful.show()

# %% [markdown] id="runs-text"
# Now the 400 runs: first as they come, and then on two disks that are busy. (A transfer of a busy disk sleeps for a millisecond
# before it begins. The program is not changed.)

# %% id="runs"
from course.real_bench import RealBench

RUNS = 400


def wrong(program, slow=(), runs=RUNS):
    with RealBench(slow=slow, seconds=0.001) as bench:
        return sum(not bench.run(program) for _ in range(runs))


as_it_comes = wrong(program)
right.compare(RUNS - as_it_comes)
print(f"\nof {RUNS} runs, measured")
print(f"as they come:           {as_it_comes:4} wrong")
print(f"reads and writes slow:  {wrong(program, ('read', 'write')):4} wrong")
print(f"only writes slow:       {wrong(program, ('write',)):4} wrong")

# %% [markdown] id="runs-read"
# Run the cell again: other numbers. The same lines are wrong seldom, often or nearly always, and it is not the program that
# decides but who happens to be late. Where both lanes are equally slow, the fault can hide nearly altogether. So a slow test
# machine proves nothing, nor does a quick one: **a test that passes tells you about that day's disk.**
#
# To find a race, one must not ask *what happened*, but *what is certain*.
#
# ## Happens-before
#
# Lamport (*Time, Clocks, and the Ordering of Events in a Distributed System*, 1978) gave the question its form. One step
# **happens before** another if it is over for certain when the other begins. Certain means that something makes it so:
#
# - one line comes after another, and the first works until it is done (`update`), or
# - somebody waited for the first one (`.wait()`), or
# - it carries on: if A is before B, and B is before C, then A is before C.
#
# A **race** is two steps that touch the same place, at least one of them to *write*, and neither of which happens before the
# other. That is all. There is no clock in it.
#
# Here a program is not run but written down: each step with those that it begins after.

# %% id="written-down"
from course.recorded import recorded, text


def two_reads(bench):
    first = bench.read(0, buffer=0)
    second = bench.read(1, buffer=1)
    first.wait()
    bench.update(0, buffer=0)
    second.wait()
    bench.update(1, buffer=1)


print(text(recorded(two_reads).steps))

# %% [markdown] id="written-down-read"
# Read off three pairs:
#
# - **0 and 2** share buffer 0, and 2 is after 0. Somebody waited. No race.
# - **0 and 3** are in order as well, though 3 doesn't name 0: it is after 2, which is after 0.
# - **1 and 2** have no order. Update 0 may run while read 1 is under way. But they share no place, so that is no race: it is
#   what you want, **overlap**.
#
# Steps 0 and 1 are both reads of one disk. Does that put them in order? No. Several threads read, and a short transfer overtakes
# a long one. The engine's own lists say all this as data: each task names in `after` the tasks that have to be over, and is
# started when they are. Nothing but `after` orders two tasks.
#
# If order is so good, why not wait for everything? That was the second question:

# %% id="careful"
from course.two_runs import two_runs


def waits_at_once(bench):
    for partition in bench.partitions:
        bench.read(partition, buffer=0).wait()
        bench.update(partition, buffer=0)
        bench.write(partition, buffer=0).wait()


all_waits = recorded(waits_at_once)
few_waits = recorded(RACES[1].fixed)  # the listing from above, mended; you will see it
careful.compare(all_waits.ms / few_waits.ms, "Simulated")
runs = {"all waits": all_waits.events, "few": few_waits.events}
two_runs("What waiting everywhere costs (simulated)", runs)

# %% [markdown] id="careful-read"
# 350 ms against 250, and here nothing hides but the write behind the next partition. A wait too many is no fault that a test
# finds, either. It gets reported all the same: in DeepSpeed, backward waited for a whole stream where a wait for one buffer
# would have done (issue 8364, *average_tensor serializes backward compute behind the preceding reduction*, 2026).
#
# ## The revealer
#
# Waiting for bad luck is no method. The **revealer** makes it. A transfer that is *held back* does its first half at once, and
# its second half when somebody waits for it; if nobody does, when the program is over. That is as late as the program allows.
# There is no pause in it that could be too short. And before a buffer is read into, it is filled with **poison**, NaN, so that
# bytes that are not there yet cannot pass for last step's:

# %% id="half"
from offload_lab.revealer import Bench

bench = Bench(held_back=["read"])
reading = bench.read(2, buffer=0)
print("started:    ", bench.buffers[0][[0, 31, 32, 63]])
reading.wait()
print("waited for: ", bench.buffers[0][[0, 31, 32, 63]])
bench.end(backwards=False)

# %% [markdown] id="pause-text"
# Some people mend a race with a pause. Here is one that is generous, for such small files:

# %% id="pause"
import time

from offload_lab.races import reveal


def pauses(bench):
    for partition in bench.partitions:
        bench.read(partition, buffer=0)
        time.sleep(0.003)
        bench.update(partition, buffer=0)
        bench.write(partition, buffer=0).wait()


print(f"{wrong(pauses, runs=100)} of 100 runs wrong, measured\n")
print(reveal(pauses))

# %% [markdown] id="pause-read"
# The pause mended nothing. It only hides the fault, and costs three milliseconds each time. On a busy disk, or a cheaper one,
# a read takes longer than that. `wait()` takes as long as the read: no less, and no more.
#
# *Which* transfers should be late? Look at this one. It began to read partition 1, thought better of it, and left that read
# alone. Its last write is still under way when it returns; whoever ends the step waits for that one.

# %% id="choices"
def thinks_better(bench):
    bench.read(1, buffer=0)
    writing = None
    for partition in bench.partitions:
        if writing is not None:
            writing.wait()
        bench.read(partition, buffer=0).wait()
        bench.update(partition, buffer=0)
        writing = bench.write(partition, buffer=0)


for late in ((), ("read",), ("write",), ("read", "write")):
    bench = Bench(held_back=late)
    thinks_better(bench)
    bench.end(backwards=False)
    verdict = (bench.fault() or "all right").split(";")[0]
    print(f"late: {' and '.join(late) or 'nothing':15} {verdict}")

# %% id="choices-figure"
from course.storyboard import storyboard

programs = {"a read left alone": thinks_better}
storyboard("Wrong only when two are late", programs, ("read", "write"), partitions=2)

# %% [markdown] id="choices-read"
# In the picture each column is one thing that happened, from left to right. The upper rows show transfers; a dashed line is one
# that is under way. The lower rows show what lies in both halves of each place: `1` is partition 1 as it was, `1+` is partition 1
# with its gradient. Find the column where the read that was left alone brings its second half, and what the last write then
# takes to the disk.
#
# With only the read late, or only the write, all is well; and another race may show when one is late, and not when two are.
# So the revealer runs a program once for **every choice** of kinds. There are four (reads, writes, copies from the accelerator,
# updates that run in a thread), so 2 × 2 × 2 × 2 = 16 choices. Each is run twice, with the leftovers ending in both directions.

# %% [markdown] id="six-text"
# ## Six listings
#
# Now you. Read each listing and pick the line that **goes ahead too early**, before something that it needs is over. Take a line
# by its number. You are answered at once, and your pick is kept. Only then run the next cell.
#
# A question that always helps: *who else touches this place, and what makes me sure that they are done?*
#
# ### Listing 1
#
# The plainest step that there is: one buffer, one partition after the other.

# %% id="ask-1"
from course.six_listings import ask, revealed, score

first = ask(1, called="first")
first.show()

# %% id="show-1"
revealed(1, first)

# %% [markdown] id="ask-2-text"
# This is the commonest of all: a call returns, and one takes that for the end. Look at what arrives on the disk. Half of it is
# poison here; on a real one it is whatever was in the buffer before, and part of it was never updated from its own state.
#
# ### Listing 2
#
# The one that ran 400 times. Two buffers, used by turns, so that a write can go on while the next partition is read.

# %% id="ask-2"
second = ask(2, called="second")
second.show()

# %% id="show-2"
revealed(2, second)

# %% [markdown] id="ask-3-text"
# Now one partition's place on the disk holds another's state. Every write *was* waited for, too late. A buffer that is used in
# turns has to wait for its last user, and for nobody else.
#
# DeepSpeed had this fault in the buffers that collect its gradients. It went well as long as computing took longer than
# communicating (pull request 5606, *Fix overlap communication of ZeRO stage 1 and 2*, 2024).
#
# ### Listing 3
#
# The gradients are still on an accelerator. `fetch` starts the copy of one; the read of the state hides it.

# %% id="ask-3"
third = ask(3, called="third")
third.show()

# %% id="show-3"
revealed(3, third)

# %% [markdown] id="ask-4-text"
# In torch this is `gradient.to("cpu", non_blocking=True)`: it returns at once, and the tensor can be read at once, with whatever
# is in it. Moens (*A guide on good usage of non_blocking and pin_memory() in PyTorch*, 2024) warns of it. Start early, wait
# late, but **before the use**.
#
# ### Listing 4
#
# Two buffers again. While one partition is updated, the next one is read.

# %% id="ask-4"
fourth = ask(4, called="fourth")
fourth.show()

# %% id="show-4"
revealed(4, fourth)

# %% [markdown] id="ask-5-text"
# There is a wait, of the right kind, in the right place, and it is for somebody else. When you read code for races, don't look
# for waits. Look for *whom*.
#
# ### Listing 5
#
# The step writes behind, and at the end calls `publish()`: what is on the disk now is the new state, and is what a crash leaves.

# %% id="ask-5"
fifth = ask(5, called="fifth")
fifth.show()

# %% id="show-5"
revealed(5, fifth)

# %% [markdown] id="ask-6-text"
# The nastiest of them, for the running program never sees it. One write is under way at `publish()`, the last. It shows when
# somebody comes back after a crash.
#
# ### Listing 6
#
# Here the update runs in a thread of its own (`update_later`), and the gradient is cleared for the next backward meanwhile.

# %% id="ask-6"
sixth = ask(6, called="sixth")
sixth.show()

# %% id="show-6"
revealed(6, sixth)

# %% id="score"
print(score([first, second, third, fourth, fifth, sixth]))

# %% [markdown] id="score-read"
# After listing 6, half of a partition has not moved. That looks like a small learning rate. And there, as in listing 2, the
# step that is disturbed only *reads* the place: a reader has to be waited for just as well.
#
# The six have one thing in common. At some moment one step writes a place, and another is still at it. You see it in no type
# and in no traceback, but it is in the list of who waits for whom.
#
# ## Explain (quiz)
#
# Nine questions. If you see no buttons, answer as text, the way each question says.

# %% id="quiz"
from quizzes import Quiz

quiz = Quiz("07")
answers = quiz.answers
quiz.show()

# %% [markdown] id="change-text"
# ## Change one thing
#
# This is the careful version once more, with two buffers. It is right, and it takes 350 ms. Move **one wait**, so that it takes
# 250 ms and is still right. (You may need a name for the write that each buffer is waiting for: `writing = {}`, by buffer.) The
# check runs the revealer, looks for pairs without order, and says what it costs. Try it as it is first.

# %% id="change"
def mine(bench):
    for turn, partition in enumerate(bench.partitions):
        buffer = turn % 2
        bench.read(partition, buffer).wait()
        bench.update(partition, buffer)
        bench.write(partition, buffer).wait()


# %% id="change-check"
from course.checks import lesson_07

mended = lesson_07.check_mended(mine, RACES[1])

# %% [markdown] id="make-text"
# ## Make
#
# The revealer has to run a program. A checker only has to read its list. Write it.
#
# A step has `name`, `reads` and `writes` (sets of places, such as `"buffer-0"`), and `after` (the numbers of earlier steps that
# it begins after; a step's number is its place in the list).
#
# Contract: `missing_waits(steps) -> list` of pairs `(earlier, later)` of numbers, in any order, each pair once or more: all that
# share a place, at least one of the two to write, and of which the later does **not** happen after the earlier. Remember that
# it carries on. A list without races gives `[]`; nothing is raised.

# %% id="make"
def missing_waits(steps):
    ...  # your lines instead of this one


# %% id="make-check"
solved = lesson_07.check_missing_waits(missing_waits)

# %% [markdown] id="transfer-text"
# ## Transfer
#
# A seventh listing. It reads ahead, and guesses that the partition after this one is wanted next. This step comes to them in
# another order, 0, 2, 1, 3, 4, so sometimes the guess is wrong. Then it reads the right one instead.

# %% id="ask-7"
from course import abandoned

seventh = abandoned.ask(called="seventh")
seventh.show()

# %% id="seventh-runs"
listing = abandoned.reads_ahead
print(f"{wrong(listing, ('read',))} of {RUNS} runs wrong where reads are slow, measured")
print("The revealer:", reveal(listing))

# %% [markdown] id="seventh-read"
# The revealer finds **nothing**, and it is wrong. (Does your machine count 0 as well? Then it was lucky. Run it again.) Every
# write is waited for, so a read that was left alone and ends *as late as possible* ends after all the others, when nobody cares.
# If it ends at once, it does no harm either. The harm is done **in between**: when it ends after the read that was wanted, and
# before the write. The revealer tries the two ends, and never the middle.
#
# A tool that says "no race found" has told you what it tried. And the list?

# %% id="seventh-pairs"
from course.checks.ordering import unordered

find = missing_waits if solved else unordered
steps = recorded(listing).steps
pairs = sorted(find(steps))
print(f"{len(pairs)} pairs that nothing orders. The first three:")
for one, other in pairs[:3]:
    print(f"  {steps[one].name}  and  {steps[other].name}")
patched = abandoned.waits_for_the_wrong_guess
print("\nMended, with one line more:", len(find(recorded(patched).steps)), "pairs")
print(f"{wrong(patched, ('read',), runs=100)} of 100 runs wrong, measured\n")
print(source(patched))

# %% [markdown] id="leave"
# One wait, before the buffer is read into again; it waits for the read that nobody wants any more. A transfer that was started
# is your responsibility until it has ended, also if you changed your mind.
#
# The checker is not all-knowing either. It believes what each step *says* it touches, and it has seen one way through the
# program; an `if` may have another. The engine uses both: its lists are checked before they run (lesson 4), and its tests hold
# transfers back.
#
# **What you leave with**
#
# - A race is two steps that touch one place, one of them to write, without an order. There is no time in it.
# - Waits make order, and it carries on. Lanes, luck and pauses make none.
# - A buffer is free when its *last user* has ended. Ask of each wait: for whom?
# - Hold transfers back, poison what is not there, try every choice; and check the list of who waits for whom. Each finds what
#   the other cannot.
# - A wait too many costs time, and a wait too few costs the state. Start early, wait late, but before the use.
#
# Next: how large a model you can train with all this, and what it costs.
