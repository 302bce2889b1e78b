# %% [markdown] id="title"
# # Glossary
#
# {terms} words, as this course uses them, each with the lesson that teaches it and its unit where it has one. Bytes are counted in
# powers of ten: kB, MB, GB and TB are 10³, 10⁶, 10⁹ and 10¹² of them. KiB, MiB and GiB are 2¹⁰, 2²⁰ and 2³⁰. *Bytes a parameter*
# is divided by the number of weights.
#
# Back to the [lessons](index.ipynb).

# %% [markdown] id="terms"
# {glossary}
