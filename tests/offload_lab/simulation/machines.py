"""Machines and steps of every kind, for the tests of this folder."""

from hypothesis import strategies as st

from offload_lab.caching import Cache
from offload_lab.hardware import Figure, Hardware
from offload_lab.schedule import Item, step
from offload_lab.work import TaskList, Work


def figure(value):
    return Figure(value, "assumed", "made up for a test")


def machine(read=1.0, write=1.0, dram=1.0, mixed=None, duplex="half", **others):
    """One with a disk of `read`, `write` and `mixed` bytes a second and memory of `dram`."""
    return Hardware(
        "of a test",
        figure(1e12),
        figure(dram),
        disk_read=figure(read),
        disk_write=figure(write),
        disk_mixed=None if mixed is None else figure(mixed),
        disk_duplex=duplex,
        **others,
    )


speeds = st.floats(0.1, 10)
figures = st.fixed_dictionaries({"read": speeds, "write": speeds, "dram": speeds})
duplexes = st.sampled_from(["half", "full"])


@st.composite
def works(draw, least=1, **given):
    """A step's work: partitions that stay in RAM and others, some to be read, all with something to write."""
    rows = draw(
        st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9), st.integers(0, 9), st.booleans()), min_size=least, max_size=9)
    )
    items = tuple(
        Item(number, 0 if resident else read, written, resident, moved)
        for number, (read, written, moved, resident) in enumerate(rows)
    )
    return Work(items, draw(st.integers(1, 5)), **given)


@st.composite
def task_lists(draw):
    """The engine's own schedule of some work, or tasks in any lanes that wait for any earlier ones."""
    if draw(st.booleans()):
        work = draw(works())
        return step(work.items, Cache(work.buffers, work.buffers), gradients=draw(st.booleans()))
    tasks = TaskList()
    kinds = {"read": "disk-read", "write": "disk-write", "update": "cpu", "gradient": "backward"}
    for number in range(draw(st.integers(0, 14))):
        kind = draw(st.sampled_from(sorted(kinds)))
        after = draw(st.sets(st.integers(0, number - 1), max_size=3)) if number else ()
        nbytes = 0 if kind == "gradient" else draw(st.integers(0, 9))
        tasks.put(kind, kinds[kind], number, nbytes, sorted(after))
    return tasks
