"""``torch.hub``, which brings nothing: it would run code from the network."""

from __future__ import annotations

import os
import re
from urllib.parse import urlparse

try:
    from tqdm import tqdm
except ImportError:  # then a bar that shows nothing

    class tqdm:
        """A progress bar that shows nothing."""

        def __init__(self, iterable=(), *args, **kwargs):
            self._items = iterable

        def __iter__(self):
            return iter(self._items)

        def __enter__(self):
            return self

        def __exit__(self, *exc_info):
            pass

        def update(self, n=1) -> None:
            """Nothing."""

        close = set_description = set_postfix = update


__all__ = [
    "HASH_REGEX",
    "download_url_to_file",
    "get_dir",
    "help",
    "list",
    "load",
    "load_state_dict_from_url",
    "set_dir",
    "_get_torch_home",
    "tqdm",
    "urlparse",
]

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")


class _Chosen:
    """``dir``: the folder that was set."""

    dir: str | None = None


def _refuse(name: str):
    def refuse(*args, **kwargs):
        raise RuntimeError(f"hub.{name}: tinytorch downloads nothing; load a file that is there by torch.load")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "RuntimeError: tinytorch downloads nothing."
    return refuse


load, list, help = _refuse("load"), _refuse("list"), _refuse("help")
download_url_to_file = _refuse("download_url_to_file")


def load_state_dict_from_url(
    url, model_dir=None, map_location=None, progress=True, check_hash=False, file_name=None, weights_only=False
):
    """RuntimeError: tinytorch downloads nothing."""
    raise RuntimeError(f"hub.load_state_dict_from_url: tinytorch downloads nothing ({url}); load a file by torch.load")


def _get_torch_home() -> str:
    """PyTorch's folder of caches."""
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir() -> str:
    """Where PyTorch keeps what it downloads."""
    return _Chosen.dir or os.path.join(_get_torch_home(), "hub")


def set_dir(d: str) -> None:
    """What ``get_dir`` gives from now on."""
    _Chosen.dir = os.path.expanduser(d)
