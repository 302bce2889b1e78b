"""A disk that may lose power: what a run asked of the system is logged, and any moment of it can be made into folders again.

The model is stricter than most file systems. Until a file is flushed, any of its 512-byte sectors may be on the disk or not,
in any order; its size may not be, either. Until a folder is flushed, any of the names made, replaced or taken away in it
may be as before. A rename alone is whole. Nothing else may be relied upon after the power went.
"""

import os
import random
import stat
import threading
from pathlib import Path

SECTOR = 512
_NEW = os.O_CREAT


class Disk:
    """Logs, while it is patched in, what is done to files below `root`. `said(step)`: the caller was told of a step."""

    def __init__(self, root):
        self.root = os.path.realpath(root)
        self.log = []
        self._files = {}  # inode -> our number of the file; inodes are used again
        self._tokens = iter(range(1 << 30))
        self._lock = threading.Lock()

    def said(self, step):
        self.log.append(("said", step))

    def patch(self, monkeypatch):
        real = {name: getattr(os, name) for name in ("open", "pwritev", "fdatasync", "fsync", "replace", "unlink")}
        reserve = os.posix_fallocate

        def opened(path, flags, *more, **named):
            new = flags & _NEW and self._ours(path) and not os.path.exists(path)
            descriptor = real["open"](path, flags, *more, **named)
            if new:
                self._create(path, os.fstat(descriptor).st_ino)
            return descriptor

        def pwritev(descriptor, buffers, offset):
            number = self._number(descriptor)
            if number is None:
                return real["pwritev"](descriptor, buffers, offset)
            token = next(self._tokens)
            self.log.append(("write", number, token, offset, b"".join(map(bytes, buffers))))
            try:
                return real["pwritev"](descriptor, buffers, offset)
            finally:
                self.log.append(("done", token))

        def flush(call):
            def flushed(descriptor):
                path = self._path(descriptor)
                if path is not None and stat.S_ISDIR(os.fstat(descriptor).st_mode):
                    call(descriptor)
                    return self.log.append(("folder", path))
                if path is None:
                    return call(descriptor)
                if path.endswith(".state"):
                    number = self._number(descriptor)
                else:  # written anew by `open`, which is not seen from here
                    number = self._create(path, os.fstat(descriptor).st_ino)
                    self._content(number, path)
                mark = len(self.log)
                self.log.append(("flushing", number))
                call(descriptor)
                self.log.append(("flushed", number, mark))

            return flushed

        def replaced(source, target):
            if not self._ours(target):
                return real["replace"](source, target)
            number = self._files.get(os.stat(source).st_ino)
            if number is None:  # never flushed
                number = self._create(source, os.stat(source).st_ino)
                self._content(number, source)
            real["replace"](source, target)
            self.log.append(("name", *os.path.split(target), number))

        def unlinked(path, **named):
            real["unlink"](path, **named)
            if self._ours(path):
                self.log.append(("name", *os.path.split(path), None))

        def reserved(descriptor, offset, length):
            reserve(descriptor, offset, length)
            if (number := self._number(descriptor)) is not None:
                self.log.append(("size", number, offset + length))

        changed = {"open": opened, "pwritev": pwritev, "replace": replaced, "unlink": unlinked, "posix_fallocate": reserved}
        changed |= {name: flush(real[name]) for name in ("fsync", "fdatasync")}
        for name, call in changed.items():
            monkeypatch.setattr(os, name, call)

    def _ours(self, path):
        return os.path.realpath(path).startswith(self.root + os.sep) and not str(path).endswith(".lock")

    def _path(self, descriptor):
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        return path if self._ours(path) else None

    def _number(self, descriptor):
        path = self._path(descriptor)
        if path is None:
            return None
        inode = os.fstat(descriptor).st_ino
        return self._files[inode] if inode in self._files else self._create(path, inode)

    def _create(self, path, inode):
        with self._lock:
            number = self._files[inode] = next(self._tokens)
        self.log.append(("name", *os.path.split(os.path.realpath(path)), number))
        return number

    def _content(self, number, path):
        token = next(self._tokens)
        self.log += [("whole", number, token, Path(path).read_bytes()), ("done", token)]

    # --- afterwards ----------------------------------------------------------------------------------------------------

    def told(self, moment):
        """The last step that the caller was told of before `moment`."""
        return max((entry[1] for entry in self.log[:moment] if entry[0] == "said"), default=0)

    def left(self, moment, to, seed):
        """Write what the power cut at `moment` of the log leaves into folders below `to`, as chance of `seed` has it."""
        chance = random.Random(seed)
        files, folders = {}, {}
        for at, entry in enumerate(self.log[:moment]):
            kind = entry[0]
            if kind == "name":
                folders.setdefault(entry[1], ({}, []))[1].append(entry[2:])
            elif kind == "folder":
                durable, waiting = folders.setdefault(entry[1], ({}, []))
                durable.update(waiting)
                waiting.clear()
            elif kind in ("write", "whole", "size"):
                files.setdefault(entry[1], _File()).waiting.append(entry)
            elif kind == "done":
                for file in files.values():
                    file.done.add(entry[1])
            elif kind == "flushing":
                file = files.setdefault(entry[1], _File())
                file.marks[at] = [one for one in file.waiting if one[0] == "size" or one[2] in file.done]
            elif kind == "flushed":
                files[entry[1]].settle(entry[2])
        likely = chance.choice((0.0, 0.5, 1.0))
        for folder, (durable, waiting) in folders.items():
            names = durable | dict(one for one in waiting if chance.random() < likely)
            here = Path(to, os.path.relpath(folder, self.root))
            here.mkdir(parents=True, exist_ok=True)
            for name, number in names.items():
                if number is not None:
                    (here / name).write_bytes(files.get(number, _File()).cut(chance))


class _File:
    def __init__(self):
        self.durable, self.waiting, self.done, self.marks = bytearray(), [], set(), {}

    def settle(self, mark):
        for entry in self.marks.pop(mark):
            _apply(self.durable, entry, lambda: True)
            self.waiting.remove(entry)

    def cut(self, chance):
        content, likely = bytearray(self.durable), chance.choice((0.0, 0.1, 0.5, 0.9, 1.0))
        for entry in self.waiting:
            _apply(content, entry, lambda: chance.random() < likely)
        return content


def _apply(content, entry, kept):
    if entry[0] == "size":
        if kept() and len(content) < entry[2]:
            content.extend(bytes(entry[2] - len(content)))
        return
    offset, data = (0, entry[3]) if entry[0] == "whole" else entry[3:]
    for at in range(0, len(data), SECTOR):
        if kept():
            sector = data[at : at + SECTOR]
            end = offset + at + len(sector)
            content.extend(bytes(max(0, end - len(content))))
            content[offset + at : end] = sector
