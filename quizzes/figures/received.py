"""A figure that a service drew: what it sent, shown as if it had been drawn here. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from offload_lab.plots.drawing import Drawing
from offload_lab.plots.lettering import clean
from offload_lab.plots.tables import Table
from quizzes.figures.picture import Picture

_Line = Annotated[str, Field(max_length=2_000)]


class SentTable(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    caption: _Line = ""
    headers: tuple[_Line, ...] = ()
    rows: Annotated[tuple[tuple[_Line, ...], ...], Field(max_length=5_000)] = ()

    @model_validator(mode="after")
    def _is_even(self) -> SentTable:
        if any(len(row) != len(self.headers) for row in self.rows):
            raise ValueError("a row has another number of cells than the headers")
        return self


class SentFigure(BaseModel):
    """What `Picture.public` gives, as it arrives."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    title: _Line
    svg: Annotated[str, Field(max_length=1_000_000)]
    """Only ever shown as an image, in which no script runs."""
    alternative: Annotated[str, Field(max_length=100_000)]
    tables: Annotated[tuple[SentTable, ...], Field(max_length=20)] = ()


@dataclass(frozen=True)
class Received(Picture):
    """`sent` in place of a drawing of our own."""

    sent: SentFigure = field(kw_only=True)

    def draw(self, drawing: Drawing) -> None:
        raise NotImplementedError("it was drawn by the service")

    def remark(self) -> str:
        return ""

    def summary(self) -> list[str]:
        return self.sent.alternative.split("\n")

    def tables(self) -> list[Table]:
        return [Table(table.caption, list(table.headers), [list(row) for row in table.rows]) for table in self.sent.tables]

    def svg(self) -> str:
        return self.sent.svg

    def alternative(self) -> str:
        return clean(self.sent.alternative)
