"""Saving to files and loading again. Follows ``torch.save`` and ``torch.load``.

A file is an uncompressed zip archive: ``data.pkl`` is the object, pickled, with a reference in place of each tensor,
which names the storage and the device where it was; ``data/0``, ``data/1``, ... are the storages, each once however
many tensors show it."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections import Counter, OrderedDict, defaultdict

from .backends.cpu import ffi, lib
from .backends.cuda import runtime
from .devices import device
from .dtypes import Size, _by_name, dtype
from .nn.parameter import Buffer, Parameter, _rebuild, _rebuild_buffer
from .nn.state import StateDict
from .pickling import bytes_on_cpu, content_of, storage_of, vector
from .tensor import Tensor, wrap

_ALLOWED = {
    (g.__module__, g.__qualname__): g
    for g in (
        OrderedDict,
        Counter,
        defaultdict,
        set,
        frozenset,
        complex,
        bytearray,
        slice,
        dict,
        list,
        Size,
        device,
        dtype,
        _by_name,
        StateDict,
        Parameter,
        Buffer,
        _rebuild,
        _rebuild_buffer,
    )
}


class _Pickler(pickle.Pickler):
    """Pickles with references in place of tensors; ``storages`` collects the tensors whose storages are to be
    written."""

    def __init__(self, file, protocol: int):
        super().__init__(file, protocol)
        self.storages: dict[int, tuple[int, Tensor]] = {}  # address -> number, a tensor on it

    def reducer_override(self, obj):
        if type(obj) is not Tensor:
            return NotImplemented
        h = obj._h
        address = int(ffi.cast("intptr_t", h.storage))
        number, _ = self.storages.setdefault(address, (len(self.storages), obj))
        return _tensor, (
            number,
            obj.dtype.name,
            tuple(obj.shape),
            obj.stride(),
            obj.storage_offset(),
            obj.requires_grad,
            str(obj.device),
        )


class _Unpickler(pickle.Unpickler):
    """The opposite. With ``weights_only`` it makes nothing but tensors and plain containers."""

    def __init__(self, file, archive: zipfile.ZipFile, weights_only: bool, put):
        super().__init__(file)
        self.archive, self.weights_only, self.put = archive, weights_only, put
        self.bases: dict[int, Tensor] = {}  # a storage's number -> all of it as a vector of bytes

    def find_class(self, module, name):
        if module == __name__ and name == "_tensor":
            return self.tensor
        if not self.weights_only:
            return super().find_class(module, name)
        found = _ALLOWED.get((module, name))
        if found is None:
            raise pickle.UnpicklingError(
                f"Weights only load failed: Unsupported global: GLOBAL {module}.{name} was not an allowed global by "
                "default. Load with weights_only=False only if you trust the source of the file: it can then run any "
                "code."
            )
        return found

    def tensor(self, number, name, shape, strides, offset, requires_grad, where="cpu"):
        """What a reference stands for."""
        if len(shape) != len(strides):
            raise pickle.UnpicklingError(f"load: a tensor of shape {shape} cannot have strides {strides}")
        base = self.bases.get(number)
        if base is None:
            base = self.bases[number] = self.put(read_storage(self.archive, number), where)
        whole, n = vector(base, _by_name(name)), len(shape)
        made = wrap(
            lib.tt_view(
                whole._h,
                n,
                ffi.new("int64_t[]", list(shape) or [0]),
                ffi.new("int64_t[]", list(strides) or [0]),
                offset,
            )
        )
        return made.requires_grad_() if requires_grad else made


def _tensor(*reference):
    """Stands for a tensor in a pickle; the unpickler puts its own method in its place."""
    raise pickle.UnpicklingError("a tensor saved by tinytorch.save can only be read by tinytorch.load")


def read_storage(archive: zipfile.ZipFile, number: int) -> Tensor:
    """A storage of the archive as a vector of bytes."""
    try:
        return bytes_on_cpu(archive.read(f"data/{int(number)}"))
    except KeyError:
        raise pickle.UnpicklingError(f"load: the file has no storage number {number}") from None


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


def save(obj, f, pickle_module=None, pickle_protocol: int = 4, **unused) -> None:
    """Writes ``obj``, any nest of containers and tensors, to a path or a binary file. Tensors that share memory will
    share it again."""
    content = io.BytesIO()
    pickler = _Pickler(content, pickle_protocol)
    pickler.dump(obj)
    with zipfile.ZipFile(f, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("data.pkl", content.getvalue())
        for number, t in pickler.storages.values():
            archive.writestr(f"data/{number}", content_of(storage_of(t).whole))


def load(f, map_location=None, pickle_module=None, *, weights_only: bool = True, mmap=None, **unused):
    """Reads what ``save`` wrote. With ``weights_only`` only tensors, containers and plain values are made;
    pickle.UnpicklingError for anything else. Tensors go where they were, or where ``map_location`` says: a device for
    all, a dict from device to device ("cuda:0" to "cpu"), or a function that gets a storage, as a vector of bytes
    (uint8) on the CPU, and the name of the device where it was, and returns the vector on another one (None: where it
    was). RuntimeError when the device is not there. ``mmap`` is accepted and has no effect."""
    try:
        archive = zipfile.ZipFile(f)
    except zipfile.BadZipFile:
        raise RuntimeError(f"load: {f} is not a file that save() wrote") from None
    with archive:
        try:
            content = archive.read("data.pkl")
        except KeyError:
            raise RuntimeError(f"load: {f} is not a file that save() wrote: it has no data.pkl") from None
        return _Unpickler(io.BytesIO(content), archive, weights_only, _putting(map_location)).load()
