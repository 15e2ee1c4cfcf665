"""Saving to files and loading again. Follows ``torch.save``, ``torch.load`` and ``torch.serialization``.

A file is PyTorch's: a zip archive (archive.py) with ``data.pkl``, the object, pickled under PyTorch's names with a
reference in place of each tensor's memory (pickler.py); ``data/0``, ``data/1``, ... are the memories, each once however
many tensors show it. PyTorch's files before 1.6 (file_storages.py), and those that tinytorch wrote before it took
PyTorch's names, are read too."""

from __future__ import annotations

import contextlib
import enum
import functools
import importlib
import io
import mmap as memory_map
import os
import pickle
import sys
import threading
import warnings

from .archive import Reader, Writer
from .atomic_file import replacing
from .backends.cpu import check, ffi, lib
from .file_storages import ArchiveStorages, LegacyStorages, load_legacy
from .locations import default_restore_location, location_tag, register_package, restoring, validate_cuda_device
from .pickler import pickled
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
from .torch_names import StorageType, rebuild_sparse
from .unpickler import Reading
from .utils.serialization import config

__all__ = [
    "LoadEndianness",
    "SourceChangeWarning",
    "StorageType",
    "add_safe_globals",
    "check_module_version_greater_or_equal",
    "clear_safe_globals",
    "default_restore_location",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "location_tag",
    "mkdtemp",
    "register_package",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
    "validate_cuda_device",
]


class SourceChangeWarning(Warning):
    """That the source of a module's class has changed: never given, since sources are not compared."""


@contextlib.contextmanager
def mkdtemp():
    """A folder for a ``with`` block, which is removed afterwards. Follows ``torch.serialization.mkdtemp``."""
    import shutil  # when used: a start of Python does not wait for them
    import tempfile

    path = tempfile.mkdtemp()
    try:
        yield path
    finally:
        shutil.rmtree(path)


def check_module_version_greater_or_equal(module, req_version_tuple, error_if_malformed=True) -> bool:
    """Is the version of a module this one, or a later one? RuntimeError for a version that is no such numbers, or a
    warning, and True, unless ``error_if_malformed``. Follows
    ``torch.serialization.check_module_version_greater_or_equal``."""
    try:
        parts = module.__version__.split(".")
        return tuple([type(of)(parts[k]) for k, of in enumerate(req_version_tuple)]) >= tuple(req_version_tuple)
    except Exception as e:
        message = (
            f"'{module.__name__}' module version string is malformed '{module.__version__}' and cannot be compared "
            f"with tuple {req_version_tuple}"
        )
        if error_if_malformed:
            raise RuntimeError(message) from e
        warnings.warn(message + ", but continuing assuming that requirement is met", stacklevel=2)
        return True


# Settings.


def get_crc32_options() -> bool:
    """Does ``save`` compute checksums? Follows ``torch.serialization.get_crc32_options``."""
    return config.save.compute_crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Sets whether ``save`` computes checksums; without them ``load`` does not see that a file is corrupt. Follows
    ``torch.serialization.set_crc32_options``."""
    config.save.compute_crc32 = compute_crc32


def get_default_mmap_options() -> int:
    """How ``load(mmap=True)`` maps files: ``mmap.MAP_PRIVATE`` at the start. Follows
    ``torch.serialization.get_default_mmap_options``."""
    return config.load.mmap_flags


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
        self.before, config.load.mmap_flags = config.load.mmap_flags, flags

    def __enter__(self):
        """The setting was made by ``__init__``."""

    def __exit__(self, *_):
        config.load.mmap_flags = self.before


class LoadEndianness(enum.Enum):
    """An order of bytes. Follows ``torch.serialization.LoadEndianness``."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


def get_default_load_endianness() -> LoadEndianness | None:
    """The order of bytes in PyTorch's files that do not tell theirs; None at the start, which is little. Follows
    ``torch.serialization.get_default_load_endianness``."""
    return config.load.endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Sets the order of bytes in PyTorch's files that do not tell theirs. TypeError for what is no LoadEndianness.
    Follows ``torch.serialization.set_default_load_endianness``."""
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    config.load.endianness = endianness


_local = threading.local()  # skip_data: is this thread in one?


class skip_data:
    """A context in which ``save`` writes zeros in place of the tensors' elements, and ``load`` gives zeros without a
    look at them. ``materialize_fake_tensors`` is taken as in PyTorch. For this thread. Follows
    ``torch.serialization.skip_data``."""

    def __init__(self, materialize_fake_tensors: bool = False):
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self):
        self.before, _local.skip_data = _skips(), True

    def __exit__(self, *_):
        _local.skip_data = self.before


def _skips() -> bool:
    return getattr(_local, "skip_data", False)


# Saving.


def _is_path(f) -> bool:
    return isinstance(f, (str, os.PathLike))


def save(
    obj,
    f,
    pickle_module=pickle,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Writes ``obj``, any nest of containers and tensors, to a path or a binary file, which ``torch.load`` reads too.
    Tensors that share memory will share it again. A file that is there already is replaced when the new one is whole:
    it stays as it was if the disk is full, ``obj`` cannot be pickled, or the process is killed. ValueError for
    ``pickle_protocol`` 0 and 1; AttributeError for what is neither a path nor has ``write``; RuntimeError when the
    folder is not there; NotImplementedError for PyTorch's format before 1.6, which is read alone. Follows
    ``torch.save``."""
    if not _is_path(f) and not hasattr(f, "write"):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
    if pickle_protocol in (0, 1):
        raise ValueError(f"save: pickle_protocol must be 2 or more, got {pickle_protocol}")
    if not _use_new_zipfile_serialization:
        raise NotImplementedError("save: _use_new_zipfile_serialization=False is not implemented: load alone takes it")
    content, written = pickled(obj, pickle_module, pickle_protocol)
    with replacing(os.fspath(f)) if _is_path(f) else contextlib.nullcontext(f) as file:
        archive = Writer(file, config.save.storage_alignment, config.save.compute_crc32)
        archive.add("archive/data.pkl", content)
        if not _disable_byteorder_record:
            archive.add("archive/byteorder", sys.byteorder.encode())
        for key, storage in written.storages.items():
            if _skips():
                archive.add(f"archive/data/{key}", _Zeros(storage.nbytes()))
                continue
            here = storage.whole.cpu()
            check(lib.tt_sync(here._h, 0), "save")
            data = memoryview(ffi.buffer(here._h.data, here._h.numel)) if here._h.numel else b""
            archive.add(f"archive/data/{key}", data)
        archive.add("archive/version", b"3\n")
        archive.close()


class _Zeros:
    """As many bytes, all zero."""

    def __init__(self, n: int):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, part: slice) -> bytes:
        return bytes(len(range(*part.indices(self.n))))


# Loading.

_PICKLES = ("_pickle", "pickle")


def load(f, map_location=None, pickle_module=None, *, weights_only: bool | None = None, mmap=None, **pickle_load_args):
    """Reads what ``save``, or PyTorch's ``torch.save`` of any version since 0.4, wrote to a path or a binary file, from
    where the file stands; it stands behind the archive then. A path that ends in ".safetensors" is read by
    ``utils.safetensors.load_file``. Follows ``torch.load``.

    With ``weights_only``, which is the default unless there is a ``pickle_module``, only tensors, containers and plain
    values are made, and what ``serialization.add_safe_globals`` allows; pickle.UnpicklingError for anything else.
    Without it a file can run any code; ``pickle_module.Unpickler`` reads the pickle, with ``pickle_load_args``. What
    PyTorch names is tinytorch's of that name then; pickle.UnpicklingError where there is none.

    Tensors go where they were, or where ``map_location`` says: a device for all, a dict from device to device
    ("cuda:0" to "cpu"), or a function that gets a storage on the CPU, and the name of the device where it was, and
    returns the storage on another one (None: where it was). RuntimeError when the device is not there, or the file is
    cut off or corrupt.

    With ``mmap`` the file, which must be given by its path (else ValueError) and be no older than PyTorch 1.6
    (RuntimeError), is mapped, and read when a tensor's elements are, without a look at checksums; see
    ``serialization.set_default_mmap_options``."""
    if weights_only is None:
        weights_only = pickle_module is None
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if weights_only and pickle_load_args:
        warnings.warn("pickle_load_args only works if `weights_only=False`.", stacklevel=2)
    if _is_path(f) and os.fspath(f).endswith(".safetensors"):
        return _load_safetensors(f, map_location)
    mmap = config.load.mmap if mmap is None else mmap
    if mmap and not _is_path(f):
        raise ValueError("f must be a file path in order to use the mmap argument")
    with _opened(f) as file:
        start, put = file.tell(), restoring(map_location)
        first = file.read(4)
        file.seek(start)
        unpickle = _trusting_nothing if weights_only else _trusting(pickle_module or pickle, pickle_load_args)
        if first[:1] == b"\x80" or _is_tar(file):
            if mmap:
                raise RuntimeError(
                    "mmap can only be used with files saved with "
                    "`torch.save(_use_new_zipfile_serialization=True), please torch.save your checkpoint with this "
                    "option in order to use mmap."
                )
            content = file.read()
            storages = LegacyStorages(put, len(content), _skips())
            found = load_legacy(content, storages, unpickle)
        else:
            archive = Reader(file)
            if "constants.pkl" in archive:
                raise RuntimeError(f"load: {f} is a TorchScript archive, a program, which is not read")
            if "data.pkl" not in archive:
                raise RuntimeError(f"load: {f} is not a file that save() wrote: it has no data.pkl")
            mapped = _map(file) if mmap else None
            storages = ArchiveStorages(archive, put, mapped, _big_endian(archive), _skips())
            found, _ = unpickle(archive.read("data.pkl"), 0, storages)
        storages.finish()
        return found


def _load_safetensors(path, map_location):
    if isinstance(map_location, dict) or callable(map_location):
        raise RuntimeError("load: of a safetensors file map_location must be a device")
    try:
        load_file = importlib.import_module(".utils.safetensors", __package__).load_file
    except ImportError as e:
        raise RuntimeError(f"Attempting to load a safetensors file but safetensors is not installed: {e}") from e
    return load_file(path, device="cpu" if map_location is None else map_location)


def _is_tar(file) -> bool:
    start = file.tell()
    file.seek(start + 257)
    found = file.read(5)
    file.seek(start)
    return found == b"ustar"


def _no_reference(reference):
    raise pickle.UnpicklingError("load: the file refers to a storage outside of its object")


def _trusting_nothing(content: bytes, at: int, storages) -> tuple:
    """The object of the pickle at a place, and the place behind it; no code of its is run."""
    reading = Reading(content, storages or _no_reference, at)
    return reading.load(), reading.at


def _trusting(pickle_module, options: dict):
    """What reads a pickle with a module's Unpickler."""
    base = pickle_module.Unpickler
    own_references = any("persistent_load" in c.__dict__ for c in base.__mro__ if c.__module__ not in _PICKLES)

    def unpickle(content: bytes, at: int, storages) -> tuple:
        class Unpickler(base):
            def find_class(self, module, name):
                if (module, name) == (__name__, "_tensor"):
                    return functools.partial(tensor_of_0_1, storages)
                if module.partition(".")[0] != "torch":
                    return super().find_class(module, name)
                found = _of_torch(module, name)
                return functools.partial(found, storages) if found is rebuild_sparse else found

            def persistent_load(self, reference):
                return super().persistent_load(reference) if own_references else (storages or _no_reference)(reference)

        file = io.BytesIO(content)
        file.seek(at)
        return Unpickler(file, **options).load(), file.tell()

    return unpickle


_ALIKE = {"NonDynamicallyQuantizableLinear": "Linear"}  # classes of PyTorch's that differ in what is not here


def _of_torch(module: str, name: str):
    """What stands here for an object of PyTorch's. UnpicklingError where nothing does."""
    found = SAFE.get(f"{module}.{name}")
    if found is not None:
        return found
    parts = ["tinytorch", *module.split(".")[1:]]
    name = _ALIKE.get(name, name)
    while parts:  # PyTorch's inner modules (nn.modules.linear) have their names from the packages they are in
        with contextlib.suppress(ImportError, AttributeError):
            found = importlib.import_module(".".join(parts))
            for part in name.split("."):
                found = getattr(found, part)
            return found
        parts.pop()
    raise pickle.UnpicklingError(f"load: the file has PyTorch's {module}.{name}, and tinytorch has none")


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


def _big_endian(archive: Reader) -> bool:
    """Has the file numbers whose most significant byte comes first? RuntimeError for an order that nobody knows."""
    if "byteorder" in archive:
        order = archive.read("byteorder") if archive.size("byteorder") < 10 else b""
        if order not in (b"little", b"big"):
            raise RuntimeError(f"load: the file is corrupt: Unknown endianness type: {order!r}")
        return order == b"big"
    return get_default_load_endianness() is LoadEndianness.BIG


def get_unsafe_globals_in_checkpoint(f) -> list[str]:
    """The names in a file, as "module.name", that ``load(weights_only=True)`` would refuse; nothing of it is run.
    Follows ``torch.serialization.get_unsafe_globals_in_checkpoint``. ValueError for what ``save`` did not write."""
    import pickletools  # when used: a start of Python does not wait for it

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
