"""Bit patterns inside compiled loops: float32 <-> uint32 without a conversion, and arrays at a raw address.

numba has no bit cast for scalars that its vectoriser understands; these three-line intrinsics become a single LLVM
instruction, which is what lets the update run at memory bandwidth (a shift through a NumPy view took five times as long).
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


@intrinsic
def float_of_bits(typingctx, bits):
    """The float32 whose bit pattern is the uint32 `bits`."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.uint32), codegen


@intrinsic
def bits_of_float(typingctx, value):
    """The bit pattern of the float32 `value`, as a uint32."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.IntType(32))

    return types.uint32(types.float32), codegen


@intrinsic
def half_of_float(typingctx, value):
    """The float32 `value` rounded to float16 (to nearest, ties to even), as the uint16 of its bit pattern."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(builder.fptrunc(args[0], ir.HalfType()), ir.IntType(16))

    return types.uint16(types.float32), codegen


@intrinsic
def float_of_half(typingctx, value):
    """The float32 equal to the float16 whose bit pattern is the uint16 `value`; a float32 is returned as it is."""
    if value == types.float32:
        return types.float32(types.float32), _unchanged

    def codegen(context, builder, signature, args):
        return builder.fpext(builder.bitcast(args[0], ir.HalfType()), ir.FloatType())

    return types.float32(types.uint16), codegen


@intrinsic
def float_of_bfloat16(typingctx, value):
    """The float32 equal to the bfloat16 whose bit pattern is the uint16 `value`; a float32 is returned as it is."""
    if value == types.float32:
        return types.float32(types.float32), _unchanged

    def codegen(context, builder, signature, args):
        word = builder.zext(args[0], ir.IntType(32))
        return builder.bitcast(builder.shl(word, ir.Constant(ir.IntType(32), 16)), ir.FloatType())

    return types.float32(types.uint16), codegen


def _unchanged(context, builder, signature, args):
    return args[0]


def _pointer_to(element):
    @intrinsic
    def pointer(typingctx, address):
        def codegen(context, builder, signature, args):
            return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

        return types.CPointer(element)(types.int64), codegen

    return pointer


float_pointer = _pointer_to(types.float32)
uint16_pointer = _pointer_to(types.uint16)
uint8_pointer = _pointer_to(types.uint8)
int32_pointer = _pointer_to(types.int32)
int64_pointer = _pointer_to(types.int64)
