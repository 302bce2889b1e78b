"""Which update loops run: those compiled by numba where it is to be had, else torch's own operations. Same bits from both."""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from offload_lab import update as told
from offload_lab.partition import Kind, cut
from offload_lab.pipeline import uninterrupted

Choice = Literal["auto", "numba", "torch"]
_log = logging.getLogger("offload_lab")


@dataclass(frozen=True)
class Kernel:
    """`update` and `not_finite` as `compiled.py` has them, and `name`, which says what they are and why."""

    name: str
    update: Callable[..., None]
    not_finite: Callable[[np.ndarray, np.ndarray, int, int], None]
    compiles: bool = False
    cached: bool = False

    def prepare(self, kind: Kind) -> None:
        """Make ready for partitions of `kind`, so that no step waits for a compiler. Compiles at most once a process, and
        with a cache once a machine; says so on stderr when it really does. Ctrl-C during it takes effect after it."""
        if self.compiles:
            # The compiler's clean-up runs Python code whose exceptions nobody gets: a Ctrl-C that arrived there would be lost,
            # and one elsewhere in it leaves the compiler of no use to this process.
            uninterrupted(lambda: _prepare(self, kind))


class KernelMissing(RuntimeError):
    """The kernel that a policy asks for cannot run here."""


def choose(choice: Choice) -> Kernel:
    """The kernel for `OffloadPolicy(kernel=choice)`. Raises KernelMissing where "numba" is asked for and cannot run."""
    if choice == "torch":
        return _tiled('kernel="torch"')
    try:
        return uninterrupted(_compiled)  # an import, too, can lose a Ctrl-C, or leave half a module behind
    except KernelMissing as error:
        if choice == "numba":
            raise KernelMissing(
                f'OffloadPolicy(kernel="numba"): {error}. Install numba (pip install numba), or use kernel="auto".'
            ) from error
        return _tiled(str(error))


@functools.cache
def _compiled() -> Kernel:
    try:
        numba = importlib.import_module("numba")
        if numba.config.DISABLE_JIT:
            raise KernelMissing("NUMBA_DISABLE_JIT is set")
        loops = importlib.import_module("offload_lab.compiled")
    except ModuleNotFoundError as error:
        raise KernelMissing(f"{error.name} is not installed") from error
    except (ImportError, OSError) as error:  # installed, but for another NumPy, or with a library that does not load
        raise KernelMissing(f"numba cannot be imported: {error}") from error
    kept = "cached" if loops.CACHED else "in memory: no folder for a cache can be written"
    return Kernel(f"numba {numba.__version__} (compiled, {kept})", loops.update, loops.not_finite, True, loops.CACHED)


@functools.cache
def _tiled(why: str) -> Kernel:
    loops = importlib.import_module("offload_lab.tiled")
    return Kernel(f"torch {loops.torch.__version__} ({why})", loops.update, loops.not_finite)


@functools.cache
def _prepare(kernel: Kernel, kind: Kind) -> None:
    part = cut([(0, 1, kind)], 1)[0]
    arrays = told.fields(part, np.zeros(part.record_bytes(True), np.uint8), True)
    values = np.zeros((0, told.SCALAR_FIELDS), np.float32)

    def compile_all() -> None:  # no rows: nothing is done but compiling
        kernel.update(np.zeros((0, told.ROW_FIELDS), np.int64), values, *arrays, 0, 0)
        kernel.not_finite(np.zeros((0, 4), np.int64), np.zeros(0, np.bool_), 0, 1)

    with announced(f"the update loop for {kind.dtype} weights", kernel.cached):
        for _ in range(2):  # two functions, and each may meet a cache that refuses
            try:
                compile_all()
            except OSError as error:  # the loop is compiled, and usable, before numba writes it down
                _log.warning("the compiled update loops could not be kept for the next start: %s", error)
        compile_all()


@contextlib.contextmanager
def announced(described: str, cached: bool) -> Iterator[None]:
    """Say in one line that the compiler runs, when it starts and if it does. A hit in the cache is silent."""
    from numba.core import event

    class First(event.Listener):
        said = False

        def on_start(self, event: Any) -> None:
            if not self.said:
                self.said = True
                once = "on this machine" if cached else "in each process (no folder for a cache can be written)"
                _log.warning(f"offload_lab: compiling {described}, about 2 s, once {once} …")

        def on_end(self, event: Any) -> None:
            pass  # numba wants both

    with event.install_listener("numba:compile", First()):
        yield
