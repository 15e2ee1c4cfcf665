"""cuDNN's graphs: what is computed is a graph of operations over tensors; the library's heuristics name engines that
can compute it, best first; an engine with its choices becomes a plan, which is kept and executed with the addresses of
the tensors.

Everything is a descriptor with attributes. Names and numbers are those of cudnn_graph.h, without the prefixes."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence

from ..cpu import OutOfMemoryError, ffi, lib
from . import libcuda
from .binding import Library
from .libcuda import check
from .scratch import memory

DECLARATIONS = """
    size_t cudnnGetVersion(void);
    const char *cudnnGetErrorString(int status);
    void cudnnGetLastErrorString(char *message, size_t size);
    int cudnnCreate(void **handle);
    int cudnnSetStream(void *handle, intptr_t stream);
    int cudnnBackendCreateDescriptor(int kind, void **descriptor);
    int cudnnBackendDestroyDescriptor(void *descriptor);
    int cudnnBackendFinalize(void *descriptor);
    int cudnnBackendSetAttribute(void *descriptor, int attribute, int type, int64_t count, const void *values);
    int cudnnBackendGetAttribute(void *descriptor, int attribute, int type, int64_t room, int64_t *count, void *values);
    int cudnnBackendExecute(void *handle, void *plan, void *variant_pack);
"""


class GraphError(RuntimeError):
    """What cuDNN refused."""


class _Cudnn(Library):
    def error(self, function: str, status: int) -> RuntimeError:
        room = self.ffi.new("char[]", 1024)
        self.lib.cudnnGetLastErrorString(room, 1024)
        why = self.ffi.string(room).decode(errors="replace").strip()
        text = self.ffi.string(self.lib.cudnnGetErrorString(status)).decode()
        return GraphError(f"cuDNN error: {text} when calling `{function}`" + (f": {why}" if why else ""))


_dnn = _Cudnn("cudnn", DECLARATIONS, "cudnnGetErrorString", (9,), "nvidia-cudnn-cu13")

# Types of attributes, cudnnBackendAttributeType_t, and how a value of each lies in memory.
HANDLE, DATA_TYPE, BOOLEAN, INT64, FLOAT, DOUBLE, VOID_PTR, CONVOLUTION_MODE, HEUR_MODE = range(9)
NUMERICAL_NOTE, POINTWISE_MODE, BACKEND_DESCRIPTOR = 11, 14, 15
REDUCTION_OPERATOR_TYPE, BEHAVIOR_NOTE, INT32, RNG_DISTRIBUTION = 18, 19, 23, 29
_STORED = {
    HANDLE: "void *[]",
    BOOLEAN: "bool[]",
    INT64: "int64_t[]",
    FLOAT: "float[]",
    DOUBLE: "double[]",
    VOID_PTR: "intptr_t[]",
    BACKEND_DESCRIPTOR: "void *[]",
}  # the others are enumerations

# Kinds of descriptors that all graphs have. Operations have their own.
ENGINE, ENGINECFG, ENGINEHEUR, EXECUTION_PLAN, OPERATIONGRAPH, TENSOR = 2, 3, 4, 5, 15, 17

# Data types.
DATA_FLOAT, DATA_DOUBLE, DATA_HALF, DATA_INT32, DATA_BFLOAT16, DATA_INT64, DATA_BOOLEAN = 0, 1, 2, 4, 9, 10, 11
DATA_TYPES = {
    lib.TT_F32: DATA_FLOAT,
    lib.TT_F64: DATA_DOUBLE,
    lib.TT_F16: DATA_HALF,
    lib.TT_BF16: DATA_BFLOAT16,
    lib.TT_I32: DATA_INT32,
    lib.TT_I64: DATA_INT64,
}

# What an engine says of its numbers.
TENSOR_CORE, DOWN_CONVERT_INPUTS, REDUCED_PRECISION_REDUCTION, FFT, NONDETERMINISTIC, WINOGRAD = range(6)

HEUR_MODE_FALLBACK, HEUR_MODE_A = 2, 3
_FIRST_ENGINES, _MOST_ENGINES = 3, 64  # asked for first, as one of them will do, and then
_PLANS = 4096  # kept for a device
NO_LIMIT = 1 << 62


class Descriptor:
    """One of the library's descriptors; it keeps those that it names alive. Attributes are set until ``finalize``."""

    __slots__ = ("pointer", "_keeps")

    def __init__(self, kind: int, attributes: Iterable[tuple] = (), finalize: bool = True):
        """``attributes``: of each its number, its type, and its values."""
        place = _dnn.ffi.new("void **")
        _dnn.call("cudnnBackendCreateDescriptor", kind, place)
        self.pointer = _dnn.ffi.gc(place[0], _dnn.lib.cudnnBackendDestroyDescriptor)
        self._keeps = []
        for attribute in attributes:
            self.set(*attribute)
        if finalize:
            self.finalize()

    def set(self, attribute: int, type_: int, *values) -> None:
        """Numbers, addresses, or descriptors."""
        if type_ == BACKEND_DESCRIPTOR:
            self._keeps += values
            values = [value.pointer for value in values]
        stored = _dnn.ffi.new(_STORED.get(type_, "int[]"), values)
        _dnn.call("cudnnBackendSetAttribute", self.pointer, attribute, type_, len(values), stored)

    def finalize(self) -> None:
        """From now on it can be used, and not changed."""
        _dnn.call("cudnnBackendFinalize", self.pointer)

    def get(self, attribute: int, type_: int, room: int = 1) -> list:
        """The values, as many as there are and as there is room for; none where the library has none."""
        values = _dnn.ffi.new(_STORED.get(type_, "int[]"), room)
        count = _dnn.ffi.new("int64_t *")
        _dnn.call("cudnnBackendGetAttribute", self.pointer, attribute, type_, room, count, values)
        return [values[k] for k in range(min(count[0], room))]

    def get_descriptors(self, attribute: int, kind: int, room: int = 1) -> list[Descriptor]:
        """Those of an attribute, which keep this one: the library fills in descriptors that it is given."""
        made = [Descriptor(kind, finalize=False) for _ in range(room)]
        for descriptor in made:
            descriptor._keeps.append(self)
        values = _dnn.ffi.new("void *[]", [d.pointer for d in made])
        count = _dnn.ffi.new("int64_t *")
        _dnn.call("cudnnBackendGetAttribute", self.pointer, attribute, BACKEND_DESCRIPTOR, room, count, values)
        return made[: count[0]]


def tensor(
    uid: int,
    dtype: int,
    shape: Sequence[int],
    strides: Sequence[int],
    alignment: int = 16,
    virtual: bool = False,
    by_value: bool = False,
) -> Descriptor:
    """A tensor of a graph, ``dtype`` one of DATA_...; ``virtual``: it is only handed from one operation to another;
    ``by_value``: its one number lies in the CPU's memory."""
    attributes = [
        (901, DATA_TYPE, dtype),
        (902, INT64, *shape),
        (903, INT64, *strides),
        (906, INT64, uid),
        (900, INT64, alignment),
    ]
    if virtual:
        attributes.append((907, BOOLEAN, True))
    if by_value:
        attributes.append((908, BOOLEAN, True))
    return Descriptor(TENSOR, attributes)


def _pointer(x):
    """For C."""
    return ffi.cast("void *", int(_dnn.ffi.cast("intptr_t", x)))


class Handle:
    """The library's state for a device whose context was current."""

    __slots__ = ("pointer", "device", "told", "plans")

    def __init__(self, device: int):
        from . import cublas  # it reads the settings, whose module imports this one

        cublas.prepare(device)  # who needs the one will need the other, too
        self.pointer = _dnn.made("cudnnCreate", None, "void *")  # for as long as the process runs
        names = "CreateDescriptor", "SetAttribute", "Finalize", "Execute", "DestroyDescriptor"
        functions = [_dnn.address(name) for name in (*(f"cudnnBackend{name}" for name in names), "cudnnSetStream")]
        self.told = ffi.new("tt_cudnn *", [*functions, _pointer(self.pointer), ffi.NULL])
        self.device = device
        self.plans: dict = {}  # by problem


_handles: dict[int, Handle] = {}
_opening = threading.RLock()
_keeping = threading.RLock()  # held while plans come and go


# A graph that was recorded runs a plan's kernels, which go with the plan: once there are graphs, plans stay. Others
# stay for a while: another thread may be executing one.
_graphs: list[bool] = []
_retired: list = []


def expect_graphs() -> None:
    """What is executed from now on may be recorded."""
    _graphs[:] = [True]


def handle_of(device: int) -> Handle:
    """The device's, whose context is current."""
    found = _handles.get(device)
    if found is None:
        with _opening:
            found = _handles.get(device) or _handles.setdefault(device, Handle(device))
    return found


class Plan:
    """How a graph is computed: an engine with its choices."""

    __slots__ = ("_descriptor", "_handle", "told", "workspace", "notes", "engine")

    def __init__(self, handle: Handle, config: Descriptor, notes: frozenset[int] = frozenset(), engine: int = -1):
        self._handle, self.notes, self.engine = handle, notes, engine
        self._descriptor = Descriptor(
            EXECUTION_PLAN, [(400, HANDLE, handle.pointer), (401, BACKEND_DESCRIPTOR, config)]
        )
        self.workspace = self._descriptor.get(402, INT64)[0]
        self.told = ffi.new("tt_graph_plan *", [handle.told, _pointer(self._descriptor.pointer), self.workspace])

    def execute(self, addresses: dict[int, int], stream: int) -> None:
        """Tells the stream to compute the graph of the tensors at these addresses, by their uids."""
        space = memory(self._handle.device, self.workspace, "cuDNN") if self.workspace else None
        try:
            uids, values, at = list(addresses), list(addresses.values()), space.data if space else ffi.NULL
            status = lib.tt_cudnn_execute(self.told, len(uids), uids, values, at, ffi.cast("void *", stream))
            if status:
                raise _dnn.error("cudnnBackendExecute", status)
        finally:
            if space:
                lib.tt_free(space)  # the stream's next work may have it


def plans(
    handle: Handle,
    operations: Sequence[Descriptor],
    allowed: Callable[[frozenset[int]], bool],
    most_workspace: int = NO_LIMIT,
) -> Iterator[Plan]:
    """Plans for the graph of the operations, best first as the library guesses, of engines whose notes on their numbers
    are allowed, and which need no more bytes to work in. GraphError where the library does not know such graphs."""
    graph = Descriptor(OPERATIONGRAPH, [(800, HANDLE, handle.pointer), (801, BACKEND_DESCRIPTOR, *operations)])
    for mode in (HEUR_MODE_A, HEUR_MODE_FALLBACK):
        try:
            found = Descriptor(ENGINEHEUR, [(201, BACKEND_DESCRIPTOR, graph), (200, HEUR_MODE, mode)])
            configs = found.get_descriptors(202, ENGINECFG, _FIRST_ENGINES)
        except GraphError:
            continue  # the mode knows none
        for config in itertools.chain(configs, _further(found, len(configs))):
            try:
                engine = config.get_descriptors(300, ENGINE)[0]
                notes = frozenset(engine.get(1303, NUMERICAL_NOTE, 16))
                if not allowed(notes):
                    continue
                plan = Plan(handle, config, notes, engine.get(1301, INT64)[0])
            except GraphError:
                continue  # the engine does not do it after all
            if plan.workspace <= most_workspace:
                yield plan


def _further(heuristic: Descriptor, known: int) -> Iterator[Descriptor]:
    """The engines after those known, if there may be some."""
    if known == _FIRST_ENGINES:
        yield from heuristic.get_descriptors(202, ENGINECFG, _MOST_ENGINES)[known:]


def fastest(found: Iterable[Plan], limit: int, addresses: dict[int, int], stream: int) -> Plan | None:
    """Of the first plans, as many as ``limit``, the one that takes the least time; its results are computed too."""
    best = None
    for plan in itertools.islice(found, limit or None):
        try:
            time = min(_milliseconds(plan, addresses, stream) for _ in range(3))
        except (GraphError, OutOfMemoryError):
            continue
        if best is None or time < best[0]:
            best = time, plan
    return best and best[1]


def is_capturing(stream: int) -> bool:
    """Is what the stream is told recorded as a graph? Then nothing can be timed."""
    status = ffi.new("int *")
    check(libcuda.library().cuStreamIsCapturing(ffi.cast("void *", stream), status), "asking a stream")
    return status[0] != 0


def _milliseconds(plan: Plan, addresses: dict[int, int], stream: int) -> float:
    driver, pointer = libcuda.library(), ffi.cast("void *", stream)
    events = [libcuda.made(driver.cuEventCreate, "making an event", 0) for _ in range(2)]
    out = ffi.new("float *")
    try:
        check(driver.cuEventRecord(events[0], pointer), "recording an event")
        plan.execute(addresses, stream)
        check(driver.cuEventRecord(events[1], pointer), "recording an event")
        check(driver.cuEventSynchronize(events[1]), "waiting for an event")
        check(driver.cuEventElapsedTime(out, *events), "comparing the times of two events")
        return out[0]
    finally:
        for event in events:
            driver.cuEventDestroy_v2(event)


def kept_plan(handle: Handle, key, make: Callable[[], object]):
    """What ``make`` gave for the problem when it was met first; ``key`` holds all that it depends on."""
    found = handle.plans.get(key, handle)  # the handle: there is none, which a None may be
    return keep_plan(handle, key, make()) if found is handle else found


def keep_plan(handle: Handle, key, plan):
    """From now on this one is the problem's. C forgets the one before it, of which it may have been told."""
    with _keeping:
        before, full = handle.plans.get(key), len(handle.plans) >= _PLANS
        if full or before is not None:
            lib.tt_cuda_forget_plans()
        if full:
            if not _graphs:
                _retired.clear()
            _retired.extend(handle.plans.values())
            handle.plans.clear()
        elif before is not None:
            _retired.append(before)
        handle.plans[key] = plan
    return plan


def version() -> int:
    """As in 91900 for 9.19.0. OSError where the library is not installed."""
    return _dnn.lib.cudnnGetVersion()
