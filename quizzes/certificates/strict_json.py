"""JSON as RFC 8259 has it and no wider, and its canonical form (RFC 8785). Pure.

Python's own reader takes NaN, infinities and the last of two equal keys, and runs out of stack on deep nesting; two readers
that disagree about a file are how a signed file comes to say two things.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import rfc8785

DEEPEST = 32


class MalformedJsonError(ValueError):
    """The bytes are not strict JSON, or a value has no canonical form; the message is a sentence without an end stop."""


def loads(data: bytes, number: Callable[[str], Any] = float) -> Any:
    """The value that `data`, UTF-8 text, stands for. Numbers with a fraction or exponent become `number(text)`.

    Raises MalformedJsonError for text that is not UTF-8 or not JSON, equal keys in one object, NaN and infinities, numbers that
    `number` cannot hold, and nesting deeper than `DEEPEST`.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MalformedJsonError(f"it is not UTF-8 text: byte {error.start + 1} does not fit") from None
    _check_depth(text)

    def finite(literal: str) -> Any:
        try:
            value = number(literal)
            whole = value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)
        except ArithmeticError:
            whole = False
        if not whole:
            raise MalformedJsonError(f"the number {literal[:40]} is too large")
        return value

    try:
        return json.loads(text, object_pairs_hook=_object, parse_float=finite, parse_constant=_no_constant)
    except MalformedJsonError:
        raise
    except json.JSONDecodeError as error:
        raise MalformedJsonError(f"it is not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except ValueError as error:  # an integer of thousands of digits
        raise MalformedJsonError(f"it holds a number that cannot be read ({error})") from None


def canonical(value: Any) -> bytes:
    """The canonical bytes (RFC 8785) of a JSON value.

    Raises MalformedJsonError where there are none: lone surrogates, integers beyond 2**53, NaN.
    """
    try:
        return rfc8785.dumps(value)
    except ValueError as error:  # rfc8785's own errors and, from sorting keys, UnicodeEncodeError
        raise MalformedJsonError(f"it has no canonical form ({error})") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise MalformedJsonError(f"the key {key[:40]!a} stands twice in one object")
        result[key] = value
    return result


def _no_constant(literal: str) -> Any:
    raise MalformedJsonError(f"{literal} is not a JSON number")


def _check_depth(text: str) -> None:
    depth = 0
    inside_string = escaped = False
    for symbol in text:
        if inside_string:
            if escaped:
                escaped = False
            elif symbol == "\\":
                escaped = True
            elif symbol == '"':
                inside_string = False
        elif symbol == '"':
            inside_string = True
        elif symbol in "[{":
            depth += 1
            if depth > DEEPEST:
                raise MalformedJsonError(f"its values are nested deeper than {DEEPEST} levels")
        elif symbol in "]}":
            depth -= 1
