"""Thousands of tensors looked at, copied and counted by one compiled loop, through the C interface of torch itself.

A tensor's handle is the address of an `at::Tensor`. Most of the interface is the stable one that compiled models use
(`aoti_torch_*`: no call throws, each returns 0 or an error code). Four functions are C++: that a tensor is negated, its
gradient, its version, and counting that up. They are asked for by the names they have in the editions of torch that `walk.py`
knows; there they throw only for a tensor without a version counter, which `walk.py` keeps out.

No loop here gives up Python's lock (`nogil`): while it runs no other thread of Python can take a gradient away.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import torch
from numba import carray, njit, types

from offload_lab.bits import int32_pointer, int64_pointer, uint8_pointer, uint16_pointer

_LIBRARIES = [
    ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / name)) for name in ("libtorch_cpu.so", "libtorch.so", "libc10.so")
]


def _address(name: str) -> int:
    for library in _LIBRARIES:
        if hasattr(library, name):
            return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
    raise OSError(f"this torch has no {name}")


def _function(name: str, returns: types.Type, arguments: int) -> types.ExternalFunction:
    llvm.add_symbol(name, _address(name))
    return types.ExternalFunction(name, returns(*[types.int64] * arguments))


_get_dtype = _function("aoti_torch_get_dtype", types.int32, 2)
_get_device_type = _function("aoti_torch_get_device_type", types.int32, 2)
_get_layout = _function("aoti_torch_get_layout", types.int32, 2)
_get_numel = _function("aoti_torch_get_numel", types.int32, 2)
_get_data_ptr = _function("aoti_torch_get_data_ptr", types.int32, 2)
_is_contiguous = _function("aoti_torch_is_contiguous", types.int32, 2)
_is_neg = _function("_ZN2at6native6is_negERKNS_6TensorE", types.uint8, 1)
_version = _function("_ZNK2at10TensorBase8_versionEv", types.int64, 1)
_grad = _function("_ZNK3c1010TensorImpl4gradEv", types.int64, 1)
_bump_version = _function("_ZN5torch8autograd4impl12bump_versionERKN2at6TensorE", types.void, 1)

CPU = STRIDED = 0  # as torch numbers devices and layouts
_inner = njit(nogil=False, error_model="numpy")


def _kept(function: Callable[..., Any]) -> Callable[..., Any]:
    try:
        return njit(nogil=False, error_model="numpy", cache=True)(function)
    except RuntimeError:  # numba's way to say that no folder for its cache can be written
        return _inner(function)


@_inner
def _plain(handle, dtype, numel, strided, at):
    """The address of the first element where the tensor is of this dtype and size, contiguous in host memory; else 0.

    `strided`: it is known to be. `at` is where calls write their answers, of 1, 4 or 8 bytes: each is read in its own size,
    because to read more than was just written has to wait until it is in the cache."""
    flag, number, large = (
        carray(uint8_pointer(at), (1,)),
        carray(int32_pointer(at), (1,)),
        carray(int64_pointer(at), (1,)),
    )
    if _get_device_type(handle, at) != 0 or number[0] != CPU:
        return 0
    if not strided and (_get_layout(handle, at) != 0 or number[0] != STRIDED):
        return 0
    if _get_dtype(handle, at) != 0 or number[0] != dtype:
        return 0
    if _get_numel(handle, at) != 0 or large[0] != numel:
        return 0
    if _is_contiguous(handle, at) != 0 or flag[0] == 0:
        return 0
    if _get_data_ptr(handle, at) != 0:
        return 0
    return large[0]


@_inner
def _copy(source, target, nbytes):
    read, written = carray(uint16_pointer(source), (nbytes // 2,)), carray(uint16_pointer(target), (nbytes // 2,))
    for i in range(read.shape[0]):
        written[i] = read[i]


@_inner
def _clear(target, nbytes):
    written = carray(uint16_pointer(target), (nbytes // 2,))
    for i in range(written.shape[0]):
        written[i] = 0


# Columns of the table (int64), a row a tensor: its handle, the address of what the handle leads to, elements, torch's number of
# the dtype, bytes an element, the same two of its gradient, and where in the packed arrays its weight and its gradient go.
HANDLE, BEHIND, NUMEL, DTYPE, SIZE, GRADIENT_DTYPE, GRADIENT_SIZE, WEIGHT_AT, GRADIENT_AT = range(9)
COLUMNS = 9


@_kept
def read(table, weights, versions, gradients, undefined, at):
    """Fill in each tensor's address and version, and where its gradient now is (0: it has none), and copy both to their places.
    Returns whether all are as the table says; if not, what was filled in means nothing. `undefined`: what the
    handle of a gradient leads to where there is none; `at`: the address of an int64 to use."""
    for i in range(table.shape[0]):
        handle, numel = table[i, HANDLE], table[i, NUMEL]
        behind = carray(int64_pointer(handle), (1,))[0]
        if behind != table[i, BEHIND]:
            return False
        weight = _plain(handle, table[i, DTYPE], numel, True, at)  # what is behind it never changes its layout
        if weight == 0:
            return False
        gradient, target = _grad(behind), table[i, GRADIENT_AT]
        nbytes = numel * table[i, GRADIENT_SIZE]
        if carray(int64_pointer(gradient), (1,))[0] == undefined:
            gradients[i] = 0
            _clear(target, nbytes)
        else:
            source = _plain(gradient, table[i, GRADIENT_DTYPE], numel, False, at)
            if source == 0 or _is_neg(gradient):
                return False
            gradients[i] = target
            _copy(source, target, nbytes)
        weights[i], versions[i] = weight, _version(handle)
        _copy(weight, table[i, WEIGHT_AT], numel * table[i, SIZE])
    return True


@_kept
def undefined(behind):
    """What the handle of the gradient leads to, for a tensor that has none: one thing, the same for all of them."""
    return carray(int64_pointer(_grad(behind)), (1,))[0]


@_kept
def bump(table, present, versions, look):
    """Count up the versions of those that are `present`. Then fill in the versions of all: where not told to `look`, one more
    than was read. Returns whether each was: not where some share a counter."""
    for i in range(table.shape[0]):
        if present[i]:
            _bump_version(table[i, HANDLE])
    apart = True
    for i in range(table.shape[0]):
        expected = versions[i] + present[i]
        versions[i] = _version(table[i, HANDLE]) if look else expected
        apart &= versions[i] == expected
    return apart


@_kept
def write(table, present, weights):
    """Carry the packed weights of those that are `present` back to where they came from."""
    for i in range(table.shape[0]):
        if present[i]:
            _copy(table[i, WEIGHT_AT], weights[i], table[i, NUMEL] * table[i, SIZE])
