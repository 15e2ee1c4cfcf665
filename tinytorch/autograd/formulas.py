"""Node classes made from formulas: the derivatives of an operator, as its declaration writes them."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable

from ..backends.native import dtype_of, shape_of
from ..generated_code import code_of
from ..tensor import Tensor
from .node import Node, SavedTensor, new_alias, saved_value

# Parameters that hold numbers, sizes or dtypes in every operator: nobody looks for tensors among what is saved of them.
NEVER_TENSORS = {
    "args", "casts", "code", "correction", "diagonal", "dim", "dims", "eps", "geometry", "how", "ignore", "keepdim",
    "layout", "left", "mode", "offset", "padding_idx", "pads", "reduction", "reverse", "rms", "shifts", "size", "sizes",
    "smoothing", "start", "step", "stride", "unitriangular", "upper",
}  # fmt: skip

# Functions' code objects: the operator, or the Node class, that each belongs to. By id, and kept alive: a code object's
# hash is that of its constants, and a profiler's wrappers have constants without one.
_owners: dict[int, tuple[types.CodeType, str]] = {}


def claim(fn: types.FunctionType, name: str) -> None:
    """Makes the code of ``fn`` the operator's: messages and listeners find it in the frames above them."""
    _owners[id(fn.__code__)] = fn.__code__, name


def owner_of(code: types.CodeType) -> str | None:
    """The operator, or the Node class, whose code this is."""
    found = _owners.get(id(code))
    return found[1] if found else None


def operator_of(frame: types.FrameType | None, inside=None) -> str:
    """The operator at work in ``frame`` or above it: the innermost; "" if none is. ``inside``: a mapping of file names
    that is false where the search ends."""
    while frame is not None and (inside is None or inside[frame.f_code.co_filename]):
        name = owner_of(frame.f_code)
        if name is not None:
            return name
        frame = frame.f_back
    return ""


def parameters(fn) -> tuple[str, ...]:
    """The names of a function's parameters; ``fn.parameters`` where it takes them as ``*args``."""
    code = fn.__code__
    return getattr(fn, "parameters", code.co_varnames[: code.co_argcount])


def generate(source: str, filename: str, namespace: dict, op: str, *names: str) -> None:
    """Runs generated source in ``namespace``, as collections.namedtuple makes its methods. The functions ``names`` get
    code objects of their own, which are the operator's (``owner_of``) and which debuggers show under its name."""
    exec(code_of(source, filename), namespace)
    for name in names:
        fn = namespace[name]
        fn.__code__ = fn.__code__.replace(co_name=op)
        fn.__name__ = fn.__qualname__ = op
        claim(fn, op)


def node_title(op: str) -> str:
    """The name of an operator's Node class where the declaration gives none: ``ExpBackward0`` of ``exp``."""
    return "".join(part.capitalize() for part in op.strip("_").split("_")) + "Backward0"


def not_implemented(op: str):
    """The formula of an operator whose results require grad, though nobody knows their derivative."""

    def formula(g):
        raise NotImplementedError(f"the derivative for '{op}' is not implemented.")

    return formula


class Formulas:
    """Source of a Node class's functions, from its formulas. Note [Formulas]

    A formula is a function whose first parameters are gradients: ``g``, the output's, or where there are several
    outputs ``g_<output>`` (None where none has arrived), or the list of them as ``g``. Its other parameters name what
    it needs, and so what is saved: a parameter of the operator, an output (``out`` where there is only one), one of the
    ``extra`` results, or ``<parameter>_shape``, ``_stride``, ``_dtype`` and ``_device``, for which the tensor itself is
    not kept.
    """

    def __init__(
        self,
        op: str,
        params: tuple[str, ...],
        inputs: list[str],
        outputs: tuple[str, ...],
        extra: tuple[str, ...],
        variadic: bool,
    ):
        self.op, self.params, self.inputs, self.variadic = op, params, inputs, variadic
        self.outputs, self.extra = outputs, extra
        self.gradients = ["g", *(f"g_{name}" for name in outputs)] if len(outputs) > 1 else ["g"]
        self.uses: dict[str, set[int]] = {}  # of each saved name, the inputs whose formulas need it

    def use(self, formula, inputs) -> None:
        """Notes what a formula needs, for the gradients of ``inputs``."""
        for name in parameters(formula):
            if name not in self.gradients and name != "edges":
                self.uses.setdefault(name, set()).update(inputs)

    def field(self, name: str) -> tuple[str, bool, int | None]:
        """A saved name: the expression of its value, whether that is a tensor, and its edge as in ``Node.tensors``."""
        base, _, suffix = name.rpartition("_")
        several = len(self.outputs) > 1 or self.extra
        if name in self.outputs:
            k = self.outputs.index(name)
            return f"alias(out[{k}]._h)" if several else "alias(out._h)", True, -1 - k
        if name in self.extra:
            return f"out[{len(self.outputs) + self.extra.index(name)}]", True, None
        if name in self.params:
            return name, name not in NEVER_TENSORS, self.inputs.index(name) if name in self.inputs else None
        if suffix in ("shape", "dtype") and base in self.params:
            return f"{suffix}_of({base})", False, None
        if suffix == "device" and base in self.params:
            return f"{base}.device", False, None
        if suffix == "stride" and base in self.params:
            return f"{base}.stride()", False, None
        raise TypeError(f"{self.op}: a formula names '{name}', which is no parameter of {self.op}{self.params}")

    def saves(self) -> tuple[str, tuple]:
        """The expression of what is saved, and ``Node.tensors``."""
        fields, tensors = [], []
        for position, (name, users) in enumerate(self.uses.items()):
            value, is_tensor, edge = self.field(name)
            if is_tensor:
                tensors.append((position, name, edge))
            if not self.variadic and len(users) < len(self.inputs):
                value += " if " + " or ".join(f"edges[{i}] is not None" for i in sorted(users)) + " else None"
            elif value.startswith("shape_of") and len(self.inputs) > 1:  # of an argument that may be None
                value += f" if {name.removesuffix('_shape')} is not None else None"
            fields.append(value)
        return f"({''.join(f + ', ' for f in fields)})", tuple(tensors)

    def call(self, name: str, formula) -> str:
        """A call of a formula that is known as ``name``."""
        return f"{name}({', '.join(parameters(formula))})"

    def function(self, kind: str, group: dict, joint, namespace: dict) -> str:
        """The source of ``backward`` or ``first_order``."""
        source = f"def {kind}(g, saved, edges):\n"
        if self.uses:
            source += f"    {', '.join(self.uses)}, = saved\n"
        if len(self.outputs) > 1:
            source += f"    {', '.join(self.gradients[1:])} = g\n"
        if callable(group):
            namespace[f"{kind}_all"] = group
            return source + f"    return {self.call(f'{kind}_all', group)}\n"
        if joint:
            namespace["joint"] = joint
            wanted = " and ".join(f"edges[{i}] is not None" for i in range(len(self.inputs)))
            source += f"    if {wanted}: return {self.call('joint', joint)}\n"
        results = []
        for i, name in enumerate(self.inputs):
            namespace[f"{kind}_{name}"] = group[name]
            call = self.call(f"{kind}_{name}", group[name])
            always = self.variadic or len(self.inputs) == 1
            results.append(call if always else f"None if edges[{i}] is None else {call}")
        return source + (f"    return {results[0]}\n" if self.variadic else f"    return ({', '.join(results)},)\n")


# Parameters as PyTorch's operators call them; of methods the first is "self". Then what some Nodes call otherwise.
_ITS_NAMES = {"input": ("self", "input"), "a": ("self",), "b": ("other",), "out": ("result",)}
_NAMES_IN = {
    "Addcdiv": {"a": "tensor1", "b": "tensor2"},
    "Addcmul": {"a": "tensor1", "b": "tensor2"},
    "Bmm": {"b": "mat2"},
    "Clamp": {"lo": "min", "hi": "max"},
    "ClampMax": {"b": "max"},
    "ClampMin": {"b": "min"},
    "Dot": {"b": "tensor"},
    "Hardtanh": {"lo": "min_val", "hi": "max_val"},
    "LinalgEigh": {"L": "eigenvalues", "V": "eigenvectors"},
    "Mm": {"b": "mat2"},
    "Mv": {"b": "vec"},
    "NativeLayerNorm": {"mean": "result1", "rstd": "result2"},
    "Pow": {"b": "exponent"},
    "SplitWithSizes": {"sizes": "split_sizes"},
    "Transpose": {"a": "dim0", "b": "dim1"},
    "Unfold": {"dim": "dimension"},
}


WRITTEN = ("save", "backward", "first_order")


class Unwritten:
    """Stands for one of the functions of a Node class until any of them is asked for: most programs use few."""

    __slots__ = ("name", "write")

    def __init__(self, name: str, write: Callable[[], None]):
        self.name, self.write = name, write

    def __get__(self, node, cls: type):
        self.write()  # in the place of all that stand so in the class
        return getattr(cls, self.name)


@functools.cache
def saved_attributes(names: tuple[str, ...], node: str = "") -> dict[str, property]:
    """What the Nodes called ``node`` show of their saved values, by PyTorch's names: ``_saved_self``,
    ``_raw_saved_self``."""
    attributes = {}
    known = _ITS_NAMES | {name: (its,) for name, its in _NAMES_IN.get(node, {}).items()}
    for position, name in enumerate(names):
        base, _, suffix = name.rpartition("_")
        called = known.get(name, (name,))
        if suffix == "shape" and base:
            called = tuple([f"{n}_sym_sizes" for n in known.get(base, (base,))])
        for n in called:
            attributes[f"_saved_{n}"] = property(functools.partial(saved_value, position=position))
            attributes[f"_raw_saved_{n}"] = property(functools.partial(SavedTensor, position=position))
    return attributes


def node_class(
    op: str,
    params: tuple[str, ...],
    vjps,
    first_order=None,
    *,
    title: str | dict[str, str] | None = None,
    variadic: bool = False,
    joint=None,
    outputs: tuple[str, ...] = ("out",),
    extra: tuple[str, ...] = (),
    inputs: tuple[str, ...] = (),
) -> type:
    """The Node class of an operator, from one formula per differentiable input: Note [Formulas].

    ``first_order`` holds formulas for first derivatives only, and ``joint`` one that gives all gradients at once
    then, where all are wanted. Where the derivatives share work, ``inputs`` names the differentiable parameters, and
    ``vjps`` (and ``first_order``, if given) is one formula for the tuple of all gradients; those whose entry of its
    parameter ``edges`` is not None are wanted. ``outputs`` are the differentiable results (empty: any number of them),
    and ``extra`` those after them, which have no gradient. The class's ``save(edges, out, *args)`` gives what to save;
    ``saves`` is the same as an expression.

    Note [Names]
    PyTorch names a Node by the overload that was called: ``PowBackward0`` of a number as exponent, ``PowBackward1`` of
    a tensor. A ``title`` with several names has, by name, the condition on the operator's parameters that goes with
    it; the last one stands for all else, and its condition is "". The others are subclasses, ``variants``.
    """
    inputs = list(inputs or vjps)
    formulas = Formulas(op, params, inputs, outputs, extra, variadic)
    apart = bool(first_order or joint)  # else one function is both
    first_order = first_order or vjps
    if callable(vjps):
        for formula in (vjps, first_order):
            formulas.use(formula, range(len(inputs)))
    else:
        first_order = {**vjps, **first_order}
        for name, formula in (*vjps.items(), *first_order.items()):
            formulas.use(formula, [inputs.index(name)])
    saves, tensors = formulas.saves()
    *named, (title, _) = title.items() if isinstance(title, dict) else [(title or node_title(op), "")]

    def write():
        namespace = {"__name__": title, "alias": new_alias, "shape_of": shape_of, "dtype_of": dtype_of}
        source = f"def save(edges, out, {', '.join(params)}):\n    return {saves}\n"
        source += formulas.function("backward", vjps, None, namespace)
        if apart:
            source += formulas.function("first_order", first_order, joint, namespace)
        generate(source, "<derivative>", namespace, title, "backward", *["first_order"] * apart)
        namespace.setdefault("first_order", namespace["backward"])
        for name in WRITTEN:
            setattr(node, name, staticmethod(namespace[name]))

    shown = title.partition("Backward")[0]
    holds = 0 if not tensors else 2 if all(edge is None for _, _, edge in tensors) else 1
    node = type(
        title,
        (Node,),
        {
            "__slots__": ("ports",) if len(outputs) != 1 else (),
            "__module__": __name__,
            "op": op,
            "conjugates": True,
            "tensors": tensors,
            "holds": holds,
            "num_outputs": len(outputs),
            "saves": saves,
            **{name: Unwritten(name, write) for name in WRITTEN},
            **saved_attributes(tuple(formulas.uses), shown if shown in _NAMES_IN else ""),
        },
    )
    if named:
        empty = {"__slots__": (), "__module__": __name__}
        node.variants = {f"Node_{k}": type(called, (node,), empty) for k, (called, _) in enumerate(named)}
        node.choice = "".join(f"Node_{k} if {condition} else " for k, (_, condition) in enumerate(named)) + "Node"
        names = {"Tensor": Tensor, "Node": node, **node.variants}
        exec(code_of(f"def choose({', '.join(params)}):\n    return {node.choice}\n", "<name>"), names)
        node.choose = staticmethod(names["choose"])
    return node
