# %% [markdown] id="title"
# # 12 · Final quiz and certificate
#
# You have moved an optimizer's state to RAM and to a disk, hidden its transfers, found its races and paid its bill. In this lesson
# you look back on what you predicted, see what comes back to be repeated, answer twelve questions across the whole course, and
# issue yourself a certificate; then you try to forge it, and write the part of a verifier that finds you out. At the end you plan
# a training of your own on one page. It takes about forty-five minutes; running all cells takes about fifteen seconds.
#
# The certificate of this lesson is one that you sign **yourself**, with a key that is thrown away. What that proves, and what it
# does not, is the point.

# %% [markdown] id="recall"
# ## Recall
#
# - From lesson 0: a figure is measured, simulated or quoted, and a prediction is written down before it is compared.
# - From lessons 1, 3, 4, 5, 6 and 10: some numbers that you had not expected. Which ones?
#
# Before you run the next cell, say it to yourself: were your predictions too high or too low, and when you said *sure*, were you
# right? The cell reads the lessons that lie beside this one, as they were last saved.

# %% id="taught"
from course.taught import taught

taught()

# %% [markdown] id="taught-read"
# With perfect calibration the dots lie on the dashed line: of what you called 90 % sure, nine of ten came near. Most people lie
# below it (Fischhoff, Slovic and Lichtenstein, *Knowing with Certainty: The Appropriateness of Extreme Confidence*, 1977). Look at
# the kinds as well. Many people are good at bytes, which can be counted, and bad at times, which wait for something.
#
# ## Predict
#
# Three numbers: about you, about a signature, and about a plan. The third comes in its place.

# %% id="predict-score"
from course.prediction import Prediction

score = Prediction(
    "12-score",
    "Of the points of this lesson's quiz, how many per cent will you have when you have answered all of it once?",
    most=100,
    unit="percent",
    called="score",
)
score.show()

# %% [markdown] id="predict-flips-text"
# Your certificate will be a file of about 2,250 bytes. You will change it 2,250 times: each time one single bit, in another byte.

# %% id="predict-flips"
flips = Prediction(
    "12-flips",
    "How many per cent of these changes does the verifier find?",
    most=100,
    unit="percent",
    called="flips",
)
flips.show()

# %% [markdown] id="back-text"
# ## What comes back
#
# A question that you missed, or for which you took a hint, comes back: soon at first, and later each time that you know it. The
# dates are computed by FSRS, an open scheduler that is fitted to how people forget (Ye, Su and Cao, *A Stochastic Shortest Path
# Algorithm for Optimizing Spaced Repetition Scheduling*, 2022). Here is what it plans for a question that was missed once and is
# right from then on, and for one that was missed three times.

# %% id="back"
from course.coming_back import days, told

for missed in (1, 3):
    gaps = days(answers=missed + 6, missed=missed)
    print(f"missed {missed} ×: asked again after", ", ".join(map(told, gaps)), "(calculated)")

# %% [markdown] id="yours-text"
# And these are yours, of all lessons. Nothing is asked that you knew at once. Do them before the quiz: to fetch something from
# memory, a while after learning it, does more than to read it again (Roediger and Karpicke, *Test-Enhanced Learning*, 2006).

# %% id="yours"
from quizzes import Quiz

quiz = Quiz("12")
print(quiz.review())

# %% [markdown] id="yours-read"
# `Quiz("03").review()` asks what is due of lesson 3; `offload-quiz progress show`, in a terminal, says how far you are in each
# lesson, and `offload-quiz progress export FILE` takes it all to another machine.
#
# The next five headings are the course on one page. Cover each cell's output with your hand, say what it will print, then look.
#
# ## Bytes
#
# Where do the sixteen bytes of a parameter lie? Weights and gradients stay where the model is; the state is what moves (lesson 1
# measured it). In RAM it is 10 bytes of a bfloat16 parameter; on the disk two slots of 12, so that a crash finds a whole one
# (lesson 5). What activations take is not in it, and no optimizer moves them.

# %% id="bytes"
from offload_lab.state_bytes import readable, training_bytes

print("7 billion    weights and gradients  state, or buffers   on the disk   (between two steps, calculated)")
for dtype in ("bfloat16", "float32"):
    for tier in ("adamw", "ram", "disk"):
        taken = training_bytes(7_000_000_000, dtype, tier)
        model = taken.ram["weights"] + taken.ram["gradients"]
        sizes = (model, sum(taken.ram.values()) - model, taken.disk_bytes)
        shown = [readable(size) if size else "–" for size in sizes]
        print(f"{dtype:9}{tier:6}{shown[0]:>18}{shown[1]:>19}{shown[2]:>14}")

# %% [markdown] id="time-text"
# ## Time
#
# A step takes as long as its longest lane, plus what that one waits for. So to know how long, count the bytes of each lane and
# divide by what it carries (lessons 3, 4 and 5); and to know what a faster part brings, look whether it is the longest
# (lesson 10).

# %% id="time"
from course.next_machine import Step, bottleneck
from offload_lab import catalogue

machine = catalogue.machine("rtx4090-nvme")
for state in ("ram", "disk"):
    run = Step(parameters=3_000_000_000, tokens=4096, state=state).run(machine)
    print(f"3 billion, state={state!r:7} {run.makespan:5.1f} s a step, simulated; longest: {bottleneck(run, machine)}")

# %% [markdown] id="order-text"
# ## Order
#
# Each partition is used once a step, in an order that is known. So a cache that keeps what was used last keeps the wrong ones
# (lesson 6). And a buffer is free when its transfer has **ended**, not when the call has returned (lesson 7).

# %% id="order"
from offload_lab.caching import Cache, least_recently_used
from offload_lab.schedule import in_order

for order in ("forward", "alternating"):
    cache, read = Cache(6, 1, least_recently_used), []
    for number in range(4):
        steps = in_order(range(8), order, number)
        read.append(sum(not cache.place(partition, lambda other: 0).hit for partition in steps))
    print(f"8 partitions, room for 6, {order + ',':12} LRU: {read} reads in four steps, counted")
print(f"the same six pinned:                      {[8] + [8 - 6] * 3}, calculated")

# %% [markdown] id="whole-text"
# ## Whole or not at all
#
# An update that is smaller than half a unit in the last place is lost, in every step anew: so masters need their low 16 bits
# (lesson 2). A step that is interrupted is the step before or the step after, never half of one: so it is written aside, flushed
# and renamed (lesson 5), and the drill of lesson 9 ends with a state that is whole. Nothing that is nearly right is kept.

# %% id="whole"
import torch

alone = torch.tensor(1.0, dtype=torch.bfloat16)
master = torch.tensor(1.0)
for _ in range(100):
    alone = alone + 0.001
    master = master + 0.001
print(f"1 + 100 × 0.001, bfloat16 alone:     {alone.item():.4f}, measured")
print(f"with a float32 master, then rounded: {master.to(torch.bfloat16).item():.4f}, measured")

# %% [markdown] id="figures-text"
# ## Figures
#
# - **Measured**: it happened, here. On another day it is another number.
# - **Simulated** or predicted: bytes over bandwidths. As good as the bandwidths.
# - **Quoted**: somebody promises it. What a copy gets is less.
# - **Calculated** or counted: it follows from the layout or the order, on every machine.
#
# Targets are written before any of them is known (lesson 9). Else they will be what came out, and every run passes.
#
# ## Explain
#
# Twelve questions across the course. Say how sure you are before you answer; that is recorded, too. If you see no buttons, answer
# as text, the way each question says.

# %% id="quiz"
answers = quiz.answers
quiz.show()

# %% [markdown] id="score-text"
# When you have answered all of them, run this cell. (Answering again changes the score; the prediction was about the first time.)

# %% id="score"
open_ = [question.name for question in quiz.bank.questions if quiz.recorded(question.name) is None]
reached, there = quiz.score
print(f"{reached:g} of {there:g} points, counted")
if open_:
    print(f"Not answered yet: {', '.join(open_)}. Your prediction waits.")
else:
    score.compare(100 * reached / there, "Counted")
    print(quiz.calibration())

# %% [markdown] id="graded-text"
# ## How the graded one works
#
# You have just seen that a practice quiz judges on your own machine, with the key at hand. It is for you, and nobody else should
# give anything for its score. For a grade there are other questions, whose keys you do not have:
#
# | | who judges | what you hand in | how you hear |
# |---|---|---|---|
# | practice: `Quiz("12")` | your kernel, key at hand | nothing | at once |
# | graded in a class, with nbgrader | your instructor's machine | the notebook `quiz-12.ipynb` | when it is graded |
# | graded online: `OnlineQuiz("12")` | the service, which keeps the key | `receipts.json`, by `quiz.hand_in()` | at once |
#
# The instructor's side is `offload-quiz build --lesson 12 --course class`, then `offload-quiz grade --lesson 12 --course class`, or
# `offload-quiz serve --key receipts.key` for the service. Online you have two attempts at each question, with new numbers; the best
# counts, and each answer that was judged comes with a signed **receipt**. So whoever grades needs no key either, only the
# service's public one.
#
# In all three your answers are **data**: no line of your code is run to grade you. This is what your notebook carries.

# %% id="record"
import json

record = json.dumps(quiz.record.to_json(), sort_keys=True).encode()
print(f"{len(record)} bytes, the first of them:\n{record[:300].decode()} …")

# %% [markdown] id="certificate-text"
# ## Your certificate
#
# Put your name in, if you like; it leaves this machine only if you send it. A key is drawn at random, signs once, and is forgotten
# when the kernel ends. With less than 80 % of the points you get a specimen, which says so in what is signed. Run the cell again
# when you have answered.

# %% id="issue"
from course.own_certificate import Drawn, issue

NAME = "Ada Example"

own = issue(NAME, reached, there, record)
print(own)

# %% id="drawn"
Drawn(own)

# %% [markdown] id="verify-text"
# Now be a stranger who was sent this file. The first verdict is for somebody who knows no issuer; the second is for somebody who
# has your key **from you**, by a way of its own. Neither needs a network.

# %% id="verify"
from course.own_certificate import verdict

for trusted in (None, own.did):
    found = verdict(own.data, issuer=trusted)
    print(f"trusted: {trusted}\n  {found.heading.upper()}: {found.meaning}\n")

# %% [markdown] id="prompt-text"
# The same in a terminal, as the stranger would type it. (The file is written into a temporary folder, and removed.)

# %% id="prompt"
from course.own_certificate import at_the_prompt

print(at_the_prompt(own.data, own.did))

# %% [markdown] id="one-byte-text"
# Now forge it. Change one bit, in the first letter of the name, and nothing else.

# %% id="one-byte"
from course.own_certificate import flipped

PLACE = own.place  # or any other, from 0 to len(own.data) - 1

forged = flipped(own.data, PLACE)
for data in (own.data, forged):
    print("…" + data[max(PLACE - 20, 0) : PLACE + 20].decode(errors="replace") + "…")

found = verdict(forged, issuer=own.did)
print(f"\nNOT VALID. {found.heading.upper()}: {found.message}")

# %% [markdown] id="every-byte-text"
# That was a byte that matters. Are there any that do not? One bit in each byte, one after the other:

# %% id="every-byte"
from course.own_certificate import refused

caught, tried = refused(own.data, own.did)
print(f"{tried} files, each with one bit changed: {caught} refused")
flips.compare(100 * caught / tried, "Counted")

# %% [markdown] id="liar-text"
# So nobody can change it. But look at this one. Whoever made it has answered nothing at all, took a key of their own, and signed
# that they had every point.

# %% id="liar"
liar = issue("Somebody Else", there, there, b"no answers at all")
found = verdict(liar.data, issuer=liar.did)
print(f"with the liar's own key: {found.heading.upper()}")
if found.certificate is not None:
    print(f"  {found.certificate.learner}: {found.certificate.points}")
print(f"with yours:              {verdict(liar.data, issuer=own.did).heading.upper()}")

# %% [markdown] id="liar-read"
# It is **whole**, and it is a lie. A signature says *who said it*, and that nothing was changed since. It does not say that it is
# true. Your own certificate is no better: the same cell made it. Here is what a stranger can check, and what not:
#
# | statement | can a stranger check it? |
# |---|---|
# | these bytes are those that the key signed | **yes**, offline, for ever, without us |
# | the key belongs to an issuer | only if they have the key **from that issuer**, not from the file |
# | it was not revoked | as of the day of the issuer's signed list, if there is one; a self-issued one cannot be revoked |
# | these answers are the evidence | yes, if you show them: the certificate holds their hash |
# | the points are right | only by judging the answers again |
# | how it was assessed | it *says* how: "self-paced" here, "service" or "instructor" there. They decide what that is worth |
# | the person who shows it answered, alone | **no**. It says so itself, under *limits* |
#
# A certificate that others can rely on is issued by an instructor, with a key that is known: `offload-quiz certificate issue`. With
# `--registry` it has an id to look up and an entry in the list of those revoked. The check is the one that you have just run.
#
# One of these you can check now: is the evidence yours?

# %% id="evidence"
import base64
import hashlib

claimed = own.document["evidence"][0]["id"].removeprefix("ni:///sha-256;")
mine = base64.urlsafe_b64encode(hashlib.sha256(record).digest()).decode().rstrip("=")
print(f"the certificate says  {claimed}\nyour answers hash to  {mine}")
print("the same answers" if claimed == mine else "other answers than when it was issued: issue it again")

# %% [markdown] id="change-text"
# ## Change one thing
#
# Five more ways to tamper. Before each, say which of the seven verdicts it gets: *not a certificate*, *altered*, *unknown issuer*,
# *revoked*, *expired*, *status unknown*, *valid*. Then run the cell with the next `WAY`.

# %% id="change"
from course.own_certificate import tampered

WAY = "spaces"  # or "cut off", "signed again", "another issuer", "line end"

bent = tampered(own, WAY)
found = verdict(bent, issuer=own.did)
print(f"{WAY}: {len(own.data)} bytes became {len(bent)}\n{found.heading.upper()}: {found.message}")

# %% [markdown] id="make-text"
# ## Make
#
# What exactly is signed? Not the file: it has the signature in it. A certificate is a JSON object with a `proof`. Its proof is made
# like this (*eddsa-jcs-2022*, W3C, *Data Integrity EdDSA Cryptosuites*, 2025):
#
# 1. the **document** is the certificate without `proof`;
# 2. the **options** are the proof without `proofValue`, which is the signature;
# 3. each is written as canonical JSON: keys sorted, no space between the parts, letters as they are, in UTF-8;
# 4. each is hashed with SHA-256, to 32 bytes. Signed are the 64 bytes: the hash of the options, then that of the document.
#
# Contract: `signed_bytes(certificate: dict) -> bytes`, 64 bytes. A certificate without `proof` raises ValueError. Certificates of
# this course hold no numbers, so `json.dumps` can write them canonically, if you tell it how. What is expected is what the issuer's
# own code signs.

# %% id="make"
def signed_bytes(certificate):
    ...  # your lines instead of this one


# %% id="make-check"
from course.checks import lesson_12

solved = lesson_12.signed_bytes.check(signed_bytes)

# %% [markdown] id="own-verifier-text"
# With that, a verifier is three lines: take the signature out of the proof, the key out of the did that *you* trust, and ask
# whether they fit. Yours, on your certificate and on the forged one:

# %% id="own-verifier"
from quizzes.certificates import base58, did_key, ed25519

if solved:
    for name, data in (("your certificate", own.data), ("the forged one", forged)):
        try:
            certificate = json.loads(data)
            signature = base58.decode(certificate["proof"]["proofValue"].removeprefix("z"))
            ed25519.verify(did_key.key_of(own.did), signature, signed_bytes(certificate))
            print(f"{name}: whole")
        except ValueError as error:
            print(f"{name}: {error}")
else:
    print("Once your function is right, this cell verifies with it.")

# %% [markdown] id="transfer-text"
# ## Transfer
#
# Now without us. A training of your own, on your machine or on one that you would rent: **one page** that somebody could sign.
# Which plan, which targets, when is it given up, and how does one come back?
#
# `MODEL` is a name or a number of parameters. `MACHINE` is one of `catalogue.names()["machine"]`, or `"yours"`, which takes the
# hardware file of lesson 0. As it stands: a model of 7 billion on a card of 24 GB, with an NVMe that reads 7 GB/s and, once its
# cache is full, writes 1.4. Fill in your own, then predict before you go on.

# %% id="task"
MODEL, MACHINE = "llama-2-7b", "rtx4090-nvme"
TOKENS, SEQUENCE, BATCH = 1e8, 1024, 4

slower = Prediction(
    "12-slower",
    "With the state on the disk instead of in RAM, how many times as long does a step take?",
    most=10_000,
    unit="ratio",
    called="slower",
)
slower.show()

# %% id="plans"
from course.design_page import line, plans
from course.machine import yours

own_machine = yours(seconds=4) if MACHINE == "yours" else catalogue.machine(MACHINE)
made = plans(MODEL, own_machine, TOKENS, sequence=SEQUENCE, batch=BATCH)
print("All of it is predicted, at the peak:")
for state, found in made.items():
    print(line(state, found))
pair = [found.seconds_per_step for found in (made.get("disk"), made.get("ram")) if found and found.fits]
if len(pair) == 2 and None not in pair:
    slower.compare(pair[0] / pair[1], "Calculated")
else:
    print("Not both of RAM and disk can be had here, so there is nothing to compare.")

# %% [markdown] id="choose-text"
# Now choose, and write the two lines that no planner knows.

# %% id="page"
from course.design_page import page

CHOICE = "ram"
MARGIN = 0.2  # how much more than predicted a run may take; a share
STOP = ""  # in your words: when is the run given up?
BACK = ""  # in your words: how does one come back to the last good step?

if CHOICE in made:
    print(page(made[CHOICE], MARGIN, STOP, BACK))
else:
    print(f"There is no plan for {CHOICE!r}; choose one of {', '.join(made)}.")

# %% [markdown] id="page-read"
# Now read your page as the person who pays. Does each figure say where it is from? What of *not known yet* would change the
# decision, and what would it cost to measure it? Is there a target that cannot be missed, or one that no run would reach? Would you
# know at three in the morning what to do, from the two lines that you wrote? (Try a `BATCH` of 1, or 32, and look what becomes the
# longest lane.)
#
# When it holds, `offload-lab plan … --json > plan.json` writes the plan, and `offload-lab gate --script my_workload.py --targets
# plan.json` holds a run to it (lesson 9).

# %% [markdown] id="leave"
# **What you leave with**
#
# - Count bytes, divide by bandwidths, find the longest lane; keep what a scan will need, wait for what has not ended, and write
#   nothing by halves. That is the course.
# - How sure you are is a measurement, too, and you have calibrated the instrument.
# - A signature says who said it and that nothing was changed. Not that it is true, nor who holds the paper.
# - A key in a file vouches for nothing. Get it from whom it belongs to.
# - One page, with targets, before the first step.
#
# The questions that you missed will come back. So, we hope, will you: with a model that did not fit, and now does.
