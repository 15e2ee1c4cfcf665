"""The storages of a file that is being read: of an archive, and of PyTorch's files before 1.6."""

from __future__ import annotations

import mmap
import pickle
import struct

from .archive import Reader
from .backends.cpu import ffi
from .dtypes import uint8
from .ops.create import frombuffer
from .storage import TypedStorage, UntypedStorage, bytes_on_cpu, storage_on, typed
from .tensor import Tensor, owned
from .torch_names import StorageType, check_sparse

MAGIC = 0x1950A86A20F9469CFC6C  # the number that begins a file before 1.6
PROTOCOL = 1001


class Storages:
    """What the references of a pickle stand for. ``put`` puts a storage where it is to be."""

    def __init__(self, put, length: int, skip_data: bool):
        self.put, self.skip_data = put, skip_data
        self.known: dict[str, UntypedStorage] = {}
        self.left = 4 * length  # bytes that may yet be copied
        self.sparse: list = []  # the sparse tensors made, whose places are yet to be checked

    def spend(self, n: int) -> None:
        """Counts bytes that are copied: no file makes more than a multiple of itself."""
        self.left -= n
        if self.left < 0:
            raise pickle.UnpicklingError("the file makes more than it holds")

    def finish(self) -> None:
        """When all is read: checks what could not be checked before."""
        for s in self.sparse:
            check_sparse(s)


class ArchiveStorages(Storages):
    """Those of an archive: each is a member."""

    def __init__(self, archive: Reader, put, mapped: mmap.mmap | None, swapped: bool, skip_data: bool):
        super().__init__(put, archive.length, skip_data)
        self.archive, self.mapped, self.swapped = archive, mapped, swapped

    def __call__(self, reference) -> UntypedStorage | TypedStorage:
        kind = None
        match reference:
            case (str(word), int(number), str(where)) if word == "storage":  # tinytorch's until version 0.2
                key = str(int(number))
            case (str(word), StorageType() as kind, str(key), str(where), int()) if word == "storage":
                pass
            case _:
                raise pickle.UnpicklingError("load: the file refers to something that save() does not write")
        found = self.known.get(key)
        if found is None:
            if f"data/{key}" not in self.archive:
                raise pickle.UnpicklingError(f"load: the file has no storage number {key:.20}")
            found = storage_on(self.bytes(f"data/{key}"))
            if self.swapped and kind is not None and kind.dtype is not None:
                found.byteswap(kind.dtype.to_real())
            found = self.known[key] = self.put(found, where)
        return found if kind is None or kind.dtype is None else typed(found, kind.dtype)

    def bytes(self, name: str) -> Tensor:
        """A member of the archive as a vector of bytes on the CPU."""
        n = self.archive.size(name)
        if self.mapped is not None and n and not self.skip_data:
            return frombuffer(self.mapped, dtype=uint8, count=n, offset=self.archive.offset(name))
        made = owned.tt_empty(uint8.code, 1, (n,))
        if self.skip_data:
            made.zero_()
        elif n:
            self.archive.read_into(name, memoryview(ffi.buffer(made._h.data, n)))
        return made


class LegacyStorages(Storages):
    """Those of a file before 1.6, whose bytes stand behind the pickle: they are made when it names them, and filled
    when it is read."""

    def __init__(self, put, length: int, skip_data: bool):
        super().__init__(put, length, skip_data)
        self.room = length  # bytes of the file that no storage has claimed
        self.sizes: dict[str, tuple[int, int]] = {}  # elements, and bytes of one

    def __call__(self, reference):
        match reference:
            case (str(word), of, *_) if word == "module":  # with its source code, which is not compared
                return of
            case (str(word), StorageType() as kind, str(key), str(where), int(numel), None) if word == "storage":
                pass
            case (str(word), StorageType(), str(), str(), int(), tuple()) if word == "storage":
                raise pickle.UnpicklingError("load: the file is of a PyTorch before 0.4, where storages share memory")
            case _:
                raise pickle.UnpicklingError("load: the file refers to something that save() does not write")
        of = kind.dtype or uint8
        if key not in self.known:
            self.room -= numel * of.itemsize
            if numel < 0 or self.room < 0:
                raise pickle.UnpicklingError(f"load: the file has no {numel} elements: it is corrupt or cut off")
            made = owned.tt_empty(uint8.code, 1, (numel * of.itemsize,)).zero_()
            self.known[key], self.sizes[key] = self.put(storage_on(made), where), (numel, of.itemsize)
        return self.known[key] if kind.dtype is None else typed(self.known[key], of)

    def fill(self, content: bytes, at: int, keys) -> None:
        """Gives the storages of these keys, in this order, what stands in the file from ``at`` on. RuntimeError when
        this is something else."""
        if type(keys) is not list or any(type(key) is not str for key in keys) or {*keys} != {*self.known}:
            raise RuntimeError("load: the file is corrupt: it lists other storages than it names")
        for key in () if self.skip_data else keys:
            numel, size = self.sizes[key]
            if at + 8 + numel * size > len(content) or struct.unpack_from("<q", content, at)[0] != numel:
                raise RuntimeError(f"load: the file is corrupt or cut off: storage {key:.20} has another size")
            at += 8
            if numel:
                self.known[key].whole.copy_(bytes_on_cpu(content[at : at + numel * size]))
            at += numel * size


def load_legacy(content: bytes, storages: LegacyStorages, unpickle):
    """The object of a file before 1.6: four pickles, the keys of its storages, and these. ``unpickle(content, at,
    find)`` reads one pickle and tells where it ends."""
    if content[257:262] == b"ustar":
        raise RuntimeError("load: the file is of a PyTorch before 0.2, in the legacy .tar format, which is not read")
    magic, at = unpickle(content, 0, None)
    if type(magic) is not int or magic != MAGIC:
        raise RuntimeError("load: this is not a file that save() wrote: Invalid magic number; corrupt file?")
    version, at = unpickle(content, at, None)
    if type(version) is not int or version != PROTOCOL:
        raise RuntimeError(f"load: Invalid protocol version: {str(version):.20}")
    _, at = unpickle(content, at, None)  # the machine that wrote it
    found, at = unpickle(content, at, storages)
    keys, at = unpickle(content, at, None)
    storages.fill(content, at, keys)
    return found
