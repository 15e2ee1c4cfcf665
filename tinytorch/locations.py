"""On which device a storage was, and where it goes when it is read. Follows ``torch.serialization``."""

from __future__ import annotations

import re
from collections.abc import Callable

from .backends.cuda import runtime
from .devices import device
from .storage import TypedStorage, UntypedStorage

_registry: list[tuple[int, Callable, Callable]] = []  # in the order in which they are asked


def register_package(priority: int, tagger, deserializer) -> None:
    """Adds a kind of device: ``tagger(storage)`` gives the name of the storage's device, or None where it is none of
    its, and ``deserializer(storage, location)`` puts a storage there. Those of a lower ``priority`` are asked first.
    TypeError where these are no number and no functions. Follows ``torch.serialization.register_package``."""
    if not (isinstance(priority, int) and callable(tagger) and callable(deserializer)):
        raise TypeError("register_package: there must be a priority, an int, and two functions")
    _registry.append((priority, tagger, deserializer))
    _registry.sort(key=lambda entry: entry[0])


def location_tag(storage) -> str:
    """The name that a file has for the device of a storage. RuntimeError where nobody knows it. Follows
    ``torch.serialization.location_tag``."""
    for _, tagger, _ in _registry:
        location = tagger(storage)
        if location:
            return location
    raise RuntimeError(f"don't know how to determine data location of {type(storage).__name__}")


def default_restore_location(storage, location: str):
    """A storage, which is on the CPU, on the device where it was. RuntimeError when this is not there, or nobody knows
    it. Follows ``torch.serialization.default_restore_location``."""
    for _, _, deserializer in _registry:
        found = deserializer(storage, location)
        if found is not None:
            return found
    raise RuntimeError(
        f"don't know how to restore data location of {type(storage).__name__} (tagged with {location:.100}): use "
        "map_location to map storages to a device that is there"
    )


def validate_cuda_device(location: str) -> int:
    """The index of the CUDA device of this name, "cuda" being the current one. RuntimeError when it is not there.
    Follows ``torch.serialization.validate_cuda_device``."""
    index, count = device(location).index, runtime.device_count()
    if not count:
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device, but no CUDA device is available: use "
            "map_location='cpu' to map all storages to the CPU"
        )
    if index is None:
        return runtime.current_device()
    if index >= count:
        raise RuntimeError(
            f"Attempting to deserialize object on CUDA device {index}, but there are {count}: use map_location to map "
            "storages to one of them"
        )
    return index


def _cpu_tag(storage):
    return "cpu" if storage.device.type == "cpu" else None


def _on_cpu(storage, location: str):
    return storage if location == "cpu" else None


def _cuda_tag(storage):
    return str(storage.device) if storage.device.type == "cuda" else None


def _on_cuda(storage, location: str):
    if not re.fullmatch(r"cuda(:\d+)?", location):
        return None
    return storage.to(device=device("cuda", validate_cuda_device(location)))


register_package(10, _cpu_tag, _on_cpu)
register_package(20, _cuda_tag, _on_cuda)


def restoring(map_location):
    """What puts a storage where ``map_location`` says: given it, and the name of the device where it was."""
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, where: default_restore_location(storage, str(map_location.get(where, where)))
    if not callable(map_location):
        if isinstance(map_location, bytes):
            map_location = map_location.decode()
        target = str(device(map_location))
        return lambda storage, where: default_restore_location(storage, target)

    def chosen(storage, where):
        found = map_location(storage, where)
        if found is None:
            return default_restore_location(storage, where)
        if not isinstance(found, (UntypedStorage, TypedStorage)) or found.nbytes() != storage.nbytes():
            raise TypeError(
                "load: a map_location function must return the storage that it is given, on the device it chooses, "
                f"or None, not {type(found).__name__}"
            )
        return found.untyped()

    return chosen
