"""What learners hand in for the exercises on partitions, caches and schedules: right ones, other right ones, and wrong ones by
the idea behind them. Each is the text of a cell."""

_ADAMW = """
import struct
from math import sqrt

def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]

def bf16(x):
    (bits,) = struct.unpack("I", struct.pack("f", x))
    return {ROUND}

def adamw_partition(master, gradients, m, v, step, lr, beta1, beta2, eps, decay):
    out = [[], [], [], []]
    for w, g, a, b in zip(master, gradients, m, v):
        {START}
        {DECAY}
        a = beta1 * a + (1 - beta1) * g
        b = beta2 * b + (1 - beta2) * g * g
        c1, c2 = {CORRECTIONS}
        w -= lr * (a / c1) / ({ROOT})
        for part, value in zip(out, (bf16(w), f32(w), f32(a), f32(b))):
            part.append(value)
    return out
"""
_PARTS = {
    "ROUND": "(bits + 0x7FFF + (bits >> 16 & 1)) >> 16",
    "START": "pass",
    "DECAY": "w -= lr * decay * w",
    "CORRECTIONS": "1 - beta1 ** step, 1 - beta2 ** step",
    "ROOT": "sqrt(b / c2) + eps",
}


def _adamw(**changed):
    text = _ADAMW
    for name, value in (_PARTS | changed).items():
        text = text.replace("{" + name + "}", value)
    return text


ADAMW_OTHER = '''
from array import array

def adamw_partition(master, gradients, m, v, step, lr, beta1, beta2, eps, decay):
    """Rounds to float32 after every operation, as a kernel in float32 does, and to bfloat16 by comparing neighbours."""
    one = lambda x: array("f", [x])[0]
    w = [one(x * one(1 - lr * decay)) for x in master]
    m = [one(one(beta1 * a) + one((1 - beta1) * g)) for a, g in zip(m, gradients)]
    v = [one(one(beta2 * b) + one((1 - beta2) * one(g * g))) for b, g in zip(v, gradients)]
    size, root = one(lr / (1 - beta1 ** step)), one((1 - beta2 ** step) ** 0.5)
    w = [one(x - one(size * one(a / one(one(one(b ** 0.5) / root) + eps)))) for x, a, b in zip(w, m, v)]
    bits = []
    for x in w:
        low = int.from_bytes(array("f", [x]).tobytes(), "little") >> 16
        value = lambda p: array("f", (p << 16).to_bytes(4, "little"))[0]
        below, above = abs(x - value(low)), abs(value(low + 1) - x)
        bits.append(low + (above < below or (above == below and low % 2)))
    return [bits, w, m, v]
'''

_MAP = """
def partition_map(elements, most, align):
    found, at = [], 0
    while {MORE}:
        stop = elements if elements - at <= most else at + {CHUNK}
        found.append([at, {STOP}])
        at = stop
    return found
"""


def _map(more="at < elements", chunk="most // align * align", stop="stop"):
    return _MAP.replace("{MORE}", more).replace("{CHUNK}", chunk).replace("{STOP}", stop)


MAP_OTHER = '''
def partition_map(elements, most, align):
    """From the end: the last one is as full as it may be, the others fill up in front of it."""
    cuts = [elements] if elements else []
    while cuts and cuts[0] > 0:
        if cuts[0] == elements:
            start = max(0, -(-(elements - most) // align) * align)
        else:
            start = max(0, cuts[0] - most // align * align)
        cuts.insert(0, start)
    return [list(pair) for pair in zip(cuts, cuts[1:])]
'''

_CACHE = """
def cache_reads(order, capacity):
    def count(victim):
        held, reads = [], 0
        for now, part in enumerate(order):
            if part in held:
                {HIT}
                continue
            reads += 1
            {ROOM}
            {KEEP}
        return {COUNT}
    def later(part, now):
        rest = order[now + 1:]
        return rest.index(part) if part in rest else {NEVER}
    lru = count(lambda held, now: held[{OLD}])
    return [lru, {BEST}]
"""


def _cache(**changed):
    parts = {
        "HIT": "held.remove(part); held.append(part)",
        "ROOM": "if len(held) >= capacity and held: held.remove(victim(held, now))",
        "KEEP": "if capacity: held.append(part)",
        "COUNT": "reads",
        "NEVER": "len(order)",
        "OLD": "0",
        "BEST": "count(lambda held, now: max(held, key=lambda part: later(part, now)))",
    } | changed
    text = _CACHE
    for name, value in parts.items():
        text = text.replace("{" + name + "}", value)
    return text


CACHE_OTHER = '''
from collections import OrderedDict

def cache_reads(order, capacity):
    """LRU by reuse distance; the best by trying every victim."""
    lru = 0
    for now, part in enumerate(order):
        before = [i for i in range(now) if order[i] == part]
        lru += not before or len(set(order[before[-1] + 1:now])) >= capacity
    states = {frozenset(): 0}
    for part in order:
        after = {}
        for held, reads in states.items():
            ways = [(held, reads)] if part in held else [(held | {part}, reads + 1)]
            if part not in held and len(held) >= capacity:
                ways = [((held - {out}) | {part}, reads + 1) for out in held] or [(held, reads + 1)]
            for way, cost in ways:
                after[way] = min(cost, after.get(way, cost))
        states = after
    return [lru, min(states.values())]
'''

_AHEAD = """
def read_ahead(reads, updates, writes, buffers):
    starts, disk, cpu, back, free = [], 0, 0, 0, [0] * {BUFFERS}
    for read, update, write in zip(reads, updates, writes):
        r = max(disk, {FREE})
        disk = r + read
        u = max(cpu, {THERE})
        cpu = u + update
        w = max(back, cpu)
        back = w + write
        free.append({DONE})
        {LAST}
        starts.append([r, u, w])
    return starts
"""


def _ahead(**changed):
    parts = {"BUFFERS": "buffers", "FREE": "free.pop(0)", "THERE": "disk", "DONE": "back", "LAST": "pass"} | changed
    text = _AHEAD
    for name, value in parts.items():
        text = text.replace("{" + name + "}", value)
    return text


AHEAD_OTHER = """
from functools import lru_cache

def read_ahead(reads, updates, writes, buffers):
    @lru_cache(None)
    def end(lane, i):
        return 0 if i < 0 else start(lane, i) + (reads, updates, writes)[lane][i]
    @lru_cache(None)
    def start(lane, i):
        return max(end(lane, i - 1), end(lane - 1, i) if lane else end(2, i - buffers))
    for i in range(len(reads)):
        end(2, i)  # in order, so that no call is deep
    return [[start(lane, i) for lane in range(3)] for i in range(len(reads))]
"""

RIGHT = {
    "adamw-partition": [_adamw(), ADAMW_OTHER],
    "partition-map": [_map(), MAP_OTHER],
    "cache-reads": [_cache(), CACHE_OTHER],
    "read-ahead": [_ahead(), AHEAD_OTHER],
}
WRONG = {
    "adamw-partition": {
        "bias-forgotten": _adamw(CORRECTIONS="1, 1"),
        "bf16-alone-learns": _adamw(START='w = struct.unpack("f", struct.pack("I", bf16(w) << 16))[0]'),
        "Cutting the low 16 bits off rounds to bfloat16.": _adamw(ROUND="bits >> 16"),
        "Weight decay is added to the gradient.": _adamw(DECAY="g += decay * w"),
        "eps stands under the root.": _adamw(ROOT="sqrt(b / c2 + eps)"),
    },
    "partition-map": {
        "direct-any-address": _map(chunk="most"),
        "What is left over at the end is no partition.": _map(more="elements - at >= most // align * align"),
        "The stop of a partition belongs to it.": _map(stop="stop - 1"),
        "The last partition is as long as the others.": _map(stop="at + most // align * align"),
    },
    "cache-reads": {
        "The first one that came is the one unused for longest.": _cache(HIT="pass"),
        "hits-nothing-ever": _cache(BEST="lru"),
        "What is never used again is kept.": _cache(NEVER="-1"),
        "The one used last is the one that LRU gives up.": _cache(OLD="-1"),
        "The first read of a partition costs nothing.": _cache(COUNT="reads - len(set(order))"),
    },
    "read-ahead": {
        "buffer-is-free": _ahead(DONE="cpu"),
        "copy-before-it-is-there": _ahead(THERE="r"),
        "times-always-add": _ahead(LAST="disk = cpu = back"),
        "all-hidden": _ahead(FREE="0"),
    },
}
