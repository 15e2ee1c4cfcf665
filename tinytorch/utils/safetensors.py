"""Files of the safetensors format, which have tensors by name and nothing else. Follows ``safetensors.torch``.

The safetensors package (``pip install tinytorch[safetensors]``) reads and checks headers, and writes files. The
elements are not read: a tensor shows the file, which is mapped, and what is written to it stays in memory.

>>> from tinytorch.utils import safetensors
>>> safetensors.load(safetensors.save({"w": tt.arange(3)}))
{'w': tensor([0, 1, 2])}
"""

from __future__ import annotations

import math
import mmap
import os
from collections import defaultdict

from .. import dtypes
from ..devices import device as _device
from ..layouts import strided
from ..ops.create import empty, frombuffer
from ..tensor import Tensor

try:
    import safetensors as _package
except ImportError as e:
    raise ImportError("utils.safetensors wants the safetensors package: pip install tinytorch[safetensors]") from e

__all__ = ["load", "load_file", "load_model", "safe_open", "save", "save_file", "save_model"]

_DTYPES = {
    "BOOL": dtypes.bool, "U8": dtypes.uint8, "I8": dtypes.int8, "I16": dtypes.int16, "I32": dtypes.int32,
    "I64": dtypes.int64, "F16": dtypes.float16, "BF16": dtypes.bfloat16, "F32": dtypes.float32, "F64": dtypes.float64,
    "C64": dtypes.complex64, "U16": dtypes.uint16, "U32": dtypes.uint32, "U64": dtypes.uint64,
}  # fmt: skip


def _dtype_of(name: str, code: str) -> dtypes.dtype:
    if code not in _DTYPES:
        raise NotImplementedError(f"safetensors: {name!r} is of dtype {code}, which tinytorch does not have")
    return _DTYPES[code]


def _tensor(buffer, name: str, code: str, shape, offset: int) -> Tensor:
    """A tensor on the memory of a buffer, or on a copy where this is not aligned to its elements."""
    of, shape = _dtype_of(name, code), tuple(shape)
    count = math.prod(shape)
    if not count:
        return empty(shape, dtype=of)
    if offset % of.itemsize:
        buffer, offset = bytearray(memoryview(buffer)[offset : offset + count * of.itemsize]), 0
    return frombuffer(buffer, dtype=of, count=count, offset=offset).reshape(shape)


class safe_open:
    """A file of which tensors are read as they are asked for; a context. Follows ``safetensors.safe_open``.

    Args:
        filename: its path
        framework: "pt", "torch" or "tinytorch", which mean the same; ValueError for others
        device: where tensors go
        backend: "mmap": tensors show the file; "pread": they are read. ValueError for others
    Raises:
        safetensors.SafetensorError: the file is corrupt, cut off, or none of this format
        FileNotFoundError: it is not there
    """

    def __init__(self, filename, framework="pt", device="cpu", *, backend: str = "mmap"):
        if framework not in ("pt", "torch", "pytorch", "tinytorch"):
            raise ValueError(f"safe_open: framework {framework!r} is invalid: tensors are tinytorch's")
        if backend not in ("mmap", "pread"):
            raise ValueError(f"safe_open: backend must be 'mmap' or 'pread', got {backend!r}")
        self._device = _device(device)
        self._path = os.fspath(filename)
        self._file = _package.safe_open(self._path, "numpy")
        with open(self._path, "rb") as f:
            start = 8 + int.from_bytes(f.read(8), "little")
            self._mapped = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_COPY) if backend == "mmap" else None
        self._places: dict[str, tuple[int, int]] = {}  # where in the file a tensor begins, and its bytes
        for name in self._file.offset_keys():  # as they stand in the file, without gaps: the package has checked it
            code, shape = self._facts(name)
            size = (math.prod(shape) * _bits(code) + 7) // 8
            self._places[name] = start, size
            start += size

    def _facts(self, name: str) -> tuple[str, list[int]]:
        part = self._file.get_slice(name)
        return part.get_dtype(), part.get_shape()

    def _whole(self, name: str) -> Tensor:
        """A tensor on the CPU."""
        code, shape = self._facts(name)
        offset, size = self._places[name]
        if self._mapped is not None:
            return _tensor(self._mapped, name, code, shape, offset)
        content = bytearray(size)
        with open(self._path, "rb") as f:
            f.seek(offset)
            f.readinto(content)
        return _tensor(content, name, code, shape, 0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """The file stays mapped as long as a tensor shows it."""

    def keys(self) -> list[str]:
        """The names of the tensors."""
        return self._file.keys()

    def offset_keys(self) -> list[str]:
        """The names of the tensors, as they stand in the file."""
        return self._file.offset_keys()

    def metadata(self) -> dict[str, str] | None:
        """The texts of the header."""
        return self._file.metadata()

    def get_tensor(self, name: str) -> Tensor:
        """A tensor. NotImplementedError for one of a dtype that tinytorch does not have; SafetensorError where there is
        none of this name."""
        return self._whole(name).to(self._device)

    def get_tensors(self) -> dict[str, Tensor]:
        """All tensors, by name."""
        return {name: self.get_tensor(name) for name in self.keys()}

    def get_slice(self, name: str) -> _Slice:
        """A tensor of which parts are taken by indexing."""
        return _Slice(self, name)


class _Slice:
    """A tensor of a file, before it is read."""

    def __init__(self, file: safe_open, name: str):
        self._file, self._name = file, name
        self._code, self._shape = file._facts(name)

    def get_shape(self) -> list[int]:
        """Its shape."""
        return self._shape

    def get_dtype(self) -> str:
        """The format's name of its dtype."""
        return self._code

    def __getitem__(self, key) -> Tensor:
        return self._file._whole(self._name)[key].to(self._file._device)


def _bits(code: str) -> int:
    """Of an element of a dtype: they end its name, but for these."""
    if code in ("BOOL", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"):
        return 8
    return int("".join(c for c in code.partition("_")[0] if c.isdigit()))


def load_file(filename, device="cpu", *, backend: str = "mmap") -> dict[str, Tensor]:
    """The tensors of a file, by name. Raises what ``safe_open`` does. Follows ``safetensors.torch.load_file``."""
    with safe_open(filename, device=device, backend=backend) as f:
        return f.get_tensors()


def load(data: bytes) -> dict[str, Tensor]:
    """The tensors of a file that is in memory. SafetensorError for what is none. Follows ``safetensors.torch.load``."""
    return {
        name: _tensor(part["data"], name, part["dtype"], part["shape"], 0) for name, part in _package.deserialize(data)
    }


def save_file(tensors: dict[str, Tensor], filename, metadata: dict[str, str] | None = None) -> None:
    """Writes tensors, by name, to a file, which replaces one that is there when it is whole. Follows
    ``safetensors.torch.save_file``.

    Raises:
        ValueError: no dictionary of tensors, or one of them is sparse, or not contiguous
        RuntimeError: tensors share memory: see ``save_model``
    """
    kept, specs = _specs(tensors)
    _package.serialize_file(specs, os.fspath(filename), metadata)
    del kept


def save(tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """What ``save_file`` writes. Follows ``safetensors.torch.save``."""
    kept, specs = _specs(tensors)
    made = bytes(_package.serialize(specs, metadata))
    del kept
    return made


def _specs(tensors) -> tuple[list, dict]:
    """The tensors on the CPU, which must live while their memory is read, and what the package wants to know."""
    if not isinstance(tensors, dict):
        raise ValueError(f"Expected a dict of [str, Tensor] but received {type(tensors)}")
    for name, t in tensors.items():
        if not isinstance(t, Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected Tensor but received {type(t)}")
        if t.layout is not strided:
            raise ValueError(f"`{name}` is a sparse tensor, which the format does not have: make it dense before")
        if not t.is_contiguous():
            raise ValueError(f"`{name}` is a non contiguous tensor, which the format lacks: use `.contiguous()`")
        if t.dtype not in _DTYPES.values():
            raise ValueError(f"`{name}` is of dtype {t.dtype.name}, which the format does not have")
    failing = [names for names in _sharing(tensors) if len(names) > 1]
    if failing:
        raise RuntimeError(
            f"Some tensors share memory, this will lead to duplicate memory on disk and potential differences when "
            f"loading them again: {failing}. A potential way to correctly save your model is to use `save_model`."
        )
    kept = [t.detach().cpu() for t in tensors.values()]
    specs = {
        name: _package.TensorSpec(
            dtype=t.dtype.name, shape=list(t.shape), data_ptr=t.data_ptr(), data_len=t.numel() * t.itemsize
        )
        for name, t in zip(tensors, kept)
    }
    return kept, specs


# Tensors that share memory: the format has none.


def _place(t: Tensor) -> tuple[int, int]:
    """Where a contiguous tensor begins and ends."""
    return t.data_ptr(), t.data_ptr() + t.numel() * t.itemsize


def _sharing(tensors: dict[str, Tensor]) -> list[set[str]]:
    """The names of the tensors, those together whose memory overlaps."""
    by_storage: dict[tuple, list[str]] = defaultdict(list)
    for name, t in tensors.items():
        if t.untyped_storage().nbytes() and t.data_ptr():
            by_storage[str(t.device), t.untyped_storage().data_ptr()].append(name)
    groups: list[set[str]] = []
    for names in by_storage.values():
        end = None
        for name in sorted(names, key=lambda n: _place(tensors[n])):
            start, stop = _place(tensors[name])
            if end is not None and start < end:
                groups[-1].add(name)
            else:
                groups.append({name})
            end = max(stop, end or stop)
    return groups


def _doubles(state: dict[str, Tensor], preferred=()) -> dict[str, list[str]]:
    """The names that stand for the same memory as another, by that one, which is kept: of ``preferred`` if it can be.
    RuntimeError where none shows all of the memory."""
    found = {}
    for names in _sharing(state):
        if len(names) < 2:
            continue
        whole = [
            n for n in sorted(names) if state[n].numel() * state[n].itemsize == state[n].untyped_storage().nbytes()
        ]
        if not whole:
            raise RuntimeError(
                "Error while trying to find names to remove to save state dict, but found no suitable name to keep for "
                f"saving amongst: {names}. None is covering the entire storage."
            )
        kept = next((n for n in whole if n in preferred), whole[0])
        found[kept] = [n for n in sorted(names) if n != kept]
    return found


def save_model(model, filename, metadata: dict[str, str] | None = None, force_contiguous: bool = True) -> None:
    """Writes a module's state dict: of tensors that share memory one, and under the names of the others, in
    ``metadata``, its name. Follows ``safetensors.torch.save_model``.

    Args:
        model: a module
        filename: where to
        metadata: texts for the header
        force_contiguous: whether tensors that are not contiguous are written as if they were; ValueError else
    """
    state = dict(model.state_dict())
    metadata = dict(metadata or {})
    for kept, others in _doubles(state).items():
        for name in others:
            metadata.setdefault(name, kept)
            del state[name]
    if force_contiguous:
        state = {name: t.contiguous() for name, t in state.items()}
    save_file(state, filename, metadata or None)


def load_model(model, filename, strict: bool = True, device="cpu", *, backend: str = "mmap") -> tuple:
    """Gives a module what ``save_model`` wrote. Follows ``safetensors.torch.load_model``.

    Args:
        model: the module
        filename: the file
        strict: whether names of the module that the file lacks, or the other way round, are an error
        device: where tensors go before they are copied
        backend: as of ``safe_open``
    Returns:
        The names that the file lacks, and those that the module lacks.
    Raises:
        RuntimeError: with ``strict``, there are such names
    """
    state = load_file(filename, device, backend=backend)
    doubles = _doubles(model.state_dict(), state.keys())
    missing, unexpected = model.load_state_dict(state, strict=False)
    lacking = set(missing)
    for name in [name for others in doubles.values() for name in others]:
        if name in lacking:
            lacking.remove(name)
        else:
            unexpected.append(name)
    if strict and (lacking or unexpected):
        told = f"Error(s) in loading state_dict for {type(model).__name__}:"
        for kind, names in (("Missing", lacking), ("Unexpected", unexpected)):
            if names:
                told += f"\n    {kind} key(s) in state_dict: " + ", ".join(f'"{n}"' for n in sorted(names))
        raise RuntimeError(told)
    return lacking, unexpected
