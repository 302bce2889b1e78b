"""A catalogue without a plain letter, made from the templates: whatever is shown in plain letters was not translated."""

import re
from functools import cache
from io import BytesIO

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo

from course import words
from quizzes.say import pseudo

LANGUAGE = "qps"
# What stays in plain letters in every language.
UNITS = "B kB MB GB TB KiB MiB GiB TiB Go bit bits byte bytes s ms ns us min h GHz GB/s e e9 e12 USD n p v x"
NAMES = "PCIe NVMe CPU GPU RAM DRAM HBM BF16 bf16 bfloat16 FP32 fp32 FP16 fp16 float32 float16 Adam AdamW torch Python LinkedIn"
CODE = "answers quiz choose review Quiz True False None"  # what is typed
MACHINES = "rtx4090 rtx4090-nvme a100 a100-80-server h100-80-server"  # names of the planner's catalogue
ALLOWED = set(" ".join([UNITS, NAMES, CODE, MACHINES]).split())


@cache
def _compiled():
    found = {}
    for path, template in words.templates().items():
        catalog = Catalog(locale=None, fuzzy=False)
        catalog._num_plurals, catalog._plural_expr = 2, "(n != 1)"
        for message in template:
            if message.id:
                both = isinstance(message.id, tuple)
                catalog.add(message.id, tuple(map(pseudo, message.id)) if both else pseudo(message.id))
        file = BytesIO()
        write_mo(file, catalog)
        found[path.stem] = file.getvalue()
    return found


def make(folder):
    """Write the catalogue under `folder`, which OFFLOAD_LAB_LOCALES then names."""
    place = folder / LANGUAGE / "LC_MESSAGES"
    place.mkdir(parents=True)
    for domain, content in _compiled().items():
        (place / f"{domain}.mo").write_bytes(content)
    return folder


def plain(text, allowed=()):
    """The words in plain letters that stand in a text and are not allowed to."""
    text = re.sub(r"<(style|script)\b.*?</\1>", " ", text, flags=re.S | re.I)
    text = re.sub(r"`[^`]*`|&\w+;|\{[a-z_]+\}|https?://\S+|\x1b\[[0-9;]*m", " ", text)
    found = re.findall(r"[A-Za-z][\w/-]*", text)
    return sorted({word for word in found if word not in ALLOWED and word not in allowed and re.match(r"[A-Za-z]{2,}", word)})


def seen(html):
    """What a person reads of HTML or hears: text, and the attributes that are read out."""
    parts = re.findall(r'(?:title|alt|aria-label|placeholder|data-label|data-copied|data-refused)="([^"]*)"', html)
    bare = re.sub(r"<(style|script)\b.*?</\1>", " ", html, flags=re.S | re.I)
    return " ".join([re.sub(r"<[^>]*>", " ", bare), *parts])
