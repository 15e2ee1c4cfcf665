"""Saving to files and loading again. Follows ``torch.save``, ``torch.load`` and ``torch.serialization``.

A file is a zip archive (archive.py): ``data.pkl`` is the object, pickled, with a reference in place of each tensor's
memory; ``data/0``, ``data/1``, ... are the memories, each once however many tensors show it.
PyTorch's files are alike, and their weights can be read too (torch_names.py)."""

from __future__ import annotations

import contextlib
import enum
import functools
import io
import mmap as memory_map
import os
import pickle
import pickletools
import warnings

from .archive import Reader, Writer
from .backends.cpu import check, ffi, lib
from .backends.cuda import runtime
from .devices import device
from .dtypes import uint8
from .ops.create import frombuffer
from .ops.join import cat
from .safe_names import (
    RENAMED,
    SAFE,
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    safe_globals,
    tensor_of_0_1,
    users,
)
from .storage import UntypedStorage, storage_on
from .tensor import Tensor, owned
from .torch_names import StorageType, TypedStorage
from .unpickler import Reading

__all__ = [
    "add_safe_globals",
    "clear_safe_globals",
    "LoadEndianness",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "safe_globals",
    "save",
    "set_default_load_endianness",
    "set_default_mmap_options",
]

_mmap_flags = [memory_map.MAP_PRIVATE]


def get_default_mmap_options() -> int:
    """How ``load(mmap=True)`` maps files: ``mmap.MAP_PRIVATE`` at the start. Follows
    ``torch.serialization.get_default_mmap_options``."""
    return _mmap_flags[0]


class set_default_mmap_options:
    """How ``load(mmap=True)`` maps files, for good or for a ``with`` block: ``mmap.MAP_PRIVATE``, where a write to a
    tensor stays in memory, or ``mmap.MAP_SHARED``, where it goes to the file. ValueError for others. Follows
    ``torch.serialization.set_default_mmap_options``."""

    def __init__(self, flags: int):
        if flags not in (memory_map.MAP_PRIVATE, memory_map.MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, "
                f"but got {flags}"
            )
        self.before, _mmap_flags[0] = _mmap_flags[0], flags

    def __enter__(self):
        """The setting was made by ``__init__``."""

    def __exit__(self, *_):
        _mmap_flags[0] = self.before


class LoadEndianness(enum.Enum):
    """An order of bytes. Follows ``torch.serialization.LoadEndianness``."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


_load_endianness: list = [None]


def get_default_load_endianness() -> LoadEndianness | None:
    """The order of bytes in PyTorch's files that do not tell theirs; None at the start, which is little. Follows
    ``torch.serialization.get_default_load_endianness``."""
    return _load_endianness[0]


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Sets the order of bytes in PyTorch's files that do not tell theirs. TypeError for what is no LoadEndianness.
    Follows ``torch.serialization.set_default_load_endianness``."""
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    _load_endianness[0] = endianness


# Saving.


def _is_path(f) -> bool:
    return isinstance(f, (str, os.PathLike))


def save(obj, f, pickle_module=pickle, pickle_protocol: int = 4, **unused) -> None:
    """Writes ``obj``, any nest of containers and tensors, to a path or a binary file. Tensors that share memory will
    share it again. A file that is there already is replaced when the new one is whole: it stays as it was if the disk
    is full or ``obj`` cannot be pickled. ValueError for ``pickle_protocol`` 0 and 1; AttributeError for what is
    neither a path nor has ``write``; RuntimeError when the folder is not there. Follows ``torch.save``."""
    if not _is_path(f) and not hasattr(f, "write"):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
    if pickle_protocol in (0, 1):
        raise ValueError(f"save: pickle_protocol must be 2 or more, got {pickle_protocol}")
    storages: dict[int, tuple[int, UntypedStorage]] = {}

    class Pickler(pickle_module.Pickler):
        def persistent_id(self, obj):
            if type(obj) is not UntypedStorage:
                return None
            number, _ = storages.setdefault(id(obj), (len(storages), obj))
            return "storage", number, str(obj.whole.device)

    content = io.BytesIO()
    Pickler(content, pickle_protocol).dump(obj)
    with _replacing(os.fspath(f)) if _is_path(f) else contextlib.nullcontext(f) as file:
        archive = Writer(file)
        archive.add("data.pkl", content.getvalue())
        for number, storage in storages.values():
            here = storage.whole.cpu()
            check(lib.tt_sync(here._h, 0), "save")
            archive.add(f"data/{number}", ffi.buffer(here._h.data, here._h.numel) if here._h.numel else b"")
        archive.close()


@contextlib.contextmanager
def _replacing(path):
    """A file to write that takes the place of ``path`` at the end, if nothing was raised. What is no ordinary file, is
    empty (somebody may have it open: a temporary file), or is in a folder where no other may be made, is written
    itself."""
    path = os.path.realpath(os.fsdecode(path))
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {folder} does not exist.")
    beside = os.path.join(folder, f".{os.urandom(16).hex()}.tmp")
    there = os.path.exists(path)
    number = None
    if not there or (os.path.isfile(path) and os.path.getsize(path)):
        with contextlib.suppress(PermissionError):
            number = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    if number is None:
        with open(path, "wb") as file:
            yield file
        return
    try:
        with open(number, "wb") as file:
            if there:
                os.fchmod(number, os.stat(path).st_mode & 0o7777)
            yield file
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(beside)
        raise


# Loading.

_PICKLES = ("_pickle", "pickle")


def load(f, map_location=None, pickle_module=None, *, weights_only: bool | None = None, mmap=None, **pickle_load_args):
    """Reads what ``save`` wrote to a path or a binary file, from where the file stands; it stands behind the archive
    then. What PyTorch's ``torch.save`` wrote (in the format of 1.6 and later) is read too, as far as it is tensors,
    containers and plain values. Follows ``torch.load``.

    With ``weights_only``, which is the default unless there is a ``pickle_module``, only tensors, containers and plain
    values are made, and what ``serialization.add_safe_globals`` allows; pickle.UnpicklingError for anything else.
    Without it a file can run any code; ``pickle_module.Unpickler`` reads the pickle, with ``pickle_load_args``.

    Tensors go where they were, or where ``map_location`` says: a device for all, a dict from device to device
    ("cuda:0" to "cpu"), or a function that gets a storage, as a vector of bytes (uint8) on the CPU, and the name of the
    device where it was, and returns the vector on another one (None: where it was). RuntimeError when the device is
    not there, or the file is cut off or corrupt.

    With ``mmap`` the file, which must be given by its path (else ValueError), is mapped, and read when a tensor's
    elements are, without a look at checksums; see ``serialization.set_default_mmap_options``."""
    if weights_only is None:
        weights_only = pickle_module is None
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if weights_only and pickle_load_args:
        warnings.warn("pickle_load_args only works if `weights_only=False`.", stacklevel=2)
    if mmap and not _is_path(f):
        raise ValueError("f must be a file path in order to use the mmap argument")
    with _opened(f) as file:
        archive = Reader(file)
        if "data.pkl" not in archive:
            raise RuntimeError(f"load: {f} is not a file that save() wrote: it has no data.pkl")
        content = archive.read("data.pkl")
        storages = _Storages(archive, _putting(map_location), _map(file) if mmap else None)
        if weights_only:
            return Reading(content, storages).load()

        base = (pickle_module or pickle).Unpickler

        class Unpickler(base):
            def find_class(self, module, name):
                if (module, name) == (__name__, "_tensor"):
                    return functools.partial(tensor_of_0_1, storages)
                theirs = SAFE.get(f"{module}.{name}") if module.partition(".")[0] == "torch" else None
                return super().find_class(module, name) if theirs is None else theirs

            def persistent_load(self, reference):
                return super().persistent_load(reference) if own_references else storages(reference)

        own_references = any("persistent_load" in c.__dict__ for c in base.__mro__ if c.__module__ not in _PICKLES)
        return Unpickler(io.BytesIO(content), **pickle_load_args).load()


def _opened(f):
    """A context with the file to read. AttributeError for what cannot seek."""
    if _is_path(f):
        return open(f, "rb")
    try:
        f.seek(f.tell())
    except (io.UnsupportedOperation, AttributeError) as e:
        raise type(e)(
            f"{e}. You can only load from a file that is seekable. Please pre-load the data into a buffer like "
            "io.BytesIO and try to load from it instead."
        ) from None
    return contextlib.nullcontext(f)


def _map(file) -> memory_map.mmap:
    """The whole file in memory, as far as it is looked at."""
    if get_default_mmap_options() == memory_map.MAP_PRIVATE:
        return memory_map.mmap(file.fileno(), 0, access=memory_map.ACCESS_COPY)
    with open(file.name, "r+b") as writable:
        return memory_map.mmap(writable.fileno(), 0, flags=memory_map.MAP_SHARED)


class _Storages:
    """What the references of a pickle stand for: each storage of the archive once, where it is to be."""

    def __init__(self, archive: Reader, put, mapped: memory_map.mmap | None):
        self.archive, self.put, self.mapped = archive, put, mapped
        self.known: dict[str, UntypedStorage] = {}

    def __call__(self, reference) -> UntypedStorage:
        kind = None
        match reference:
            case ("storage", int(number), str(where)):
                key = str(int(number))
            case ("storage", StorageType() as kind, str(key), str(where), int()):  # PyTorch's
                pass
            case _:
                raise pickle.UnpicklingError("load: the file refers to something that save() does not write")
        found = self.known.get(key)
        if found is None:
            if f"data/{key}" not in self.archive:
                raise pickle.UnpicklingError(f"load: the file has no storage number {key:.20}")
            whole = self.bytes(f"data/{key}")
            if kind is not None and kind.of is not None and self.big_endian():
                whole = reversed_elements(whole, kind.of.to_real().itemsize)
            found = self.known[key] = storage_on(self.put(whole, where))
        return found if kind is None else TypedStorage(found, kind.of)

    def big_endian(self) -> bool:
        """Has the file numbers whose most significant byte comes first?"""
        if "byteorder" in self.archive:
            return self.archive.read("byteorder") == b"big"
        return get_default_load_endianness() is LoadEndianness.BIG

    def bytes(self, name: str) -> Tensor:
        """A member of the archive as a vector of bytes on the CPU."""
        n = self.archive.size(name)
        if self.mapped is not None and n:
            return frombuffer(self.mapped, dtype=uint8, count=n, offset=self.archive.offset(name))
        made = owned.tt_empty(uint8.code, 1, (n,))
        if n:
            self.archive.read_into(name, memoryview(ffi.buffer(made._h.data, n)))
        return made


def reversed_elements(whole: Tensor, size: int) -> Tensor:
    """A vector of bytes, with those of each element of this size the other way round."""
    n = whole.numel() // size * size
    return cat([whole[:n].reshape(-1, size).flip(1).reshape(-1), whole[n:]])


def _restored(whole: Tensor, where: str) -> Tensor:
    """A storage on the device where it was. RuntimeError when it is not there."""
    chosen = device(where)
    if chosen.type == "cuda" and not (chosen.index or 0) < runtime.device_count():
        there = (
            f"there are {runtime.device_count()} CUDA devices: use map_location to map storages to one of them"
            if runtime.device_count()
            else "no CUDA device is available: use map_location='cpu' to map all storages to the CPU"
        )
        raise RuntimeError(f"load: the file has a tensor of {where}, but {there}")
    return whole.to(chosen)


def _putting(map_location):
    """What puts a storage, read as a vector of bytes, where ``map_location`` says: given it and the device where it
    was."""
    if map_location is None:
        return _restored
    if isinstance(map_location, dict):
        return lambda whole, where: _restored(whole, str(map_location.get(where, where)))
    if callable(map_location):

        def chosen(whole, where):
            found = map_location(whole, where)
            if found is None:
                return _restored(whole, where)
            if not isinstance(found, Tensor) or found.shape != whole.shape or found.dtype is not whole.dtype:
                raise TypeError(
                    "load: a map_location function must return what it is given, on the device it chooses, "
                    f"or None, not {type(found).__name__}"
                )
            return found

        return chosen
    target = device(map_location)
    return lambda whole, where: whole.to(target)


def get_unsafe_globals_in_checkpoint(f) -> list[str]:
    """The names in a file, as "module.name", that ``load(weights_only=True)`` would refuse; nothing of it is run.
    Follows ``torch.serialization.get_unsafe_globals_in_checkpoint``. ValueError for what ``save`` did not write."""
    with _opened(f) as file:
        try:
            content = Reader(file).read("data.pkl")
        except (RuntimeError, EOFError, KeyError):
            raise ValueError("Expected input to be a checkpoint returned by save()") from None
    found: dict[str, None] = {}
    texts: list = ["", ""]  # what was put on the stack last
    memo: dict = {}
    for op, arg, _ in pickletools.genops(content):
        if op.name == "GLOBAL":
            module, name = arg.split(" ", 1)
            found[f"{RENAMED.get(module, module)}.{name}"] = None
        elif op.name == "STACK_GLOBAL":
            found["{}.{}".format(*texts)] = None
        elif op.name == "MEMOIZE":
            memo[len(memo)] = texts[1]
        elif op.name in ("BINPUT", "LONG_BINPUT"):
            memo[arg] = texts[1]
        elif op.name in ("BINGET", "LONG_BINGET"):
            texts = [texts[1], memo.get(arg)]
        elif op.name != "FRAME":
            texts = [texts[1], arg if isinstance(arg, str) else None]
    safe = {*SAFE, *users()}
    return [name for name in found if name not in safe]
