"""What an hour of a machine costs: one dated table, `prices.toml`, that anybody may edit. Pure; nothing is ever fetched."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from offload_lab.hardware import Figure, Source

VARIABLE = "OFFLOAD_LAB_PRICES"
HOURS_A_YEAR = 365 * 24


@dataclass(frozen=True)
class Price:
    """A row of the table: rented by the hour, or bought and worn out. US dollars."""

    source: Source
    note: str
    date: str
    hour: float | None = None
    buy: float | None = None
    years: float = 3.0
    use: float = 0.5
    """Share of the years in which it works; the rest is paid for as well."""
    watts: float = 0.0
    kwh: float = 0.0
    """Of a kilowatt-hour, which is paid for the hours that it works."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in ("source", "note", "date"):
                if not isinstance(value, str):
                    raise ValueError(f"{field.name}={value!r}: text is needed")
            elif value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or value < 0):
                raise ValueError(f"{field.name}={value!r}: a number of at least 0 is needed")
        if (self.hour is None) == (self.buy is None):
            raise ValueError("either hour= (rented) or buy= (bought) is needed, not both")
        if self.years <= 0 or not 0 < self.use <= 1:
            raise ValueError(f"years={self.years!r}, use={self.use!r}: more than 0 years, and a share in (0, 1], are needed")

    def figure(self) -> Figure:
        """Dollars an hour of work: the rent, or buy / (years × 8760 × use) + watts / 1000 × kwh."""
        if self.hour is not None:
            return Figure(self.hour, self.source, f"{self.date}: {self.note}")
        if self.buy is None:
            raise AssertionError("__post_init__ lets no such row through")
        worn = self.buy / (self.years * HOURS_A_YEAR * self.use)
        power = self.watts / 1000 * self.kwh
        how = f"${self.buy:,.0f} over {self.years:g} years at {self.use:.0%} use, {self.watts:g} W at ${self.kwh:g} a kWh"
        return Figure(worn + power, self.source, f"{self.date}: {how}; {self.note}")


def load(path: str | os.PathLike[str] | None = None) -> dict[str, Price]:
    """The table by machine's name: of `path`, else of the file that OFFLOAD_LAB_PRICES names, else the one that came along.

    Raises OSError where the file cannot be read, ValueError naming file, machine and field where it is not such a table.
    """
    named = path if path is not None else os.environ.get(VARIABLE)
    where = Path(__file__).with_name("prices.toml") if named is None else Path(named)
    text = where.read_bytes()
    try:
        given = tomllib.loads(text.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{where}: no TOML: {error}") from error
    rows, date = given.get("machines"), given.get("date")
    if not isinstance(rows, dict) or not isinstance(date, str):
        raise ValueError(f'{where}: date = "2026-05" and tables [machines.NAME] are needed')
    return {name: _row(where, name, row, date) for name, row in rows.items()}


def _row(where: Path, name: str, row: Any, date: str) -> Price:
    try:
        return Price(**{"date": date, "source": "assumed", "note": "", **row})
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: [machines.{name}]: {error}") from error


def of(machine: str, table: Mapping[str, Price] | None = None) -> Figure | None:
    """Dollars an hour of `machine`; None where the table has no such row."""
    row = (load() if table is None else table).get(machine)
    return None if row is None else row.figure()
