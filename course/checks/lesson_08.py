"""Lesson 8: the parameters of a published configuration, and the cheapest run that fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from course.contract import Case, Contract, Idea
from offload_lab.known_models import KNOWN
from quizzes.say import N_

GIB = 2**30


class Published(dict[str, Any]):
    """A model's config.json, as far as its parameters follow from it; it shows itself by the model's name."""

    def __init__(self, name: str, fields: dict[str, Any]) -> None:
        super().__init__(fields)
        self.name = name

    def __repr__(self) -> str:
        return self.name


def published(name: str) -> Published:
    """The published dimensions of a model that the catalogue knows, by the names of config.json. Raises KeyError for others."""
    shape = KNOWN[name].architecture
    if shape is None:
        raise KeyError(name)
    fields = {
        "vocab_size": shape.vocabulary,
        "hidden_size": shape.width,
        "intermediate_size": shape.inner,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads or shape.heads,
        "tie_word_embeddings": shape.tied,
    }
    return Published(name, fields)


@dataclass(frozen=True)
class Offer:
    """A machine, and what a plan says of a training on it. Bytes are those on the card."""

    name: str
    card_gib: float
    """Memory of the card, in GiB, as makers give it."""
    weights: int
    gradients: int
    activations: int
    seconds: float
    """Of one step."""
    hour: float
    """Dollars."""


class Offers(list[Offer]):
    """Several of them, that show themselves by what they are a case of."""

    def __init__(self, name: str, *offers: Offer) -> None:
        super().__init__(offers)
        self.name = name

    def __repr__(self) -> str:
        return self.name


# --- parameters ---------------------------------------------------------------------------------------------------------


def _counted(
    config: dict[str, Any], *, tied: bool | None = None, kv: bool = True, matrices: int = 3, norms: int = 2, last: bool = True
) -> int:
    width, layers = config["hidden_size"], config["num_hidden_layers"]
    heads = config["num_attention_heads"]
    keys = width * width // heads * (config["num_key_value_heads"] if kv else heads)
    each = 2 * width * width + 2 * keys + matrices * width * config["intermediate_size"] + norms * width
    once = config["tie_word_embeddings"] if tied is None else tied
    return layers * each + (1 if once else 2) * config["vocab_size"] * width + (width if last else 0)


_SMALL = Published(
    "by_hand",
    {
        "vocab_size": 10,
        "hidden_size": 4,
        "intermediate_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "tie_word_embeddings": False,
    },
)
_SMALL_TIED = Published("by_hand_tied", {**_SMALL, "tie_word_embeddings": True})
_SMALL_GROUPED = Published("by_hand_grouped", {**_SMALL, "num_key_value_heads": 1})

_TIED = N_("With tie_word_embeddings the head is the token embedding: one matrix, with two uses. Count it once.")
_GROUPED = N_(
    "With fewer num_key_value_heads, keys and values are narrower: hidden_size × (hidden_size / heads × key-value heads) each."
)

parameters = Contract(
    "parameters",
    [
        Case(
            (_SMALL,),
            252,
            N_(
                "By hand: embedding and head 2 × 10 × 4, attention 4 × 4 × 4, network 3 × 4 × 8, norms 2 × 4, and the last "
                "norm 4."
            ),
        ),
        Case((_SMALL_TIED,), 212, _TIED),
        Case((_SMALL_GROUPED,), 236, _GROUPED),
        *(
            Case((published(name),), KNOWN[name].parameters, hint)
            for name, hint in (
                ("llama-2-13b", N_("Every layer has its own matrices and norms: multiply by num_hidden_layers.")),
                ("llama-3-8b", _GROUPED),
                ("llama-3.2-1b", _TIED),
            )
        ),
    ],
    [
        Idea(
            N_("You count the embedding twice where it is tied. The head is then the same matrix: count it once."),
            lambda config: _counted(config, tied=False),
        ),
        Idea(
            N_("You leave the head out where it is not tied: there it is a matrix of its own, as large as the embedding."),
            lambda config: _counted(config, tied=True),
        ),
        Idea(
            N_("You give keys and values the full width. With fewer num_key_value_heads they are narrower."),
            lambda config: _counted(config, kv=False),
        ),
        Idea(
            N_("Your network has two matrices. These models have three: gate, up and down."),
            lambda config: _counted(config, matrices=2),
        ),
        Idea(
            N_("You leave the norms out: two vectors of hidden_size a layer, and one after the last layer."),
            lambda config: _counted(config, norms=0, last=False),
        ),
        Idea(N_("One norm is missing: after the last layer there is one more."), lambda config: _counted(config, last=False)),
    ],
    near=1e-12,
)


# --- the cheapest run ---------------------------------------------------------------------------------------------------


def _needs(offer: Offer) -> int:
    return offer.weights + offer.gradients + offer.activations


def _run(offer: Offer, steps: int) -> float:
    return steps * offer.seconds / 3600 * offer.hour


def _fitting(offers: Sequence[Offer], needs: Any = _needs, unit: float = GIB) -> list[Offer]:
    found = [offer for offer in offers if needs(offer) <= offer.card_gib * unit]
    if not found:
        raise ValueError("nothing fits")
    return found


def _least(offers: Sequence[Offer], steps: int) -> float:
    return min(_run(offer, steps) for offer in offers)


_CHEAP = Offer("24 GiB and NVMe", 24, 14 * 10**9, 10**9, 4 * 10**9, 6.0, 0.5)
_MIDDLE = Offer("80 GiB", 80, 14 * 10**9, 14 * 10**9, 10 * 10**9, 2.0, 1.2)
_DEAR = Offer("newer 80 GiB", 80, 14 * 10**9, 14 * 10**9, 10 * 10**9, 1.0, 3.0)
_NARROW = Offer("24 GiB, just enough", 24, 20 * 10**9, 10**9, 45 * 10**8, 3.0, 0.5)
_BUSY = Offer("24 GiB, long sequences", 24, 14 * 10**9, 10**9, 12 * 10**9, 1.0, 0.5)
_LARGE = Offer("24 GiB, 13 billion", 24, 26 * 10**9, 10**9, 10**9, 0.5, 0.5)
_WHOLE = Offer("24 GiB, gradients stay", 24, 14 * 10**9, 14 * 10**9, 10**9, 1.0, 0.5)

cheapest = Contract(
    "cheapest",
    [
        Case(
            (Offers("three_machines", _CHEAP, _MIDDLE, _DEAR), 36_000),
            24.0,
            N_(
                "Steps × seconds are the seconds of the run; by 3,600 they are hours; times the price of an hour. Take the "
                "smallest of those that fit."
            ),
        ),
        Case(
            (Offers("just_enough", _NARROW, _MIDDLE), 36_000),
            15.0,
            N_("24 GiB are 24 × 2³⁰ bytes, 25.8 GB. Makers give the memory of cards in GiB, and the bytes here are bytes."),
        ),
        Case(
            (Offers("long_sequences", _BUSY, _MIDDLE), 36_000),
            24.0,
            N_("Activations are gone between two steps, and need their room at the peak."),
        ),
        Case(
            (Offers("gradients_stay", _WHOLE, _MIDDLE), 36_000),
            24.0,
            N_("Gradients are there at the end of backward: they need their room beside the weights."),
        ),
        Case(
            (Offers("thirteen_billion", _LARGE, _MIDDLE), 36_000),
            24.0,
            N_("26 GB of weights are not on a card of 24 GiB, however cheap its hour is."),
        ),
        Case((Offers("one", _DEAR), 1_200), 1.0, N_("1,200 steps of a second are a third of an hour.")),
        Case((Offers("none_fits", _BUSY, _WHOLE), 100), ValueError, N_("Where nothing fits there is no price: a ValueError.")),
    ],
    [
        Idea(
            N_("A GB is not a GiB: 24 GiB are 25.8 GB. You turn away a machine that fits."),
            lambda offers, steps: _least(_fitting(offers, unit=10**9), steps),
        ),
        Idea(
            N_("You leave the gradients out. At the end of backward all that stay on the card are there."),
            lambda offers, steps: _least(_fitting(offers, lambda o: o.weights + o.activations), steps),
        ),
        Idea(
            N_("You count what is there between two steps. What decides is the peak, with the activations."),
            lambda offers, steps: _least(_fitting(offers, lambda o: o.weights + o.gradients), steps),
        ),
        Idea(
            N_("You look at the weights alone. Gradients and activations need their room beside them."),
            lambda offers, steps: _least(_fitting(offers, lambda o: o.weights), steps),
        ),
        Idea(N_("You count machines on which the training does not fit."), lambda offers, steps: _least(offers, steps)),
        Idea(
            N_("You compare prices of an hour, and forget how many hours each machine needs."),
            lambda offers, steps: _run(min(_fitting(offers), key=lambda o: o.hour), steps),
        ),
        Idea(
            N_("You take the fastest machine. An hour of it may cost more than it saves."),
            lambda offers, steps: _run(min(_fitting(offers), key=lambda o: o.seconds), steps),
        ),
        Idea(
            N_("That is the price of an hour. A run has steps × seconds / 3,600 of them."),
            lambda offers, steps: min(o.hour for o in _fitting(offers)),
        ),
        Idea(
            N_("You pay an hour's price for each second. 3,600 seconds are an hour."),
            lambda offers, steps: 3600 * _least(_fitting(offers), steps),
        ),
        Idea(N_("You divide by 60. An hour has 3,600 seconds."), lambda offers, steps: 60 * _least(_fitting(offers), steps)),
    ],
)
