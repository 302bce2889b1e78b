"""A small arithmetic for the values of the bank: `parameters * 10 / seconds`, exactly, and nothing else. Pure.

Numbers, names, strings as arguments, + - * / // % **, and the functions of `FUNCTIONS`, which are the planner's own.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from offload_lab.partition import STATE_BYTES
from offload_lab.state_bytes import ELEMENT_BYTES, training_bytes
from quizzes.say import _

_LONGEST = 500  # characters; an author's formula is a line
_LARGEST_POWER = 64


class FormulaError(ValueError):
    """A formula that can't be read or computed; the message says where."""


def _whole(value: Any, name: str) -> int:
    if not isinstance(value, Fraction) or value.denominator != 1:
        raise FormulaError(_("{name} wants a whole number, not {value}").format(name=name, value=value))
    return int(value)


def _dtype(value: Any) -> str:
    if value not in ELEMENT_BYTES:
        raise FormulaError(_("dtype {value!r}: one of {names} is needed").format(value=value, names=", ".join(ELEMENT_BYTES)))
    return str(value)


def _weights(parameters: Any, dtype: Any) -> int:
    return ELEMENT_BYTES[_dtype(dtype)] * _whole(parameters, "weights")


def _state(parameters: Any, dtype: Any) -> int:
    return STATE_BYTES[_dtype(dtype)] * _whole(parameters, "state")


def _planned(parameters: Any, dtype: Any, optimizer: Any) -> Any:
    try:
        return training_bytes(_whole(parameters, "parameters"), _dtype(dtype), optimizer)
    except ValueError as error:
        raise FormulaError(str(error)) from None


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "weights": _weights,
    "gradients": _weights,
    "moments": lambda parameters, dtype: 8 * _whole(parameters, "moments"),
    "state": _state,
    "steady": lambda n, dtype, optimizer: _planned(n, dtype, optimizer).steady_bytes,
    "peak": lambda n, dtype, optimizer: _planned(n, dtype, optimizer).peak_bytes,
    "disk": lambda n, dtype, optimizer: _planned(n, dtype, optimizer).disk_bytes,
    "min": lambda *values: min(values),
    "max": lambda *values: max(values),
    "ceil": lambda value: math.ceil(value),
    "floor": lambda value: math.floor(value),
}
"""steady, peak and disk are `offload_lab.state_bytes.training_bytes(parameters, dtype, optimizer)`, in bytes."""


def exact(value: Any) -> Fraction:
    """The number that an author wrote: 0.1 is a tenth, not the double beside it. Raises FormulaError."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str, Fraction)):
        raise FormulaError(_("{text!r} is not a number").format(text=value))
    try:
        return Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        raise FormulaError(_("{text!r} is not a number").format(text=value)) from None


def evaluate(text: str, names: Mapping[str, Any]) -> Fraction:
    """The value of a formula, where `names` are numbers or strings. Raises FormulaError and nothing else."""
    if len(text) > _LONGEST:
        raise FormulaError(_("the formula has {count} characters; {most} are enough").format(count=len(text), most=_LONGEST))
    try:
        value = _value(_tree(text).body, names)
    except (SyntaxError, ValueError) as error:
        if isinstance(error, FormulaError):
            raise
        raise FormulaError(_("{text!r} is not a formula: {error}").format(text=text, error=error)) from None
    except ZeroDivisionError:
        raise FormulaError(_("{text!r} divides by zero").format(text=text)) from None
    except TypeError:
        raise FormulaError(_("{text!r}: a function has the wrong number or kind of arguments").format(text=text)) from None
    except (RecursionError, MemoryError):
        raise FormulaError(_("the formula is nested too deeply")) from None
    if not isinstance(value, Fraction):
        raise FormulaError(_("{text!r} gives text, not a number").format(text=text))
    return value


@lru_cache(maxsize=4096)
def _tree(text: str) -> ast.Expression:
    """Read only: a bank has a few formulas, which are evaluated for each learner."""
    return ast.parse(text.strip(), mode="eval")


@lru_cache(maxsize=4096)
def names_in(text: str) -> frozenset[str]:
    """The names that a formula wants, functions left out. Raises FormulaError."""
    try:
        tree = _tree(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise FormulaError(_("{text!r} is not a formula: {error}").format(text=text, error=error)) from None
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in called)


def operations(text: str) -> int:
    """How many steps of arithmetic a formula takes."""
    return sum(isinstance(node, (ast.BinOp, ast.Call)) for node in ast.walk(_tree(text)))


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=str() as word):
            return word
        case ast.Constant(value=number):
            return exact(number)
        case ast.Name(id=name):
            if name not in names:
                there = ", ".join(sorted(names)) or _("no names")
                raise FormulaError(_("{name!r} is not given; there are {there}").format(name=name, there=there))
            held = names[name]
            if isinstance(held, str):
                try:
                    return exact(held)
                except FormulaError:
                    return held
            return exact(held)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_number(operand, names)
        case ast.BinOp(left=left, op=op, right=right):
            return _combine(op, _number(left, names), _number(right, names))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            if name not in FUNCTIONS:
                raise FormulaError(
                    _("there is no function {name!r}; there are {names}").format(name=name, names=", ".join(FUNCTIONS))
                )
            return Fraction(FUNCTIONS[name](*(_value(arg, names) for arg in args)))
    raise FormulaError(
        _("{text!r}: only numbers, names, + - * / // % ** and the planner's functions are known").format(text=ast.unparse(node))
    )


def _number(node: ast.expr, names: Mapping[str, Any]) -> Fraction:
    value = _value(node, names)
    if not isinstance(value, Fraction):
        raise FormulaError(_("{text!r} is text where a number is needed").format(text=ast.unparse(node)))
    return value


def _combine(op: ast.operator, left: Fraction, right: Fraction) -> Fraction:
    match op:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.Div():
            return left / right
        case ast.FloorDiv():
            return Fraction(left // right)
        case ast.Mod():
            return left % right
        case ast.Pow() if right.denominator == 1 and abs(right) <= _LARGEST_POWER:
            return left ** int(right)
    raise FormulaError(_("only + - * / // % and ** with a whole power up to 64 are known"))
