"""Views, and the ops that only move elements: reshape, permute, expand, flip, cat, ..."""

import numpy as np

from optable.core import ONE, Op, S, T, rough

EVERY = tuple(S(t) for t in ONE)


def method(name):
    """The op as a method alone: x.name(...)."""
    return lambda m, x, *args, **kwargs: getattr(x, name)(*args, **kwargs)


def cast(name):
    """x.to(dtype), with the dtype named by a string in the samples."""
    return lambda m, x, dtype, **kwargs: getattr(x, name)(getattr(m, dtype), **kwargs)


VIEWS = (
    Op(
        "view",
        (
            S(T(2, 3), 6),
            S(T(2, 3), 3, 2),
            S(T(2, 3), (3, -1)),
            S(T(), 1),
            S(T(1), ()),
            S(T(0, 3), 3, 0),
            S(T(2, 3, 4), -1, 4),
            S(T(2, 6, layout="offset"), 2, 3, 2),
            S(T(3, 4, layout="strided"), 12),
            S(T(2, 3, 4, layout="transposed"), 2, 3, 2, 2),
            S(T(2, 6, layout="expanded"), 2, 3, 2),
        ),
        call=method("view"),
        view=True,
    ),
    Op(
        "reshape",
        (
            S(T(2, 3), (6,)),
            S(T(2, 3), (3, 2)),
            S(T(2, 3), (-1,)),
            S(T(), (1, 1)),
            S(T(1), ()),
            S(T(0, 3), (3, 0)),
            S(T(2, 3, layout="transposed"), (6,)),
            S(T(3, 4, layout="strided"), (2, 6)),
            S(T(2, 3, layout="expanded"), (6,)),
            S(T(2, 6, layout="expanded"), (2, 2, 3)),
            S(T(2, 3, layout="offset"), (3, 2)),
            S(T(2, 3), (2, 3)),
        ),
        method=True,
        view=True,
        ref=np.reshape,
    ),
    Op("view_as", (S(T(2, 3), T(3, 2, grad=False)),), call=method("view_as"), view=True),
    Op(
        "reshape_as",
        (S(T(2, 3), T(3, 2, grad=False)), S(T(2, 3, layout="transposed"), T(6, grad=False))),
        call=method("reshape_as"),
        view=True,
    ),
    Op(
        "permute",
        (
            S(T(2, 3), (1, 0)),
            S(T(2, 3, 4), (2, 0, 1)),
            S(T(2, 3, 4), (-1, 0, 1)),
            S(T(), ()),
            S(T(3), (0,)),
            S(T(0, 2), (1, 0)),
            S(T(2, 3, 4, layout="transposed"), (1, 2, 0)),
        ),
        method=True,
        view=True,
    ),
    Op(
        "transpose",
        (
            S(T(2, 3), 0, 1),
            S(T(2, 3, 4), -1, 0),
            S(T(), 0, 0),
            S(T(2, 0), 0, -1),
            S(T(2, 3), 1, 1),
            S(T(2, 3, layout="strided"), 0, 1),
        ),
        method=True,
        inplace=True,
        view=True,
    ),
    Op("swapaxes", (S(T(2, 3, 4), 0, 2),), method=True, view=True, ref=np.swapaxes),
    Op(
        "t",
        (S(T(2, 3)), S(T(3)), S(T()), S(T(0, 2)), S(T(2, 3, layout="transposed"))),
        method=True,
        inplace=True,
        view=True,
    ),
    Op("T", (S(T(2, 3)),), call=lambda m, x: x.T, view=True),
    Op(
        "mT",
        (S(T(2, 3)), S(T(2, 3, 4)), S(T(2, 3, 4, layout="transposed"))),
        call=lambda m, x: x.mT,
        view=True,
    ),
    Op(
        "expand",
        (
            S(T(1, 3), 2, 3),
            S(T(3), 2, 3),
            S(T(1, 3), (2, -1)),
            S(T(), 2, 2),
            S(T(2, 3), 2, 3),
            S(T(1), 0),
            S(T(3, 1, layout="offset"), 4, -1, 2),
            S(T(1, 3, layout="strided"), 2, 3),
        ),
        call=method("expand"),
        view=True,
    ),
    Op("expand_as", (S(T(1, 3), T(2, 3, grad=False)),), call=method("expand_as"), view=True),
    Op("broadcast_to", (S(T(1, 3), (2, 3)), S(T(), (2,))), method=True, view=True, ref=np.broadcast_to),
    Op(
        "squeeze",
        (
            S(T(1, 3, 1)),
            S(T(1, 3, 1), 0),
            S(T(1, 3, 1), -1),
            S(T(1, 3, 1), 1),
            S(T(1, 3, 1), (0, 2)),
            S(T()),
            S(T(), 0),
            S(T(1, 0)),
            S(T(1, 2, 1, layout="transposed"), 2),
        ),
        method=True,
        inplace=True,
        view=True,
    ),
    Op(
        "unsqueeze",
        (
            S(T(2, 3), 0),
            S(T(2, 3), -1),
            S(T(2, 3), 1),
            S(T(), 0),
            S(T(0), -2),
            S(T(2, 3, layout="transposed"), 1),
        ),
        method=True,
        inplace=True,
        view=True,
    ),
    Op(
        "flatten",
        (
            S(T(2, 3, 2)),
            S(T(2, 3, 2), 1),
            S(T(2, 3, 2), 0, 1),
            S(T(2, 3, 2), start_dim=-2),
            S(T()),
            S(T(0, 3)),
            S(T(3)),
            S(T(2, 3, 2, layout="transposed")),
            S(T(2, 3, 2, layout="offset"), 1),
        ),
        method=True,
        view=True,
    ),
    Op(
        "unflatten",
        (S(T(6, 2), 0, (2, 3)), S(T(2, 6), -1, (3, -1)), S(T(6, layout="strided"), 0, (2, 3))),
        method=True,
        view=True,
    ),
    Op(
        "narrow",
        (
            S(T(4, 3), 0, 1, 2),
            S(T(4, 3), -1, 0, 3),
            S(T(4), 0, -2, 2),
            S(T(4), 0, 4, 0),
            S(T(3, 4, layout="transposed"), 1, 1, 2),
        ),
        method=True,
        view=True,
    ),
    Op(
        "select",
        (
            S(T(4, 3), 0, 1),
            S(T(4, 3), -1, -1),
            S(T(3), 0, 2),
            S(T(3, 4, layout="transposed"), 1, 0),
            S(T(3, 4, layout="strided"), 0, 1),
        ),
        method=True,
        view=True,
    ),
    Op(
        "unbind",
        (S(T(3, 2)), S(T(3, 2), 1), S(T(3, 2), -1), S(T(3)), S(T(0, 2)), S(T(3, 2, layout="transposed"))),
        method=True,
        view=True,
    ),
    Op(
        "split",
        (
            S(T(5, 2), 2),
            S(T(5, 2), (2, 3)),
            S(T(2, 6), 3, 1),
            S(T(2, 6), [1, 0, 5], dim=-1),
            S(T(0, 2), 1),
            S(T(5, 2, layout="strided"), 4),
        ),
        method=True,
        view=True,
    ),
    Op(
        "chunk",
        (S(T(5, 2), 2), S(T(2, 6), 4, 1), S(T(6), 3, dim=-1), S(T(2), 5), S(T(3, 4, layout="transposed"), 2)),
        method=True,
        view=True,
    ),
    Op(
        "diagonal",
        (
            S(T(3, 3)),
            S(T(3, 4), 1),
            S(T(4, 3), -1),
            S(T(2, 3, 4), 0, 1, 2),
            S(T(2, 3, 4), 1, dim1=-2, dim2=-1),
            S(T(2, 2), 5),
            S(T(3, 3, layout="transposed"), 1),
            S(T(0, 3)),
        ),
        method=True,
        view=True,
        ref=np.diagonal,
    ),
    Op(
        "as_strided",
        (
            S(T(12), (3, 2), (4, 1)),
            S(T(12), (2, 2), (1, 3), 2),
            S(T(4), (3, 2), (1, 1)),
            S(T(4), (3,), (0,)),
            S(T(3), (), ()),
            S(T(3, 4), (2, 2), (1, 2), storage_offset=1),
            rough(S(T(5, layout="offset"), (2, 2), (1, 2), storage_offset=0)),  # beyond the input
        ),
        method=True,
        view=True,
    ),
    Op(
        "unfold",
        (
            S(T(5), 0, 2, 1),
            S(T(6), 0, 2, 2),
            S(T(3, 5), 1, 3, 2),
            S(T(3, 5), -2, 2, 1),
            S(T(5), 0, 5, 1),
            S(T(4, 3, layout="transposed"), 0, 3, 1),
        ),
        call=method("unfold"),
        view=True,
    ),
    Op(
        "movedim",
        (
            S(T(2, 3, 4), 0, 2),
            S(T(2, 3, 4), -1, 0),
            S(T(2, 3, 4), (0, 1), (2, 0)),
            S(T(3), 0, 0),
            S(T(2, 3, 4, layout="transposed"), 1, 2),
        ),
        method=True,
        view=True,
        ref=np.moveaxis,
    ),
    Op("detach", EVERY, method=True, view=True, grad=False),
    Op("contiguous", EVERY, call=method("contiguous"), view=True),
)

MOVES = (
    Op(
        "flip",
        (
            S(T(2, 3), (0,)),
            S(T(2, 3), (0, 1)),
            S(T(2, 3), (-1,)),
            S(T(3), (0,)),
            S(T(0, 2), (0,)),
            S(T(), ()),
            S(T(2, 3, layout="transposed"), (1,)),
            S(T(2, 3, layout="strided"), (0,)),
            S(T(3, 2, layout="expanded"), (0,)),
        ),
        method=True,
    ),
    Op(
        "roll",
        (
            S(T(5), 2),
            S(T(5), -1),
            S(T(2, 3), 1),
            S(T(2, 3), 1, 0),
            S(T(2, 3), (1, -2), (0, 1)),
            S(T(2, 3), 7, -1),
            S(T(0, 2), 1, 0),
            S(T(2, 3, layout="transposed"), 1, 1),
        ),
        method=True,
        ref=np.roll,
    ),
    Op(
        "tile",
        (
            S(T(2, 3), (2,)),
            S(T(2, 3), ()),
            S(T(), ()),
            S(T(2, 3), (2, 2)),
            S(T(3), (2, 1, 2)),
            S(T(), (3,)),
            S(T(2, 3), (0, 1)),
            S(T(2, 3, layout="transposed"), (1, 2)),
        ),
        method=True,
        ref=np.tile,
    ),
    Op(
        "repeat",
        (S(T(2, 3), 2, 1), S(T(2, 3), 2, 1, 2), S(T(), 3), S(T(3), 0), S(T(2, 3, layout="transposed"), 1, 2)),
        call=method("repeat"),
        ref=lambda x, *sizes: np.tile(x, sizes),
    ),
    Op("clone", EVERY, method=True, ref=np.array),
    *(
        Op(
            f"to({dtype})",
            EVERY,
            call=lambda m, x, dtype=dtype: x.to(getattr(m, dtype)),
            grad=dtype == "float64",
        )
        for dtype in (
            "float64",
            "float32",
            "float16",
            "bfloat16",
            "int64",
            "int32",
            "int16",
            "int8",
            "uint8",
            "bool",
        )
    ),
    *(
        Op(f"{name}()", (S(T(2, 3, layout="transposed")), S(T())), call=method(name), grad=name == "double")
        for name in ("float", "double", "half", "bfloat16", "int", "long", "short", "char", "byte", "bool")
    ),
    Op("type_as", (S(T(2, 3), T(2, dtype="float64")),), call=method("type_as")),
    Op(
        "cat",
        (
            S((T(2, 3), T(1, 3))),
            S((T(2, 3), T(2, 1)), 1),
            S((T(2, 3), T(2, 2)), dim=-1),
            S([T(3)]),
            S((T(0), T(2, 3))),
            S((T(2, 3), T(0, 3), T(1, 3))),
            S((T(2, 3, layout="transposed"), T(2, 3, layout="strided"))),
            S((T(2, 3, layout="expanded"), T(1, 3, layout="offset"), T(2, 3))),
        ),
        out=True,
    ),
    Op(
        "stack",
        (
            S((T(2, 3), T(2, 3))),
            S((T(2, 3), T(2, 3)), 1),
            S([T(2, 3), T(2, 3)], dim=-1),
            S((T(), T(), T())),
            S((T(0), T(0))),
            S((T(2, 3, layout="transposed"), T(2, 3, layout="offset")), 2),
        ),
        out=True,
    ),
    Op(
        "hstack",
        (S((T(2, 3), T(2, 1))), S((T(3), T(2))), S((T(), T())), S((T(2, 3, layout="transposed"), T(2, 3)))),
    ),
    Op(
        "vstack",
        (S((T(2, 3), T(1, 3))), S((T(3), T(3))), S((T(), T())), S((T(2, 3, layout="transposed"), T(3)))),
    ),
    Op(
        "tril",
        (S(T(3, 3)), S(T(3, 4), 1), S(T(2, 3, 3), -1), S(T(3, 3, layout="transposed"))),
        method=True,
        inplace=True,
        ref=np.tril,
    ),
    Op(
        "triu",
        (S(T(3, 3)), S(T(3, 4), 1), S(T(2, 3, 3), -1), S(T(3, 3, layout="transposed"))),
        method=True,
        inplace=True,
        ref=np.triu,
    ),
)

OPS = VIEWS + MOVES
