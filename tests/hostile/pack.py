"""Submissions that try to take points, break the batch or harm the machine. Each is the text of one
exercise's cell. Every bomb is bounded by the jail's own limits, and only ever runs behind it."""

from __future__ import annotations

HONEST = {
    "training-bytes": """
def training_bytes(parameters, weight, moment, master):
    return parameters * (2 * weight + 2 * moment + (4 if master else 0))
""",
    "adamw-step": """
def adamw_step(weights, gradients, m, v, step, lr, beta1, beta2, eps, decay):
    m = [beta1 * a + (1 - beta1) * g for a, g in zip(m, gradients)]
    v = [beta2 * a + (1 - beta2) * g * g for a, g in zip(v, gradients)]
    new = []
    for w, a, b in zip(weights, m, v):
        root = (b / (1 - beta2 ** step)) ** 0.5 + eps
        new.append(w * (1 - lr * decay) - (lr * (a / (1 - beta1 ** step)) / root if root else 0.0))
    return [new, m, v]
""",
    "pipeline-order": """
def pipeline_order(tiles, ahead):
    order, read = [], 0
    for tile in range(tiles):
        while read < min(tiles, tile + ahead + 1):
            order.append(f"read {read}")
            read += 1
        order += [f"update {tile}", f"write {tile}"]
    return order
""",
}

_F = "def training_bytes(*arguments):\n"
_EVERY_FD = "    for n in range(64):\n        try: os.write(n, {0})\n        except OSError: pass\n"

# name: what stands in the cell of `training-bytes`. None of them computes anything, so none may earn anything.
CELLS: dict[str, str] = {
    "assert stripped": """import ast, builtins
class Strip(ast.NodeTransformer):
    def visit_Assert(self, node): return ast.Pass()
old = compile
builtins.compile = lambda source, *a, **k: old(Strip().visit(ast.parse(source)) if isinstance(source, str) else source, *a, **k)
"""
    + _F
    + "    return None",
    "always equal": "class Any(int):\n    __eq__ = lambda *a: True\n"
    "    __hash__ = None\n    __ne__ = lambda *a: False\n" + _F + "    return Any(7)",
    "always equal through tolist": "class All:\n    tolist = lambda self: self\n" + _F + "    return All()",
    "hidden tests read from disk": "import glob\n"
    + _F
    + """    for root in ('/', '/work', '/root', '/home', '/tmp', '..', '/scratch'):
        for path in glob.glob(root + '/**/keys/exercises/*.yaml', recursive=True):
            raise SystemExit(open(path).read())
    return None""",
    "builtins patched": "import builtins, math\nbuiltins.type = lambda *a: int\nbuiltins.isinstance = lambda *a: True\n"
    "builtins.zip = lambda *a, **k: []\nbuiltins.len = lambda a: 0\nmath.isclose = lambda *a, **k: True\n"
    + _F
    + "    return 7",
    "sys.modules patched": "import sys as s\nclass M:\n    def __getattr__(self, name): return lambda *a, **k: None\n"
    "for name in list(s.modules):\n    if 'quizzes' in name or name in ('worker', 'kernel', 'jail'): s.modules[name] = M()\n"
    + _F
    + "    return 7",
    "json patched": 'import json\njson.dumps = lambda *a, **k: \'{"passed": true, "score": 2.0}\'\n' + _F + "    return 7",
    "true for an int": _F + "    return True",
    "NaN": _F + "    return float('nan')",
    "more than the points": _F + "    return {'score': 1e308, 'max_score': 1, 'passed': 999, 'cases': 1}",
    "gradebook by SQL": "import sqlite3\n"
    + _F
    + "    sqlite3.connect('COURSE/gradebook.db').execute('update grade set auto_score = 1000')\n    return 7",
    "os._exit": "import os\n" + _F + "    os._exit(0)",
    "exit while loading": "import os\nos._exit(0)",
    "forged result on every descriptor": "import os, json\n"
    + _F
    + _EVERY_FD.format('b\'{"token": "0", "value": 16}\\n\' * 9')
    + "    return 7",
    "forged isolation failure": "import os\n" + _F + _EVERY_FD.format("b'jail: broken\\n'") + "    os._exit(97)",
    "memory of the parent": "import os\n"
    + _F
    + "    for n in range(1, 99999):\n        try: open(f'/proc/{n}/mem', 'rb').read(1); raise SystemExit('read')\n"
    "        except OSError: pass\n    return 7",
    "ptrace of the parent": "import ctypes, os\nlibc = ctypes.CDLL(None)\n"
    + _F
    + "    libc.ptrace(16, os.getppid(), 0, 0)\n    return 7",
    "signals to everybody": "import os\n"
    + _F
    + "    for n in (os.getppid(), 0, -1):\n        try: os.kill(n, 9)\n        except OSError: pass\n    return 7",
    "script in an error": _F + "    raise ValueError('<script>alert(1)</script>\\x1b[2J\\nroot: 7 of 7')",
    "20 MB of output": _F + "    print('9' * 20_000_000)\n    return 7",
    "fork bomb": "import os\n" + _F + "    while True:\n        try: os.fork()\n        except OSError: pass",
    "memory bomb": _F + "    held = []\n    while True: held.append(bytearray(1 << 20))",
    "disk full": "import os\n"
    + _F
    + "    n = 0\n    while True:\n        n += 1\n        try: open(str(n % 900), 'ab').write(bytes(1 << 20))\n"
    "        except OSError: return 7",
    "endless loop": _F + "    while True: pass",
    "daemon": "import os, time\n"
    + _F
    + "    if os.fork() == 0:\n        os.setsid()\n        if not os.fork(): time.sleep(60)\n        os._exit(1)\n    return",
    "sleeping threads": "import threading, time\n"
    + _F
    + "    for _ in range(4): threading.Thread(target=time.sleep, args=(600,)).start()\n    time.sleep(600)",
    "network": "import socket\n" + _F + "    socket.create_connection(('127.0.0.1', PORT), 1).send(b'keys')\n    return 7",
    "secrets of the environment": "import os\n" + _F + "    raise ValueError(str(dict(os.environ)))",
    "hidden arguments in an error": _F + "    raise ValueError(f'<<{arguments}>>')",
    "a class that says it is int": "class N:\n    __class__ = int\n    __int__ = __index__ = lambda self: 7\n"
    "    __instancecheck__ = lambda *a: True\n" + _F + "    return N()",
    "list in list": _F + "    return [[7]]",
    "infinite": _F + "    return 1e400",
    "huge int": _F + "    return 10 ** 20_000",
    "half a surrogate": _F + "    return '\\ud800'",
    "half a surrogate in an error": _F + "    raise ValueError('\\ud800\\x00')",
    "a list that holds itself": _F + "    held = []\n    held.append(held)\n    return held",
    "a dict of a million": _F + "    return {str(n): n for n in range(300_000)}",
    "stdout closed": "import os\n"
    + _F
    + "    for n in range(64):\n        try: os.close(n)\n        except OSError: pass\n    return 7",
    "stopped for ever": "import os, signal\n" + _F + "    os.kill(os.getpid(), signal.SIGSTOP)\n    return 7",
    "errors that raise": "class E(Exception):\n    def __str__(self): raise self\n" + _F + "    raise E()",
    "token from the frames": "import sys, os, json\n"
    + _F
    + "    frame = sys._getframe(1)\n    token = frame.f_locals['case']['token']\n"
    "    for n in range(64):\n"
    "        try: os.write(n, json.dumps({'token': token, 'value': None, 'passed': True}).encode() + b'\\n')\n"
    "        except OSError: pass\n    return None",
}
