# %% [markdown] id="title"
# # Offload Lab
#
# How does one train a model that does not fit into memory? Most of what training takes is **optimizer state**: numbers that are
# needed once a step and lie idle the rest of the time. In this course you find those bytes, move them to main memory and to a
# disk, and train with them there; on the machine in front of you, with a real optimizer, and you measure every step of the way.
#
# ![A model of 4 billion parameters in bfloat16, and a card of 24 GB, as bars. Trained with AdamW, all on the card: weights 8 GB, gradients 8 GB, optimizer state 48 GB, together 64 GB, far beyond the card. Offloaded, 16 GB of weights and gradients stay on the card, which is not full then; 40 GB of optimizer state lie in main memory or on a disk.](../pictures/cover.svg)
#
# *Where do 64 GB go, and how much of them must lie on the card? Calculated; what activations take comes on top.*

# %% [markdown] id="start"
# ## Where to start
#
# - **New here?** Open [lesson 0](00_is_your_machine_ready.ipynb). It measures your machine, and every later lesson predicts with
#   its figures. Then go on in order: each lesson builds on earlier ones.
# - **Half an hour, and you want to see it?** Open [lesson 1](01_where_did_the_memory_go.ipynb). It stands on its own.
# - **Back again?** Run the cell under [Where you are](#Where-you-are): it says what you did and what comes next.
#
# In a lesson, Shift+Enter runs a cell and goes to the next. Words that you don't know are in the [glossary](glossary.ipynb).

# %% [markdown] id="whom"
# ## For whom, and what it takes
#
# For people who train models, or look after machines on which others do, and have met *out of memory*. You have written a
# training loop in PyTorch once: `loss.backward()`, `optimizer.step()`. Nothing else is taken for granted.
#
# No GPU, no account and no network. Two cores, 2 GB of free memory and 3 GB of disk are enough; a lesson that has more shows
# more. Nothing that you type leaves your machine.

# %% [markdown] id="lessons"
# ## The lessons
#
# {count} lessons, about {hours} hours in all. *Builds on* names the earlier lessons that it recalls; *your time* is that of reading,
# predicting, trying and answering; *run all* is how long its cells run by themselves, measured on two cores.
#
# {lessons}
#
# Each has the same shape. You recall two things; **predict** a number, with how sure you are; run it and read off what happened;
# explain, in a short quiz that judges at once; change one thing; make something of your own, which is checked; and carry it over to
# other numbers. Predictions may be skipped. A wrong one that you wrote down teaches more than a right one that you read.

# %% [markdown] id="where"
# ## Where you are
#
# Run this cell: click on it, then Shift+Enter. It reads your answers from your progress file, and your predictions from the lessons
# in this folder as they were last saved.

# %% id="standing"
from course.landing import standing

standing()

# %% [markdown] id="after"
# ## When something does not work
#
# - A lesson that was changed by mistake is built anew with `make course`; one that was run is only overwritten with
#   `python -m course.build --force`, because it holds your answers.
# - Your progress can be taken to another machine: `offload-quiz progress export progress.json` here, `offload-quiz progress
#   import progress.json` there.
# - What a kernel that was killed has left on the disk is found and removed with `offload-lab clean state`, where `state` is the folder.
