"""Files for TensorBoard's profiler plugin (torch_tb_profiler)."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable


def tensorboard_trace_handler(dir_name: str, worker_name: str | None = None, use_gzip: bool = False) -> Callable:
    """An ``on_trace_ready`` that writes ``<worker>.<time>.pt.trace.json`` into the folder, which is made if need be.
    Follows ``torch.profiler.tensorboard_trace_handler``. RuntimeError when the folder cannot be made."""

    def handler(p) -> None:
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as exc:
            raise RuntimeError(
                f"Can't create directory: {dir_name} ({exc.strerror}); the trace is still there, and "
                "can go to another path with export_chrome_trace"
            ) from exc
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}"
        p.export_chrome_trace(os.path.join(dir_name, name))

    return handler
