"""Bytes and floating-point operations of operators, from the shapes and dtypes of their operands.

Bytes are those that an operator has to move at least: each operand is read once and the result written once, whatever
the caches do. Operations are those of the formula: an addition, a multiplication, a comparison is one each, a fused
multiply-add two; for functions such as ``exp`` the count is about that of the polynomial in kernels/scalar. A product
of matrices (m, k) by (k, n) has 2 m k n.

Elementwise operators and reductions have their operations from kernels/scalar (tinytorch/scalar.py). Any other stands
under the rule that it follows, with the operations for an element where it does arithmetic. Those made of other
operators have no rule: their cost is that of what they called (see ``attach``).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

from ..dtypes import BY_NAME
from ..ops.declare.op import op_of
from ..scalar import OPERATORS, REDUCTIONS
from ..tensor import FUNCTIONS, Tensor
from . import cost_rules as rules
from .cost_rules import NOTHING, Cost, Operand, Operands, Rule, words
from .events import Event, Trace


_TABLE: list[tuple[Rule, str]] = [
    (
        rules.pointwise(1),
        "rsub deg2rad rad2deg clamp_max clamp_min relu6 hardtanh "
        "rrelu prelu isneginf isposinf masked_fill nan_to_num isclose isreal",
    ),
    (rules.pointwise(4), "softsign"),
    (rules.pointwise(16), "frexp"),
    (rules.pointwise(27), "tanhshrink"),
    (rules.pointwise(26), "logit"),
    (rules.pointwise(48), "float_power polar"),
    (rules.pointwise(150), "polygamma"),
    (rules.pointwise(70), "mvlgamma"),
    (rules.into(1), "addcmul_ addcdiv_ lerp_ masked_fill_"),
    (
        rules.folded(1),
        "argmax argmin nonzero argwhere equal allclose trace sum_to_size bincount histc fold "
        "nonzero_static unravel_index histogram histogramdd",
    ),
    (rules.folded(2), "norm vector_norm vecdot aminmax"),
    (rules.folded(3), "var std var_mean std_mean dist"),
    (rules.folded(20), "logsumexp"),
    (rules.folded(3), "mse_loss l1_loss huber_loss smooth_l1_loss hinge_embedding_loss margin_ranking_loss"),
    (rules.folded(22), "cross_entropy"),
    (rules.folded(60), "ctc_loss"),
    (rules.folded(1), "multilabel_margin_loss nll_loss multi_margin_loss"),
    (rules.folded(26), "kl_div poisson_nll_loss"),
    (
        rules.folded(50),
        "binary_cross_entropy binary_cross_entropy_with_logits soft_margin_loss multilabel_soft_margin_loss",
    ),
    (rules.folded(30), "gaussian_nll_loss"),
    (rules.folded(5), "cosine_similarity pairwise_distance"),
    (rules.along(22), "softmax log_softmax softmin"),
    (rules.along(8), "layer_norm group_norm batch_norm native_batch_norm instance_norm local_response_norm"),
    (rules.along(5), "rms_norm normalize"),
    (rules.dropped, "dropped"),
    (rules.along(1), "cumsum cumprod diff gradient trapezoid trapz cumulative_trapezoid"),
    (rules.along(1, 8), "cummax cummin"),
    (rules.along(44), "logcumsumexp"),
    (rules.into(1), "cumsum_ cumprod_"),
    (
        rules.ordered,
        "sort argsort msort topk kthvalue median nanmedian mode unique unique_consecutive quantile nanquantile",
    ),
    (rules.pointwise(8), "searchsorted bucketize isin"),
    (rules.product, "matmul mm bmm mv dot vdot inner __matmul__ __rmatmul__"),
    (rules.added_product, "addmm baddbmm addmv addbmm"),
    (rules.linear, "linear"),
    (
        rules.moved,
        "max_pool1d max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d "
        "max_pool3d_with_indices adaptive_max_pool1d adaptive_max_pool1d_with_indices adaptive_max_pool2d "
        "adaptive_max_pool2d_with_indices adaptive_max_pool3d adaptive_max_pool3d_with_indices "
        "fractional_max_pool2d fractional_max_pool2d_with_indices fractional_max_pool3d "
        "fractional_max_pool3d_with_indices avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d "
        "adaptive_avg_pool2d adaptive_avg_pool3d lp_pool1d lp_pool2d lp_pool3d max_unpool1d max_unpool2d max_unpool3d",
    ),
    (rules.convolved, "conv1d conv2d conv3d convolution"),
    (rules.convolved_back, "conv_transpose1d conv_transpose2d conv_transpose3d"),
    (rules.pointwise(8), "interpolate grid_sample upsample upsample_nearest upsample_bilinear"),
    (rules.pointwise(8), "affine_grid"),
    (rules.outer, "outer addr"),
    (rules.distances, "pdist"),
    (rules.decomposed(lambda n, k, r: 2 / 3 * k**3), "det slogdet logdet"),
    (rules.decomposed(lambda n, k, r: k**3 / 3), "cholesky cholesky_ex ldl_factor ldl_factor_ex"),
    (rules.decomposed(lambda n, k, r: 2 / 3 * k**3), "cholesky_inverse"),
    (rules.decomposed(lambda n, k, r: k**2 * (n - k / 3)), "lu lu_factor lu_factor_ex"),
    (rules.decomposed(lambda n, k, r: 2 * k**2 * (n - k / 3)), "geqrf lstsq"),
    (rules.decomposed(lambda n, k, r: 2 / 3 * k**3 + 2 * k**2 * r), "solve solve_ex"),
    (rules.decomposed(lambda n, k, r: 2 * k**3), "inv inv_ex inverse"),
    (rules.decomposed(lambda n, k, r: k**2 * r), "solve_triangular"),
    (rules.decomposed(lambda n, k, r: 2 * k**2 * r), "lu_solve ldl_solve"),
    (rules.decomposed(lambda n, k, r: 2 * n * k * r), "cholesky_solve"),  # of B and L
    (rules.decomposed(lambda n, k, r: 4 * k**2 * (n - k / 3)), "qr svdvals matrix_rank"),
    (rules.decomposed(lambda n, k, r: 14 * n * k**2 + 8 * k**3), "svd pinv pinverse"),
    (rules.decomposed(lambda n, k, r: 25 * k**3), "eig"),
    (rules.decomposed(lambda n, k, r: 10 * k**3), "eigvals"),
    (rules.decomposed(lambda n, k, r: 9 * k**3), "eigh"),
    (rules.transformed(5, False), "fft ifft"),
    (rules.transformed(2.5, False), "rfft irfft hfft ihfft"),
    (rules.transformed(5, True), "fft2 ifft2 fftn ifftn"),
    (rules.transformed(2.5, True), "rfft2 irfft2 hfft2 ihfft2 rfftn irfftn hfftn ihfftn"),
    (rules.decomposed(lambda n, k, r: 4 / 3 * k**3), "eigvalsh"),
    (rules.bilinear, "bilinear"),
    (rules.attention, "scaled_dot_product_attention"),
    (
        rules.moved,
        "cat stack hstack vstack dstack column_stack clone contiguous flip fliplr "
        "alias_copy as_strided_copy detach_copy diagonal_copy expand_copy narrow_copy permute_copy select_copy "
        "slice_copy split_copy split_with_sizes_copy squeeze_copy t_copy transpose_copy unbind_copy unfold_copy "
        "unsqueeze_copy view_as_complex_copy view_as_real_copy view_copy "
        "flipud roll tril triu repeat tile repeat_interleave to cpu cuda type type_as float double half bfloat16 "
        "chalf cfloat cdouble int long short char byte bool tensor new_tensor pin_memory masked_select numpy tolist "
        "pad pixel_shuffle pixel_unshuffle channel_shuffle "
        "diag diag_embed diagflat as_strided_scatter diagonal_scatter select_scatter slice_scatter "
        "masked_scatter block_diag one_hot glu complex "
        "conj adjoint mH H",
    ),
    (rules.into(), "copy_ fill_ fill_diagonal_ apply_ map_ map2_ zero_ tril_ triu_ masked_scatter_ fill"),
    (rules.picked, "gather take take_along_dim index_select"),
    (rules.indexed, "__getitem__"),
    (rules.looked_up, "embedding embedding_bag"),
    (rules.scattered(True, 0), "scatter_ index_copy_ index_fill_ index_put_ put_ __setitem__"),
    (rules.scattered(False, 0), "scatter index_copy index_fill index_put put"),
    (rules.scattered(True, 1), "scatter_add_ scatter_reduce_ index_add_ index_reduce_"),
    (rules.scattered(False, 1), "scatter_add scatter_reduce index_add index_reduce"),
    (
        rules.made(),
        "zeros ones full eye arange linspace logspace range zeros_like ones_like full_like new_zeros new_ones "
        "new_full tril_indices triu_indices scalar_tensor rand rand_like randint randint_like randperm bernoulli "
        "poisson dropout_mask bartlett_window blackman_window hamming_window hann_window kaiser_window",
    ),
    (rules.made(60), "randn randn_like normal multinomial"),
    (rules.into(), "bernoulli_ random_ uniform_"),
    (rules.into(25), "exponential_ geometric_"),
    (rules.into(60), "normal_ log_normal_ cauchy_"),
    (
        rules.free,
        "view reshape reshape_as view_as flatten unflatten ravel squeeze squeeze_ unsqueeze unsqueeze_ transpose "
        "transpose_ swapaxes swapaxes_ swapdims_ t t_ permute movedim expand expand_as "
        "broadcast_to broadcast_tensors narrow select split split_with_sizes chunk tensor_split hsplit vsplit "
        "dsplit unsafe_split unsafe_split_with_sizes unsafe_chunk unbind set_ unfold diagonal as_strided atleast_1d "
        "atleast_2d atleast_3d detach detach_ meshgrid rot90 "
        "real imag view_as_real view_as_complex resolve_conj resolve_neg "
        "T mT data empty empty_permuted empty_like empty_strided new_empty new_empty_strided new resize_ resize_as_ "
        "as_tensor asarray from_numpy frombuffer from_dlpack to_dlpack",
    ),
]
_RULES: dict[str, Rule] = {name: rule for rule, names in _TABLE for name in names.split()}

# Made of other operators, in ways that shapes alone do not tell, as those of kind "composite" are.
COMPOSED = words("__invert__ backward dropout lobpcg")

# What only asks, sets or refuses something, and touches no elements (``item`` reads one).
WITHOUT = words("""
    as_subclass broadcast_shapes can_cast ccol_indices col_indices const_data_ptr crow_indices data_ptr dense_dim
    dim dim_order element_size get_device get_rng_state indices initial_seed ipu is_coalesced is_complex is_conj
    is_contiguous is_distributed is_floating_point is_inference is_neg is_nonzero is_pinned is_same_size is_set_to
    is_shared is_signed is_storage is_tensor item manual_seed mtia ndimension nelement numel promote_types
    record_stream register_hook register_post_accumulate_grad_hook requires_grad_ result_type retain_grad
    row_indices seed set_rng_state share_memory_ size sparse_dim storage storage_offset storage_type stride symeig
    to_mkldnn to_padded_tensor to_sparse_bsc to_sparse_bsr to_sparse_csc untyped_storage values with_layout xpu
""")


def _own_name(name: str) -> str:
    """Of the operator that is published under ``name``, without the underscore of its in-place form."""
    op = op_of(FUNCTIONS.get(name)) or op_of(getattr(Tensor, name, None))
    return (op.name if op else name).strip("_")


@functools.cache
def rule_of(name: str) -> Rule | None:
    """The rule that an operator follows, by any of its names."""
    if name in _RULES:
        return _RULES[name]
    plain = _own_name(name)
    if plain in OPERATORS:
        op = OPERATORS[plain]
        into = name.endswith("_") and not name.startswith("__")  # its dtype is the first operand's
        return rules.pointwise(op.flops, 1 if op.gives_bool and not into else 0)
    if plain in REDUCTIONS:
        return rules.folded(REDUCTIONS[plain].flops)
    return _RULES.get(plain)


def operands(shapes: Iterable, dtypes: Iterable) -> list[Operand]:
    """Of what an event recorded: shapes, and dtypes as objects or by name. What is no tensor (None) is left out."""
    return [Operand(tuple(s), itemsize(d)) for s, d in zip(shapes, dtypes) if d and s is not None]


@functools.cache
def itemsize(dtype) -> int:
    """Bytes of an element, of a dtype or its name with or without a package's in front."""
    if isinstance(dtype, str):
        dtype = BY_NAME[dtype.rpartition(".")[2]]
    return dtype.itemsize


def cost(name: str, ins: Operands, outs: Operands = ()) -> Cost | None:
    """Of a call of the operator with these tensors; ``outs``, its results, matter where the operands do not tell their
    shapes. None where it is not known."""
    rule = rule_of(name)
    if rule is None:
        return None
    if not outs and ins and name.endswith("_") and not name.startswith("__"):
        outs = ins[:1]
    return rule(ins, outs)


_PRODUCTS = words(
    "matmul mm bmm mv dot vdot inner addmm baddbmm addmv addbmm linear outer addr bilinear "
    "scaled_dot_product_attention conv1d conv2d conv3d convolution conv_transpose1d conv_transpose2d conv_transpose3d "
    "__matmul__"
)


def backward_cost(name: str, ins: Operands, outs: Operands = ()) -> Cost | None:
    """Of the derivative of such a call: of a product two products, else about twice the work; the gradient of the
    result and the operands are read, a gradient for each floating operand is written."""
    forward = cost(name, ins, outs)
    if forward is None or forward == NOTHING:
        return forward
    if name in _PRODUCTS:
        return Cost(2 * forward.bytes, 2 * forward.flops)
    return Cost(forward.bytes + rules.total(ins), 2 * forward.flops)


def attach(trace: Trace) -> None:
    """Sets ``bytes`` and ``flops`` of a trace's events where they are not set and can be known. ``nest`` must have run.

    An operator's are those of its rule, or of the operators inside it. A derivative's are those of the operators inside
    it, or else told from the forward operator, which ``sequence`` names. A device's kernel has those of the operator or
    program that launched it, if that launched nothing else. What fused mode only recorded has none: its program has."""
    forward: dict[int, Event] = {}
    for event in trace.of_kind("op"):
        if (event.extra or {}).get("recorded"):  # and most likely its derivative
            continue
        if event.bytes is None and (event.shapes or event.outputs):
            _set(
                event,
                NOTHING
                if _moved_nothing(event)
                else cost(event.name, operands(event.shapes, event.dtypes), results(event)),
            )
        if event.sequence is not None and event.shapes:
            forward.setdefault(event.sequence, event)  # events come before those inside them
    for event in reversed(trace.events):  # those inside come first
        if event.kind not in ("op", "backward") or event.bytes is not None:
            continue
        inside = [c for c in event.children if c.bytes is not None and c.kind in ("op", "backward")]  # no programs
        if inside:
            event.bytes = sum(c.bytes for c in inside)
            event.flops = sum(c.flops or 0 for c in inside)
        elif event.kind == "backward" and (made := forward.get(event.sequence)):
            _set(event, backward_cost(made.name, operands(made.shapes, made.dtypes), results(made)))
    _attach_to_kernels(trace.events)


def _moved_nothing(event: Event) -> bool:
    """Did an operator that copies, or is made of others, give its operand back as it was?"""
    if not (event.extra or {}).get("given_back") or any(c.kind == "op" for c in event.children):
        return False
    return rule_of(event.name) in (None, rules.moved)


def results(event: Event) -> list[Operand]:
    """What the event returned, where it was recorded."""
    return operands((shape for shape, _ in event.outputs), (dtype for _, dtype in event.outputs))


def _set(event: Event, found: Cost | None) -> None:
    if found is not None:
        event.bytes, event.flops = found


def _attach_to_kernels(events: list[Event]) -> None:
    launches = {e.correlation: e for e in events if e.kind == "runtime" and e.correlation is not None}
    kernels = [e for e in events if e.kind == "kernel" and e.device != "cpu" and e.correlation in launches]
    by_launcher: dict[int, list[Event]] = {}
    for kernel in kernels:
        launcher = launches[kernel.correlation].parent
        if launcher is not None and launcher.kind in ("op", "backward", "program"):
            by_launcher.setdefault(id(launcher), []).append(kernel)
    for launched in by_launcher.values():
        launcher = launches[launched[0].correlation].parent
        if len(launched) == 1 and launched[0].bytes is None:
            launched[0].bytes, launched[0].flops = launcher.bytes, launcher.flops
