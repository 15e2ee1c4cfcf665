"""The graph of every operator of the table beside PyTorch's: the names of Nodes, and how many bytes they keep."""

import warnings

import pytest
from optable import OPS
from optable.core import make

import tinytorch

# Where one Node here, and one there, have different names: ours, and PyTorch's.
OTHER_NAMES = {
    "F.dropout": {("NativeDropoutBackward0", "MulBackward0")},  # p=1
    "alias_copy": {("CloneBackward0", "AliasBackward0_copy")},
    "F.linear_cross_entropy": {  # in chunks
        (
            "LinearCrossEntropyBackward0",
            "GeneratedBackwardFor_torch_nn__linear_cross_entropy_batch_chunked_no_reduction_defaultBackward",
        )
    },
    "atleast_2d": {("ViewBackward0", "UnsqueezeBackward0")},
    "atleast_3d": {("ViewBackward0", "UnsqueezeBackward0")},
    "block_diag": {("CatBackward0", "BlockDiagBackward0")},
    "clamp": {  # one bound alone is clamp_min or clamp_max
        ("ClampMinBackward0", "ClampBackward1"),
        ("ClampMaxBackward0", "ClampBackward1"),
        ("ClampMinBackward1", "ClampBackward0"),
        ("ClampMaxBackward1", "ClampBackward0"),
    },
    "deg2rad": {("MulBackward0", "Deg2RadBackward0")},
    "diag": {("AsStridedScatterBackward0", "DiagEmbedBackward0")},
    "diag_embed": {("AsStridedScatterBackward0", "DiagEmbedBackward0")},
    "diagonal_scatter": {("AsStridedScatterBackward0", "DiagonalScatterBackward0")},
    "diff": {("CloneBackward0", "CopyBackwards")},  # n=0
    "div": {("DivBackward0", "DivBackward2")},  # rounding_mode=None
    "frobenius_norm": {("LinalgVectorNormBackward0", "NormBackward1")},
    "index_fill": {("IndexFillBackward0", "IndexFillBackward1")},  # a 0-d tensor
    "index_reduce": {("ScatterReduceBackward0", "IndexReduceBackward0")},
    "matmul": {("MmBackward0", "DotBackward0"), ("MmBackward0", "MvBackward0")},  # one operator for all products
    "mean": {("MeanBackward0", "MeanBackward1")},  # dim=()
    "nan_to_num": {("WhereBackward0", "NanToNumBackward0")},
    "norm_except_dim": {("LinalgVectorNormBackward0", "NormBackward0")},
    "rad2deg": {("MulBackward0", "Rad2DegBackward0")},
    "reshape": {("ViewBackward0", "ReshapeAliasBackward0")},
    "rot90": {("FlipBackward0", "Rot90Backward0")},
    "rrelu": {("LeakyReluBackward0", "RreluWithNoiseBackward0")},  # without training
    "rsub": {("SubBackward0", "RsubBackward0")},
    "__rsub__": {("SubBackward0", "RsubBackward0")},
    "scatter": {("ScatterBackward0", "ScatterBackward1")},  # a number
    "scatter_reduce": {("ScatterAddBackward0", "ScatterReduceBackward0")},
    "sort": {("SortBackward0", "SortBackward1")},  # stable=True
    "split": {("SplitWithSizesBackward0", "SplitBackward0")},  # of nothing
    "sum": {("SumBackward0", "SumBackward1")},  # dim=()
    "vdot": {("DotBackward0", "VdotBackward0")},
    "x @ y": {("MmBackward0", "DotBackward0"), ("MmBackward0", "MvBackward0")},
}

# Operators that keep more than PyTorch's, and why.
MORE_BYTES = {
    "__rdiv__": "a division, where PyTorch multiplies by the reciprocal",
    "affine_grid": "a composition, where PyTorch has a kernel",
    "binary_cross_entropy_with_logits": "with pos_weight, a composition",
    "bilinear": "a composition, where PyTorch has a kernel",
    "combinations": "the places, 8 bytes each, instead of a mask",
    "F.linear_cross_entropy": "the input of cross_entropy, and what the logits of a chunk are computed from again",
    "cov": "a composition",
    "cross_entropy": "the input, which is there anyway, and two numbers a row, instead of log-probabilities",
    "ctc_loss": "the lengths as tensors, where PyTorch has lists",
    "gaussian_nll_loss": "a mask beside the clamped variances",
    "getitem advanced": "a mask's places, 8 bytes each, so that backward need not look for them again",
    "grid_sample": "a composition, where PyTorch has a kernel",
    "group_norm": "a contiguous copy of an input that is none, which both directions read",
    "index_put": "a mask's places",
    "linalg.householder_product": "a composition, where PyTorch has a kernel",
    "masked_scatter": "a mask's places",
    "masked_select": "a mask's places",
    "multi_margin_loss": "a composition",
    "multilabel_margin_loss": "a composition, where PyTorch has a kernel",
    "nll_loss": "two numbers a row",
    "orgqr": "a composition, where PyTorch has a kernel",
    "ormqr": "a composition, where PyTorch has a kernel",
    "polar": "a composition, where PyTorch has a kernel",
    "renorm": "a composition, where PyTorch has a kernel",
    "scaled_dot_product_attention": "where the mask's gradient is wanted, a composition",
    "segment_reduce": "a composition: the number of each element's segment",
    "setitem": "a mask's places",
    "special.ndtr": "the input, which is there anyway, where PyTorch has a composition",
}
MORE_BYTES |= dict.fromkeys(
    ("rnn_tanh", "rnn_relu", "lstm", "rnn_tanh_cell", "rnn_relu_cell", "lstm_cell", "gru_cell"),
    "inputs and weights, which are there anyway, for second derivatives",
)


def flat(value):
    if isinstance(value, (tuple, list)):
        return [x for v in value for x in flat(v)]
    return [x for v in value.values() for x in flat(v)] if isinstance(value, dict) else [value]


def kept_by(storages, m, t):
    """Notes the storage of a saved tensor, and its bytes."""
    if m is tinytorch:
        storages[int(m.backends.cpu.ffi.cast("intptr_t", t._h.storage))] = t._h.storage.nbytes
    else:
        storages[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
    return t


def graph(m, op, sample, arrays):
    """Of a call whose tensors are leaves: the results' Nodes, the names of all Nodes but leaves', the bytes kept."""
    _, views = make(m, sample, arrays, "float64")
    views = [v.detach().requires_grad_(s.differentiable("float64")) for s, v in zip(sample.specs, views)]
    args, kwargs = sample.fill(views)
    m.manual_seed(0)
    storages, kept = {}, []

    def pack(t):
        kept.append(t)
        return kept_by(storages, m, t)

    with m.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        out = op(m, *args, **kwargs)
    nodes = [t.grad_fn for t in flat(out) if getattr(t, "grad_fn", None) is not None]
    names, seen, todo = set(), set(), list(nodes)
    while todo:
        node = todo.pop()
        if node is not None and node not in seen:
            seen.add(node)
            todo += [n for n, _ in node.next_functions]
            names |= {type(node).__name__} - {"AccumulateGrad"}
    return [type(n).__name__ for n in nodes], names, sum(storages.values())


@pytest.mark.parametrize("op", [op for op in OPS if op.grad and "float64" in op.dtypes], ids=str)
def test_graph(op, torch):
    """Where both graphs are one Node, it has PyTorch's name; what they keep is what PyTorch's keeps, or less."""
    named, more = set(), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample, arrays in op.samples_for("float64"):
            ours, all_ours, our_bytes = graph(tinytorch, op, sample, arrays)
            theirs, all_theirs, their_bytes = graph(torch, op, sample, arrays)
            if len(all_ours) == len(all_theirs) == 1:
                named |= {pair for pair in zip(ours, theirs) if pair[0] != pair[1]}
            if our_bytes > their_bytes:
                more.append(sample)
    assert named == OTHER_NAMES.get(op.name, set())
    assert bool(more) == (op.name in MORE_BYTES), more


def test_saved_attributes(torch):
    """What Nodes show goes by PyTorch's names."""
    for m in (torch, tinytorch):
        a, b = m.ones(2, 2, requires_grad=True), m.ones(2, 2, requires_grad=True)
        for node, names in (
            ((a * b).grad_fn, "self other"),
            ((a / b).grad_fn, "self other"),
            ((a**3).grad_fn, "self exponent"),
            ((a**b).grad_fn, "self exponent result"),
            ((a @ b).grad_fn, "self mat2"),
            (m.mv(a, b[0]).grad_fn, "self vec"),
            (m.dot(a[0], b[0]).grad_fn, "self tensor"),
            (a.exp().grad_fn, "result"),
            (a.clamp(0, 2).grad_fn, "self min max"),
            (a.transpose(0, 1).grad_fn, "dim0 dim1"),
            (a.sum(0).grad_fn, "self_sym_sizes keepdim"),
            (a.softmax(1).grad_fn, "result dim"),
            (m.addcmul(a, b, b).grad_fn, "tensor1 tensor2"),
        ):
            assert [n for n in names.split() if not hasattr(node, f"_saved_{n}")] == []
