"""The pipeline by itself: what is cut off, and what goes on."""

import threading
import time

from offload_lab.pipeline import Run
from offload_lab.schedule import Task
from offload_lab.trace import Recorder


def test_what_is_cut_off_passes_on_what_it_waited_for_and_nothing_more():
    """Partition 3 takes the slab of partition 0, which was cut off before it was begun; partition -1 still has it."""
    began, order = threading.Event(), []
    sent, gradient = threading.Event(), threading.Event()

    def piece(task):
        def run():
            if task.number == 0:
                began.set()
                assert sent.wait(30)
            if task.kind == "gradient":
                assert gradient.wait(30)
            order.append(task.number)

        return [run]

    tasks = [
        Task(0, "send", "host-to-device", -1, 1, (), None, 0),
        Task(1, "gradient", "backward", 0, 0, (), None),
        Task(2, "fetch", "device-to-host", 0, 1, (0, 1), None, 0),
        Task(3, "send", "host-to-device", 0, 1, (2,), None, 0),
        Task(4, "read", "disk-read", 3, 1, (), 0),
        Task(5, "fetch", "device-to-host", 3, 1, (3,), None, 0),
    ]
    widths = dict.fromkeys((task.lane for task in tasks), 1)
    run = Run(tasks, piece, widths, Recorder()).start()
    assert began.wait(30)
    while 4 not in order:
        time.sleep(0.001)
    assert run.cut() == {-1, 3}
    time.sleep(0.02)
    assert 5 not in order, "the slab is still being sent from"
    sent.set()
    gradient.set()
    run.join()
    assert order.index(5) > order.index(0) and not {2, 3} & set(order)
