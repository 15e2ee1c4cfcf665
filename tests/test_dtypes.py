"""The table of dtypes (kernels/scalar/dtypes.h, tinytorch/dtypes.py), and that nothing compares codes by order."""

import ast
import itertools
import pathlib
import re

import numpy as np
import pytest
import tinytorch
from compare import DTYPES
from tinytorch import dtypes
from tinytorch.backends.cpu import ffi, lib

ROOT = pathlib.Path(__file__).resolve().parent.parent
KINDS = {
    "b": lib.TT_KIND_BOOL,
    "u": lib.TT_KIND_INT,
    "i": lib.TT_KIND_INT,
    "f": lib.TT_KIND_FLOAT,
    "c": lib.TT_KIND_COMPLEX,
}
COMPLEX = {"complex64": lib.TT_C64, "complex128": lib.TT_C128}
NEWER = ("complex32", "uint16", "uint32", "uint64")


def test_the_tables_of_c_and_python_agree_with_numpy():
    assert [d.name for d in dtypes.ALL] == [ffi.string(lib.tt_dtype_facts(k).name).decode() for k in range(16)]
    assert {d.name for d in dtypes.ALL} == {*DTYPES, *COMPLEX, *NEWER}
    for d in dtypes.ALL:
        assert dtypes.ALL[d.code] is d and lib.tt_itemsize(d.code) == d.itemsize == d.stored.itemsize
        if d.numpy:
            assert (KINDS[d.numpy.kind], d.itemsize, d.typestr) == (d.kind, d.numpy.itemsize, d.numpy.str)
            assert d.is_signed == (d.numpy.kind in "ifc") and dtypes.BY_NUMPY[d.numpy] is d
            assert np.iinfo(d.stored) if d.kind == lib.TT_KIND_INT else True
    assert [d.name for d in dtypes.ALL if d.numpy is None] == ["bfloat16", "complex32"]
    assert [d.name for d in dtypes.ALL if d.compute != d.code] == ["float16", "bfloat16", "complex32"]


def test_complex_codes_are_neither_floating_nor_integral():
    for name, code in COMPLEX.items():
        facts = lib.tt_dtype_facts(code)
        assert ffi.string(facts.name).decode() == name and facts.itemsize == np.dtype(name).itemsize
        assert facts.kind == lib.TT_KIND_COMPLEX > lib.TT_KIND_FLOAT and facts.compute == code
        assert dtypes.DIFFERENTIABLE[code] and not dtypes.FLOATING[code] and not dtypes.INTEGRAL[code]
        d = getattr(tinytorch, name)
        assert d.code == code and d.is_complex and d.to_complex() is d and d.to_real().to_complex() is d
    assert lib.tt_dtype_facts(len(dtypes.ALL)) == lib.tt_dtype_facts(-1) == ffi.NULL


def test_promotion_is_numpys_but_between_half_types():
    """And but for integers with floats, where the float's size counts for nothing."""
    codes = {d.numpy: d.code for d in dtypes.ALL if d.numpy and d.name not in NEWER}
    for (a, x), (b, y) in itertools.product(codes.items(), repeat=2):
        if {a.kind, b.kind} <= {"b", "i", "u"} or a.kind == b.kind or {a.kind, b.kind} == {"f", "c"}:
            wanted = codes[np.promote_types(a, b)]
        else:
            wanted = max((lib.tt_dtype_facts(x).kind, x), (lib.tt_dtype_facts(y).kind, y))[1]
        assert lib.tt_promote(x, y) == wanted, (a, b)
    assert lib.tt_promote(lib.TT_F16, lib.TT_BF16) == lib.tt_promote(lib.TT_BF16, lib.TT_F16) == lib.TT_F32


def test_promotion_is_pytorchs():
    """Between any two dtypes; the wide unsigned integers have none with other integers."""
    torch = pytest.importorskip("torch")
    for a, b in itertools.product(dtypes.ALL, repeat=2):
        results = []
        for library in (torch, tinytorch):
            try:
                d = library.promote_types(getattr(library, a.name), getattr(library, b.name))
                results.append(str(d).split(".")[-1])
            except RuntimeError as refused:
                results.append(str(refused).split(",")[0].removeprefix("promote_types: "))
        assert results[0] == results[1], (a, b)


# Comparisons.

CODE = r"(?:TT_(?:BOOL|U8|I8|I16|I32|I64|F16|BF16|F32|F64|C64|C128|C32|U16|U32|U64)\b)"
DTYPE = r"(?:\bdtype\b|\.dtype\b|->dtype\b)"


def by_order(text: str) -> list[str]:
    """Comparisons in C of a dtype with a number, or of dtypes by order."""
    plain = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
    order = r"(?:<=?|>=?)(?![<>=])"
    return re.findall(
        rf"[^\n]*(?:{DTYPE} *{order} *[\w(]|{DTYPE} *[!=]= *\d|[^<]<=? *{CODE}|[^->]>=? *{CODE}|"
        rf"{CODE} *{order} *\w|TT_(?:KEY_)?CODE(?:\(\w+\))? *[<>=!]=? *\d)[^\n]*",
        plain,
    )


def test_the_search_in_c_finds_what_it_should():
    for line in (
        "if (a->dtype < TT_F16)",
        "x = dtype >= TT_F32 ? 1 : 2;",
        "return a.dtype == 6;",
        "TT_U8 <= code;",
        "if (dtype > 5)",
        "#if TT_CODE(TT_D0) == 5",
        "#elif TT_KEY_CODE > 1",
    ):
        assert by_order(line), line
    for line in (
        "a->dtype == TT_F16",
        "bits >> 4 * dtype & 15",
        "1 << TT_F16",
        "p->dtype != b->dtype",
        "/* dtype < TT_F16 */",
        "[TT_CODE_f32] = x",
    ):
        assert not by_order(line), line


# -1 stands for "not given", and for "there is none".
ALLOWED = re.compile(r"\bdtype (?:<|>=) 0\b|< TT_NUM_(?:DTYPES|CODES)\b|for \(int \w = 0;")


@pytest.mark.parametrize("folder", ["core", "backend", "ops", "cpu", "cuda", "fuse", "api", "python", "scalar"])
def test_no_c_file_compares_dtypes_by_order(folder):
    files = [f for f in (ROOT / "kernels" / folder).rglob("*") if f.suffix in (".c", ".h", ".cuh")]
    assert files
    found = [
        f"{f.name}: {line.strip()}"
        for f in files
        for line in by_order(f.read_text())
        if by_order(ALLOWED.sub("", line))
    ]
    assert not found


def is_code(node: ast.expr, names: frozenset[str]) -> bool:
    """Does the expression give a dtype's code: a variable of one of these names, or the field of a C structure?"""
    if isinstance(node, ast.Name):
        return node.id in names
    if not isinstance(node, ast.Attribute) or node.attr != "dtype":
        return False
    owner = node.value
    if isinstance(owner, ast.Attribute):
        return owner.attr == "_h"
    return isinstance(owner, ast.Name) and owner.id not in TENSORS


TENSORS = frozenset(("self", "input", "other", "t", "x", "a", "b", "out"))  # names whose .dtype is an object, no code


def numbers_compared(source: str, names=frozenset(("code", "dtype"))) -> list[int]:
    """The lines that compare a dtype's code with a number, or by order."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Compare):
            continue
        sides = [node.left, *node.comparators]
        ordered = any(isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)) for op in node.ops)
        single = (n for side in sides for n in (side.elts if isinstance(side, (ast.Tuple, ast.Set)) else [side]))
        numbers = any(isinstance(n, ast.Constant) and type(n.value) is int for n in single)
        if (ordered or numbers) and any(is_code(side, names) for side in sides):
            lines.append(node.lineno)
    return lines


def test_the_search_in_python_finds_what_it_should():
    for line in ("x = t._h.dtype >= 6", "h.dtype == 0", "if code < 6: pass", "t._h.dtype not in (4, 5)", "dtype == 9"):
        assert numbers_compared(line), line
    for line in ("t._h.dtype == lib.TT_I64", "FLOATING[h.dtype]", "code is None", "a._h.dtype != b._h.dtype"):
        assert not numbers_compared(line), line


def test_no_python_file_compares_dtypes_with_numbers():
    files = sorted((ROOT / "tinytorch").rglob("*.py"))
    assert len(files) > 100
    found = []
    for file in files:
        other = file.name in (
            "loss.py",
            "class_loss.py",
            "ctc.py",
            "interpolate.py",
            "reduction.py",
        )  # `code` is no dtype's
        lines = numbers_compared(file.read_text(), frozenset(("dtype",) if other else ("code", "dtype")))
        found += [f"{file.relative_to(ROOT)}:{line}" for line in lines]
    assert not found


TYPED = {
    "sizes": lambda m: m.FloatTensor(2, 3).fill_(1),
    "a size": lambda m: m.HalfTensor(m.Size([2, 2])).zero_(),
    "nothing": lambda m: m.DoubleTensor(),
    "values": lambda m: m.LongTensor([1, 2**60]),
    "floats as integers": lambda m: m.LongTensor([1.7, -1.7]),
    "nested values": lambda m: m.BoolTensor([[True], [False]]),
    "a tensor": lambda m: m.IntTensor(m.ones(2, dtype=m.int32)),
    "type": lambda m: m.ones(2).type(m.LongTensor),
    "type by name": lambda m: m.ones(2).type("torch.DoubleTensor"),
    "type of all tensors": lambda m: m.ones(2, dtype=m.int64).type(m.Tensor),
    "type of all tensors by name": lambda m: m.ones(2, dtype=m.int64).type("torch.Tensor"),
    "new": lambda m: m.ones(2, dtype=m.int64).new([2**60]),
}


@pytest.mark.parametrize("name", TYPED)
def test_typed_tensors(torch, name):
    ours, theirs = TYPED[name](tinytorch), TYPED[name](torch)
    assert ours.dtype.name == str(theirs.dtype).removeprefix("torch.") and ours.tolist() == theirs.tolist()


def test_types_know_their_tensors():
    x = tinytorch.ones(2)
    assert isinstance(x, tinytorch.FloatTensor) and not isinstance(x, tinytorch.LongTensor)
    assert not isinstance(1.0, tinytorch.FloatTensor) and tinytorch.FloatTensor.dtype is tinytorch.float32
    for call in (
        lambda: tinytorch.FloatTensor(x.double()),
        lambda: tinytorch.LongTensor(5.0),
        lambda: tinytorch.set_default_tensor_type("int"),
        lambda: tinytorch.set_default_tensor_type(tinytorch.LongTensor),
    ):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(ValueError, match="invalid type: 'int'"):
        x.type(int)
    assert tinytorch.typename(x) == "tinytorch.FloatTensor" and tinytorch.typename(3) == "int"
    try:
        tinytorch.set_default_tensor_type("torch.DoubleTensor")
        assert tinytorch.zeros(1).dtype is tinytorch.float64
    finally:
        tinytorch.set_default_tensor_type(tinytorch.FloatTensor)
