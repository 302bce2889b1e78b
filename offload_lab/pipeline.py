"""Runs a schedule for real: a few threads a lane, started for one step and gone when it is done.

Threads live only as long as a `Run`: after it there is nothing to fork into a DataLoader worker, nothing to stop on close,
and nothing that an interrupted cell can leave behind.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from offload_lab.schedule import Task
from offload_lab.trace import Event, Recorder

Piece = Callable[[], None]
Result = TypeVar("Result")


class _Aborted(BaseException):
    """Another lane failed; this one ends quietly. Not an Exception, so that no handler takes it for a failure of its own."""


class _Board:
    """Which tasks have ended, and the first error."""

    def __init__(self, tasks: Sequence[Task], recorder: Recorder, ended: Callable[[Task], None]) -> None:
        self._changed = threading.Condition()
        self._tasks = tasks
        self._ended = ended
        self._done: set[int] = set()
        self._open_pieces: dict[int, int] = {}
        self._started: dict[int, float] = {}
        self._recorder = recorder
        self._touched: set[int] = set()  # partitions with a task begun that works on their state
        self._kept: frozenset[int] | None = None
        self.error: BaseException | None = None

    def may_begin(self, task: Task) -> bool:
        """Wait until all that `task` waits for has ended. False where the run was cut before this task's partition began."""
        with self._changed:
            self._changed.wait_for(lambda: self.error is not None or self._is_cut_off(task) or self._is_free(task))
            if self.error is not None:
                raise _Aborted
            if self._is_cut_off(task):
                return False
            if task.kind != "gradient":
                self._touched.add(task.partition)
            return True

    def _is_free(self, task: Task) -> bool:
        """Whether all that `task` waits for has ended. What was cut off never ends: it only passes on what it waited for."""
        if self._done.issuperset(task.after):
            return True
        waiting = (self._tasks[number] for number in task.after if number not in self._done)
        return self._kept is not None and all(self._is_cut_off(other) and self._is_free(other) for other in waiting)

    def _is_cut_off(self, task: Task) -> bool:
        return self._kept is not None and task.partition not in self._kept

    def cut(self) -> frozenset[int]:
        with self._changed:
            self._kept = frozenset(self._touched)
            self._changed.notify_all()
            return self._kept

    def begin(self, task: Task, pieces: int) -> None:
        with self._changed:
            self._open_pieces[task.number] = pieces
            self._started[task.number] = time.perf_counter()
        if pieces == 0:
            self._end(task)

    def piece_done(self, task: Task) -> None:
        with self._changed:
            self._open_pieces[task.number] -= 1
            if self._open_pieces[task.number]:
                return
        self._end(task)

    def _end(self, task: Task) -> None:
        start = self._started.pop(task.number)
        self._recorder.add(Event(task.kind, task.lane, task.partition, start, time.perf_counter(), task.nbytes))
        self._ended(task)  # outside the lock: it may take another
        with self._changed:
            self._done.add(task.number)
            self._changed.notify_all()

    def fail(self, error: BaseException) -> None:
        with self._changed:
            if self.error is None:
                self.error = error
            self._changed.notify_all()


class _Lane:
    """The pieces of one lane's tasks, in order, handed to whichever of its threads is free."""

    def __init__(self, tasks: Sequence[Task], split: Callable[[Task], Sequence[Piece]], board: _Board) -> None:
        self._pieces = self._in_order(tasks, split, board)
        self._lock = threading.Lock()
        self._board = board

    @staticmethod
    def _in_order(tasks, split, board) -> Iterator[tuple[Task, Piece]]:
        for task in tasks:
            if not board.may_begin(task):
                continue
            pieces = split(task)
            board.begin(task, len(pieces))
            for piece in pieces:
                yield task, piece

    def work(self) -> None:
        try:
            while True:
                with self._lock:  # held while waiting for `after`: the lane's other threads have nothing to do either
                    taken = next(self._pieces, None)
                if taken is None or self._board.error is not None:
                    return
                task, piece = taken
                piece()
                self._board.piece_done(task)
        except _Aborted:
            return
        except BaseException as error:  # carried to the caller of `run`, which raises it
            self._board.fail(error)


class _SmallStacks:
    """Threads that are started within get a stack of 1 MiB: a lane needs no more, and ten of 8 MiB count against a limit on
    the process's data (RLIMIT_DATA) as if they were used. The setting is the process's, so it is put back at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._before = 0

    def __enter__(self) -> None:
        self._lock.acquire()
        self._before = threading.stack_size(1 << 20)

    def __exit__(self, *exception: object) -> None:
        threading.stack_size(self._before)
        self._lock.release()


_small_stacks = _SmallStacks()


class Run:
    """`tasks` on their way, each lane on `widths[lane]` threads of its own; `join()` ends it.

    `split(task)` is called when the task may start and gives its pieces, which run in any order on the lane's threads.
    `ended(task)` is called in a lane's thread when all pieces are done, before anything that waits for the task goes on.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        split: Callable[[Task], Sequence[Piece]],
        widths: Mapping[str, int],
        recorder: Recorder,
        ended: Callable[[Task], None] = lambda task: None,
    ) -> None:
        self._board = _Board(tasks, recorder, ended)
        names = dict.fromkeys(task.lane for task in tasks)
        lanes = {name: _Lane([task for task in tasks if task.lane == name], split, self._board) for name in names}
        self._workers = [(name, lane) for name, lane in lanes.items() for _ in range(widths[name])]
        self._threads: list[threading.Thread] = []

    def start(self) -> Run:
        """Start the threads. Where the system has none to give, `join()` raises that."""
        for name, lane in self._workers:
            thread = threading.Thread(target=lane.work, name=f"offload {name}", daemon=True)
            try:
                with _small_stacks:
                    thread.start()
            except RuntimeError as error:  # no thread to be had: the ones that run must end before anybody reads the state
                self._board.fail(error)
                break
            self._threads.append(thread)
        return self

    def stop(self, error: BaseException) -> None:
        """Let no further piece begin; `join()` then raises `error`, if nothing failed before."""
        self._board.fail(error)

    def cut(self) -> frozenset[int]:
        """Begin no partition that has not been begun; the tasks of those that have go on. Returns which these are.

        Asks of the schedule that a partition's tasks wait for no partition later in the list.
        """
        return self._board.cut()

    def join(self) -> None:
        """Return when all tasks have ended and all threads are gone. Raises the first error of any of them."""
        for thread in self._threads:
            thread.join()
        if self._board.error is not None:
            raise self._board.error

    def here(self) -> None:
        """All of it: in this thread where one is enough, else as `start` and `join`."""
        if len(self._workers) == 1:
            self._workers[0][1].work()
            self.join()
        else:
            self.start().join()


def uninterrupted(work: Callable[[], Result]) -> Result:
    """Call `work` and return its result; a Ctrl-C that arrives meanwhile is delivered right after it.

    This is what makes an interrupted step a whole step. Waiting in a `try` around another thread does not: an interrupt
    can always fall between two of its lines.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()  # Python runs signal handlers in the main thread only
    previous = signal.getsignal(signal.SIGINT)
    if previous is None:  # installed by other than Python code, so that it could not be put back
        return work()
    arrived: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: arrived.append(number))
    try:
        result = work()
    finally:
        signal.signal(signal.SIGINT, previous)
        if arrived:
            signal.raise_signal(signal.SIGINT)
    return result
