# %% [markdown] id="title"
# # Item analysis
#
# For the instructor: which questions were hard, which tell learners apart, what each wrong choice drew, and where one language
# does worse than another in a single question. Nobody is named here.
#
# Grade a class with `offload-quiz grade --lesson 01 --json > results.json`. Then give the two files below and run all cells.
# The class list `students.csv`, beside the gradebook, may have a column `language`.

# %% id="files"
RESULTS = ""  # for example "graded/results.json"
GRADEBOOK = ""  # for example "graded/gradebook.db"

# %% id="read"
import os
from pathlib import Path

from quizzes.analysis import analyse
from quizzes.analysis_example import SAID, made_up_class
from quizzes.analysis_read import choices_of, read

results = RESULTS or os.environ.get("OFFLOAD_RESULTS", "")
gradebook = GRADEBOOK or os.environ.get("OFFLOAD_GRADEBOOK", "")
if results:
    answers = read(Path(results), Path(gradebook) if gradebook else None)
else:
    answers = made_up_class()
    print(SAID)
items = analyse(answers)
print(f"{len(answers)} answers of {len({row.learner for row in answers})} learners to {len(items)} questions")

# %% [markdown] id="look-text"
# ## What to look at
#
# **Facility** is the mean share of the points. **Discrimination** is how a question goes with the rest of the quiz, from -1 to
# 1: below 0, the learners who do well elsewhere do worse here, and the key may be wrong. Under ten learners neither says much.

# %% id="look"
from quizzes.analysis_report import method, sentences

print("\n".join(sentences(items)))

# %% [markdown] id="items-text"
# ## Hard and easy, and what tells learners apart

# %% id="facility"
from quizzes.analysis_plots import drawn_figure, facility_figure, items_figure, languages_figure, misconceptions_figure

facility_figure(items)

# %% id="discrimination"
items_figure(items)

# %% [markdown] id="drawn-text"
# ## What each choice drew
#
# A wrong choice that draws nobody is not a choice: write another. One that draws the learners who do well is read in another
# way than you meant it.

# %% id="drawn"
from IPython.display import display

choices = choices_of({item.question for item in items})
for item in items:
    display(drawn_figure(item, choices.get(item.question)))

# %% [markdown] id="misconceptions-text"
# ## Misconceptions, of the class and of each language

# %% id="misconceptions"
misconceptions_figure(items)

# %% [markdown] id="languages-text"
# ## A gap between languages
#
# A question that only one language gets wrong may be mistranslated. A gap in *every* question is the class's, not the
# translation's.

# %% id="languages"
print(method())
languages_figure(items)
