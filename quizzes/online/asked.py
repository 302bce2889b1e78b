"""A question as the service hands it out: nothing of the key, and what widgets and texts of a practice quiz look at. Pure."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from quizzes.figures.received import SentFigure
from quizzes.say import _

Name = Annotated[str, Field(pattern=r"^[A-Za-z]\w{0,30}$")]
_Text = Annotated[str, Field(max_length=20_000)]


class _Sent(BaseModel):
    # A later service may say more than this program knows.
    model_config = ConfigDict(extra="ignore", frozen=True)


class Part(_Sent):
    """A choice, a step, the left side of a pair or an option. `credit` is what `quizzes.rules` looks at; here it is unknown."""

    id: str
    text: _Text = ""
    left: _Text = ""
    stays_last: bool = False
    exclusive: bool = False
    credit: float = 0.0


class Offer(_Sent):
    """The hints to a question: how many, the share of the points that the next one costs, the texts of those that were taken,
    and the share that was paid for them."""

    count: Annotated[int, Field(ge=0, le=100)]
    cost: Annotated[float, Field(ge=0, le=1)]
    texts: Annotated[tuple[_Text, ...], Field(max_length=100)] = ()
    paid: Annotated[float, Field(ge=0, le=1)] = 0.0


class Asked(_Sent):
    """One question in the edition that this learner is to answer next, or answered last where it is settled."""

    name: Name
    kind: Literal["one", "several", "number", "text", "order", "match", "plot"]
    prompt: _Text
    points: float = 1.0
    reread: str = ""
    unit: str | None = None
    variant: str = ""
    choices: tuple[Part, ...] = ()
    steps: tuple[Part, ...] = ()
    pairs: tuple[Part, ...] = ()
    offered: tuple[Part, ...] = Field(default=(), alias="options")
    figure: SentFigure | None = None
    attempt: Annotated[int, Field(ge=1, le=10_000)]
    attempts_left: Annotated[int, Field(ge=0, le=10_000)]
    settled: bool
    edition: str = ""
    confidence: bool = False
    """Whether the service asks how sure one is."""
    offer: Offer | None = Field(default=None, alias="hint_offer")
    hints: tuple[()] = ()
    """None are shown as those of a practice quiz."""

    @property
    def id(self) -> str:
        """Its name: the service tells no other."""
        return self.name

    def shown_steps(self) -> tuple[Part, ...]:
        return self.steps

    def options(self) -> dict[str, str]:
        return {part.id: part.text for part in self.offered}

    def same_text(self, other: Asked) -> bool:
        """Whether a learner sees the same, whatever attempt it is."""
        return self.model_dump(exclude=_PLACE) == other.model_dump(exclude=_PLACE)


_PLACE = {"attempt", "attempts_left", "settled", "edition", "variant", "offer"}


def fits(question: Asked, answer: Any) -> bool:
    """Whether `answer` has the form that the controls of this kind show; what was typed as text in a cell may have another."""
    if question.choices:
        return isinstance(answer, (str, list))
    wanted = {"order": list, "match": dict}.get(question.kind, (str, int, float))
    return isinstance(answer, wanted) and not isinstance(answer, bool)


class Sheaf(BaseModel):
    """The questions of a lesson in their order; what `quizzes.names.find` looks in."""

    questions: tuple[Asked, ...] = ()


def read(content: Any, notes: list[str]) -> tuple[Asked, ...]:
    """The questions of a list as JSON holds it. What is none is left out and said in `notes`."""
    found = []
    for entry in content if isinstance(content, list) else ():
        try:
            found.append(Asked.model_validate(entry))
        except ValidationError:
            name = entry.get("name") if isinstance(entry, dict) else None
            said = _("Question {name} cannot be shown by this version of the course; update it.")
            notes.append(said.format(name=str(name)[:40] if name else "?"))
    return tuple(found)
