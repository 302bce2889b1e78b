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

from quizzes.say import _

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
        raise MalformedJsonError(_("it is not UTF-8 text: byte {start} does not fit").format(start=error.start + 1)) from None
    _check_depth(text)

    def finite(literal: str) -> Any:
        try:
            value = number(literal)
            whole = value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)
        except ArithmeticError:
            whole = False
        if not whole:
            raise MalformedJsonError(_("the number {literal} is too large").format(literal=literal[:40]))
        return value

    try:
        return json.loads(text, object_pairs_hook=_object, parse_float=finite, parse_constant=_no_constant)
    except MalformedJsonError:
        raise
    except json.JSONDecodeError as error:
        raise MalformedJsonError(
            _("it is not JSON: {msg} at line {lineno}, column {colno}").format(
                msg=error.msg, lineno=error.lineno, colno=error.colno
            )
        ) from None
    except ValueError as error:  # an integer of thousands of digits
        raise MalformedJsonError(_("it holds a number that cannot be read ({error})").format(error=error)) from None


def canonical(value: Any) -> bytes:
    """The canonical bytes (RFC 8785) of a JSON value.

    Raises MalformedJsonError where there are none: lone surrogates, integers beyond 2**53, NaN.
    """
    try:
        return rfc8785.dumps(value)
    except ValueError as error:  # rfc8785's own errors and, from sorting keys, UnicodeEncodeError
        raise MalformedJsonError(_("it has no canonical form ({error})").format(error=error)) from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise MalformedJsonError(_("the key {key!a} stands twice in one object").format(key=key[:40]))
        result[key] = value
    return result


def _no_constant(literal: str) -> Any:
    raise MalformedJsonError(_("{literal} is not a JSON number").format(literal=literal))


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
                raise MalformedJsonError(_("its values are nested deeper than {deepest} levels").format(deepest=DEEPEST))
        elif symbol in "]}":
            depth -= 1
