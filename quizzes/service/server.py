"""Runs the application on a socket that is bound before anything is said, so that the address printed is one that answers."""

from __future__ import annotations

import gc
import ipaddress
import os
import signal
import socket
import sys
import threading
import time

import uvicorn
from fastapi import FastAPI

from quizzes.service.errors import StartError

# The loop and the writer hand the interpreter to each other after each commit; at the default of 5 ms one waits for the other.
_SWITCH = 0.0005
_GARBAGE = (50_000, 20, 20)


def bind(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one. Raises StartError for one that is in use or not allowed."""
    if not 0 <= port <= 65535:
        raise StartError(f"--port {port}: a port is a number from 0 to 65535; 0 takes a free one.")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError) as error:
        raise StartError(f"--host {host}: there is no such address ({getattr(error, 'strerror', None) or error}).") from None
    family, kind, _proto, _name, address = found[0]
    listening = socket.socket(family, kind)
    try:
        if os.name == "posix":
            # Lets a restart take the port of a service that was just killed; it doesn't share one that still listens.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(1024)
    except OSError as error:
        listening.close()
        raise StartError(
            f"--port {port}: {host} port {port} cannot be used ({error.strerror}). Choose another, or 0 for a free one."
        ) from None
    return listening


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def address(listening: socket.socket) -> str:
    """`http://HOST:PORT` of a socket."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def run(app: FastAPI, listening: socket.socket, *, parent: int | None = None) -> None:
    """Serves until SIGINT or SIGTERM; answers that wait to be written are written first. Sets up the whole process for it.

    `parent`: end, too, once this process is no longer a child of it.
    """
    sys.setswitchinterval(_SWITCH)
    # What was loaded stays. Looking through it for garbage again and again stops every answer for a quarter of a second.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GARBAGE)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # nothing that a client writes into a header is believed
        ws="none",
        timeout_keep_alive=75,
        timeout_graceful_shutdown=20,
    )
    server = uvicorn.Server(config)
    if parent is not None:
        threading.Thread(target=_follow, args=(server, parent), daemon=True).start()
    # uvicorn ends in order and then raises the signal again; by default that would skip what the caller still has to do.
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        server.run(sockets=[listening])
    except KeyboardInterrupt:
        return
    finally:
        signal.signal(signal.SIGTERM, before)


def _follow(server: uvicorn.Server, parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    server.should_exit = True
