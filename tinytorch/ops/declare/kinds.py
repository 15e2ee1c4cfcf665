"""The types of parameters, as the stubs give them (.ci/stubs.py) and as a call that fails is judged by (refusals.py).
Parameters of one name have one type, but for the exceptions: ``function.parameter``."""

from __future__ import annotations

import inspect
import re

# Types, and the parameters that have them.
_PARAMETERS = {
    "Tensor": """input self mask index source src mat mat1 mat2 vec vec1 vec2 the_template batch1 batch2 tensor1
        tensor2 tensor A B input1 input2 x1 x2 target anchor positive negative query key boundaries sorted_sequence
        logits a b chain_matmul.matrices cartesian_prod.tensors block_diag.tensors broadcast_tensors.tensors lerp.end
        prelu.weight linear.weight bilinear.weight conv1d.weight embedding.weight take_along_dim.indices
        embedding.indices set_rng_state.new_state view_as.other reshape_as.other expand_as.other type_as.other
        is_same_size.other equal.other vdot.other inner.other matmul.other cross.other kron.other dist.other
        isclose.other allclose.other heaviside.values complex.real complex.imag polar.abs polar.angle logaddexp.other
        atan2.other hypot.other maximum.other minimum.other fmax.other fmin.other nextafter.other logical_and.other
        logical_or.other logical_xor.other linear_weight y out_proj_weight conv2d.weight conv3d.weight
        conv_transpose1d.weight conv_transpose2d.weight conv_transpose3d.weight convolution.weight logaddexp2.other
        gcd.other lcm.other igamma.other igammac.other ldexp.other x householder_product.tau input3 LU LD pivots
        LU_data LU_pivots map2_.x w_ih w_hh hx""",
    "Tensor | Number": """add.rest add_.rest sub.rest sub_.rest addmm.rest addmv.rest addr.rest baddbmm.rest
        addbmm.rest addmm_.rest addmv_.rest addr_.rest baddbmm_.rest addbmm_.rest addcmul.rest addcdiv.rest
        addcmul_.rest addcdiv_.rest add.input sub.input mul.input div.input remainder.input floor_divide.input
        pow.input xlogy.input float_power.input bitwise_and.input bitwise_or.input bitwise_xor.input
        bitwise_left_shift.input bitwise_right_shift.input other value exponent index_fill.value masked_fill.value
        lerp.weight clamp_min.min clamp_max.max bucketize.input searchsorted.input isin.elements isin.test_elements
        result_type.tensor1 result_type.tensor2 xlog1py.input zeta.input chebyshev_polynomial_t.x
        chebyshev_polynomial_t.n chebyshev_polynomial_u.x chebyshev_polynomial_u.n chebyshev_polynomial_v.x
        chebyshev_polynomial_v.n chebyshev_polynomial_w.x chebyshev_polynomial_w.n hermite_polynomial_h.x
        hermite_polynomial_h.n hermite_polynomial_he.x hermite_polynomial_he.n laguerre_polynomial_l.x
        laguerre_polynomial_l.n legendre_polynomial_p.x legendre_polynomial_p.n shifted_chebyshev_polynomial_t.x
        shifted_chebyshev_polynomial_t.n shifted_chebyshev_polynomial_u.x shifted_chebyshev_polynomial_u.n
        shifted_chebyshev_polynomial_v.x shifted_chebyshev_polynomial_v.n shifted_chebyshev_polynomial_w.x
        shifted_chebyshev_polynomial_w.n""",
    "Tensor | Number | None": """scatter.src matrix_rank.tol matrix_rank.atol matrix_rank.rtol pinv.rcond pinv.atol
        pinv.rtol""",
    "Tensor | _int | None": "repeat_interleave.repeats",
    "Tensor | None": """window tensor_indices_or_sections weight weights bias pos_weight attn_mask prepend append
        sorter gradient out fweights aweights linear_bias trapezoid.x cumulative_trapezoid.x key_padding_mask
        in_proj_weight in_proj_bias q_proj_weight k_proj_weight v_proj_weight out_proj_bias bias_k bias_v static_k
        static_v _random_samples svd_lowrank.M b_ih b_hh""",
    "Tensor | Sequence[Tensor]": "meshgrid.tensors atleast_1d.tensors atleast_2d.tensors atleast_3d.tensors inputs",
    "Tensor | _float": "bernoulli.p normal.mean normal.std gaussian_nll_loss.var quantile.q nanquantile.q",
    "Tensor | _int": "narrow.start",
    "_int": """M n_fft hop_length win_length window_length rest axis0 axis1 dim0 dim1 dim2 offset diagonal k n chunks
        num_samples bins minlength count row col num_groups num_classes ignore_index start_dim end_dim length step r
        decimals dimension steps seed _stacklevel unfold.size select.index select_scatter.index groups
        select_copy.index edge_order num_heads embed_dim_to_check mvlgamma.p ind niter nonzero_static.size
        nonzero_static.fill_value unfold_copy.size""",
    "_int | None": """sections istft.length storage_offset padding_idx high low eye.m slice_scatter.start
        slice_scatter.end random_.from_ random_.to slice_copy.start slice_copy.end linear_cross_entropy.ignore_index
        repeat_interleave.output_size divisor_override vander.N q to_sparse_csr.dense_dim to_sparse.dense_dim""",
    "_float": """hamming_window.alpha hamming_window.beta kaiser_window.beta general_hamming.alpha kaiser.beta d eps p
        dropout_p margin base lambd label_smoothing delta min_val max_val negative_slope lower rrelu.upper norm_type
        tau rtol atol sigma nan mean std median celu.alpha elu.alpha smooth_l1_loss.beta uniform_.from_ uniform_.to
        pinverse.rcond""",
    "_float | None": "exponential.center pad.value posinf neginf scale max_norm lstsq.rcond",
    "_bool": """center normalized periodic sym istft.return_complex keepdim keepdims requires_grad pin_memory inplace
        training accumulate include_self return_inverse return_counts descending sorted stable right out_int32 largest
        upper left check_errors unitriangular full_matrices assume_unique invert with_replacement replacement swap
        full log_target log_input hard is_causal enable_gqa scale_grad_by_freq sparse sparse_grad cudnn_enable
        cudnn_enabled equal_nan non_blocking create_graph implicit density add_zero_attn need_weights
        use_separate_proj_weight average_attn_weights ceil_mode return_indices count_include_pad transposed hermitian
        pivot transpose triangular_solve.transpose adjoint some compute_uv get_infos unpack_data unpack_pivots
        pca_lowrank.center wrap""",
    "_bool | None": """onesided align_to_window stft.return_complex unbiased size_average retain_graph reduce copy
        check_invariants masked_grad is_coalesced""",
    "_int | Sequence[_int]": """hsplit.indices_or_sections vsplit.indices_or_sections dsplit.indices_or_sections
        shapes shifts split_size_or_sections split_size expand.size resize_.size repeat.repeats Tensor.reshape.shape
        sum_to_size.size broadcast_to.size unravel_index.shape squeeze.dim logsumexp.dim Tensor.permute.dims
        Tensor.flip.dims Tensor.tile.dims roll.dims conv1d.stride kernel_size padding dilation conv2d.stride
        conv3d.stride
        conv_transpose1d.stride conv_transpose2d.stride conv_transpose3d.stride unfold.stride fold.stride
        output_padding fold.output_size""",
    "_int | str | Sequence[_int]": "conv1d.padding conv2d.padding conv3d.padding",
    "_int | Sequence[_int] | None": "dim tensorsolve.dims",
    "_int | Sequence[_int] | _dtype | None": "view.size",
    "_int | Sequence[Sequence[_int]]": "tensordot.dims",
    "Sequence[_int]": """pad.pad size shape stride normalized_shape split_sizes unflatten.sizes rot90.dims
        permute.dims flip.dims tile.dims physical_layout permute_copy.dims convolution.padding convolution.dilation
        convolution.output_padding matrix_norm.dim""",
    "Sequence[Tensor]": "tensors lstm_cell.hx",
    "_dtype": "from_ to type1 type2 frombuffer.dtype",
    "_dtype | None": "dtype",
    "_layout | None": "layout",
    "type[Tensor]": "cls",
    "_memory_format": "memory_format",
    "_memory_format | None": "clone.memory_format",
    "Device": "device",
    "Generator | None": "generator",
    "Number": """alpha beta start end fill_value s threshold.value softplus.threshold threshold.threshold
        addcmul.value addcdiv.value histc.min histc.max arange.step range.step dist.p triplet_margin_loss.p renorm.p
        maxnorm vector_norm.ord""",
    "Number | None": "correction scatter.value dx",
    "str": "pad_mode reduction approximate mode UPLO scatter_reduce.reduce index_reduce.reduce interpolation",
    "str | None": "rounding_mode norm side driver meshgrid.indexing scatter.reduce",
    "Callable[[Tensor, Tensor], Tensor] | None": "distance_function",
    "Number | str": "matrix_norm.ord",
    "Number | str | None": "norm.p cond.p norm.ord",
    "Any": """compute_mode set_.source __getitem__.key __setitem__.key data obj buffer ndarray ext_tensor indices
        values indices_or_sections hook stream args element general_cosine.a memo protocol array context return_scalar
        max_version dl_device tensor_contents __array__.copy __dlpack__.copy callable crow_indices col_indices""",
    "Sequence[_float] | None": "histogram.range histogramdd.range",
    "Number | Sequence[Tensor | Number] | None": "gradient.spacing",
    "_int | Tensor": "histogram.bins",
    "_int | Sequence[_int] | Sequence[Tensor]": "histogramdd.bins",
    "LinearCrossEntropyOptions | None": "options",
    "Sequence[Tensor] | None": "split_copy.out split_with_sizes_copy.out unbind_copy.out",
    "_int | Sequence[_int | None]": "output_size",
    "_float | Sequence[_float]": "output_ratio",
    "_int | _layout | None": "to_sparse.sparse_dim",
    "Sequence[_int] | None": "blocksize",
}
_UNPOOL = {"indices": "Tensor", "output_size": "Sequence[_int]"}
_ONE_DIM = """
    cat stack select narrow unbind split split_with_sizes chunk tensor_split unsqueeze sort topk kthvalue mode
    argsort index_select index_add index_copy index_fill gather scatter scatter_add scatter_reduce index_reduce
    slice_copy softmax log_softmax cumsum cumprod cummax cummin logcumsumexp diff unflatten select_scatter slice_scatter
    glu renorm trapezoid cumulative_trapezoid normalize cosine_similarity gumbel_softmax
    fft ifft rfft irfft hfft ihfft"""
_ONE_OR_NONE = """
    argmax argmin aminmax prod unique unique_consecutive take_along_dim repeat_interleave cross softmin
    nn.functional.softmax nn.functional.log_softmax"""
PARAMETERS = {name: kind for kind, names in _PARAMETERS.items() for name in names.split()}
PARAMETERS |= {f"{fn}.dim": "_int" for fn in _ONE_DIM.split()}
PARAMETERS |= {f"{fn}fft.n": "_int | None" for fn in ("", "i", "r", "ir", "h", "ih")}
PARAMETERS |= {f"{fn}fft{n}.s": "_int | Sequence[_int] | None" for fn in ("", "i", "r", "ir", "h", "ih") for n in "2n"}
_POOLS = [f"{name}_pool{n}d" for name in ("max", "avg", "lp") for n in (1, 2, 3)]
_POOLS += [f"max_pool{n}d_with_indices" for n in (1, 2, 3)]
_POOLS += [f"max_unpool{n}d" for n in (1, 2, 3)]
PARAMETERS |= {f"{fn}.stride": "_int | Sequence[_int]" for fn in _POOLS}
_IMAGES = {
    "_int | Sequence[_int] | None": "interpolate.size upsample.size upsample_nearest.size upsample_bilinear.size",
    "_float | Sequence[_float]": "scale_factor",
    "_bool | None": "align_corners recompute_scale_factor",
    "str": "padding_mode",
    "Tensor": "grid theta log_probs targets embedding_bag.weight",
    "Tensor | Sequence[_int]": "input_lengths target_lengths",
    "_int": "blank upscale_factor downscale_factor local_response_norm.size",
    "_float": "momentum local_response_norm.alpha local_response_norm.beta local_response_norm.k",
    "_bool": "use_input_stats antialias zero_infinity include_last_offset",
    "Tensor | None": "running_mean running_var per_sample_weights offsets",
}
PARAMETERS |= {name: kind for kind, names in _IMAGES.items() for name in names.split()}
PARAMETERS |= {f"max_unpool{n}d.{name}": kind for n in (1, 2, 3) for name, kind in _UNPOOL.items()}
PARAMETERS |= {f"{fn}.dim": "_int | None" for fn in _ONE_OR_NONE.split()}

_OF_NUMBERS = frozenset(("add", "sub", "mul", "div", "floor_divide"))


def only_tensors(fn: str, *names: str) -> tuple[str | None, ...]:
    """The parameters ``names`` of an elementwise function, with None for those that may be numbers. One argument of it
    must be a tensor: but for the operators that PyTorch computes of numbers alone, for which this is empty."""
    if fn in _OF_NUMBERS:
        return ()
    kinds = [PARAMETERS.get(f"{fn}.{name}", PARAMETERS.get(name, "Tensor")) for name in names]
    return tuple([None if "Number" in kind else name for name, kind in zip(names, kinds)])


# Functions of several forms: each one's parameters, and its result. ``{t}`` is the tensor, a method's ``self``.
_MADE = (
    "dtype: _dtype | None = None, layout: _layout | None = None, device: Device = None, "
    "requires_grad: _bool = False, pin_memory: _bool = False"
)
_NEW = (
    "dtype: _dtype | None = None, device: Device = None, requires_grad: _bool = False, "
    "layout: _layout | None = None, pin_memory: _bool = False"
)
_KEPT = "keepdim: _bool = False, *, out: tuple[Tensor, Tensor] | None = None"


def _sizes(lead: str, options: str) -> list[tuple[str, str]]:
    """``f(2, 3)`` and ``f((2, 3))``."""
    return [
        (f"{lead}*size: _int, {options}", "Tensor"),
        (f"{lead}size: Sequence[_int], /, *, {options}", "Tensor"),
        (f"{lead}*, size: Sequence[_int], {options}", "Tensor"),
    ]


def _extreme(name: str) -> list[tuple[str, str]]:
    return [
        ("{t}, *, out: Tensor | None = None", "Tensor"),
        (f"{{t}}, dim: _int, {_KEPT}", f"return_types.{name}"),
        ("{t}, *, axis: _int, keepdims: _bool = False", f"return_types.{name}"),
        ("{t}, other: Tensor, /, *, out: Tensor | None = None", "Tensor"),
        ("{t}, *, other: Tensor, out: Tensor | None = None", "Tensor"),
    ]


def _middle(name: str) -> list[tuple[str, str]]:
    return [
        ("{t}", "Tensor"),
        (f"{{t}}, dim: _int, {_KEPT}", f"return_types.{name}"),
        ("{t}, *, axis: _int, keepdims: _bool = False", f"return_types.{name}"),
    ]


def _recurrent(state: str, results: int) -> list[tuple[str, str]]:
    options = "has_biases: _bool, num_layers: _int, dropout: _float, train: _bool, bidirectional: _bool"
    states = f"hx: {state}, params: Sequence[Tensor], {options}"
    result = f"tuple[{', '.join(['Tensor'] * results)}]"
    return [
        (f"input: Tensor, {states}, batch_first: _bool", result),
        (f"data: Tensor, batch_sizes: Tensor, {states}", result),
    ]


def _clamp(out: str) -> list[tuple[str, str]]:
    return [
        (f"{{t}}, min: {kind} | None = None, max: {kind} | None = None{out}", "Tensor") for kind in ("Tensor", "Number")
    ]


FORMS: dict[str, list[tuple[str, str]]] = {
    "zeros": _sizes("", f"{_MADE}, out: Tensor | None = None"),
    "ones": _sizes("", f"{_MADE}, out: Tensor | None = None"),
    "empty": _sizes("", f"{_MADE}, memory_format: _memory_format | None = None, out: Tensor | None = None"),
    "rand": _sizes("", f"generator: Generator | None = None, out: Tensor | None = None, {_MADE}, names: Any = None"),
    "randn": _sizes("", f"generator: Generator | None = None, out: Tensor | None = None, {_MADE}, names: Any = None"),
    "randint": [
        (
            f"{lead}size: Sequence[_int], *, generator: Generator | None = None, out: Tensor | None = None, {_MADE}",
            "Tensor",
        )
        for lead in ("high: _int, ", "low: _int, high: _int, ")
    ],
    "new_zeros": _sizes("{t}, ", _NEW),
    "new_ones": _sizes("{t}, ", _NEW),
    "new_empty": _sizes("{t}, ", _NEW),
    "where": [
        ("condition: Tensor", "tuple[Tensor, ...]"),
        ("condition: Tensor, input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None", "Tensor"),
    ],
    "Tensor.where": [("{t}, condition: Tensor, other: Tensor | Number", "Tensor")],
    "clamp": _clamp(", *, out: Tensor | None = None"),
    "clamp_": _clamp(""),
    "rsub": [
        ("{t}, other: Tensor, *, alpha: Number = 1", "Tensor"),
        ("{t}, other: Number, alpha: Number = 1", "Tensor"),
    ],
    "movedim": [
        ("{t}, source: _int, destination: _int", "Tensor"),
        ("{t}, source: Sequence[_int], destination: Sequence[_int]", "Tensor"),
    ],
    "max": _extreme("max"),
    "min": _extreme("min"),
    "median": _middle("median"),
    "nanmedian": _middle("nanmedian"),
    "nonzero": [
        ("{t}, *, out: Tensor | None = None, as_tuple: Literal[False] = False", "Tensor"),
        ("{t}, *, as_tuple: Literal[True]", "tuple[Tensor, ...]"),
    ],
    "einsum": [
        ("equation: str, *operands: Tensor | Sequence[Tensor]", "Tensor"),
        ("equation: Tensor, *operands: Any", "Tensor"),
    ],
    "lstm": _recurrent("Sequence[Tensor]", 3),
    "gru": _recurrent("Tensor", 2),
    "rnn_tanh": _recurrent("Tensor", 2),
    "rnn_relu": _recurrent("Tensor", 2),
    "size": [("{t}", "Size"), ("{t}, dim: _int", "_int")],
    "stride": [("{t}", "tuple[_int, ...]"), ("{t}, dim: _int", "_int")],
    "type": [("{t}", "str"), ("{t}, dtype: _dtype | str, non_blocking: _bool = False", "Tensor")],
    "to": [
        (
            "{t}, dtype: _dtype, non_blocking: _bool = False, copy: _bool = False, /, *, "
            "memory_format: _memory_format | None = ...",
            "Tensor",
        ),
        (
            "{t}, other: Tensor, non_blocking: _bool = False, copy: _bool = False, /, *, "
            "memory_format: _memory_format | None = ...",
            "Tensor",
        ),
        (
            "{t}, device: Device, dtype: _dtype | None = None, non_blocking: _bool = False, copy: _bool = False, "
            "/, *, memory_format: _memory_format | None = ...",
            "Tensor",
        ),
        (
            "{t}, device: Device = None, /, *, dtype: _dtype | None = None, non_blocking: _bool = False, "
            "copy: _bool = False, memory_format: _memory_format | None = ...",
            "Tensor",
        ),
        (
            "{t}, *, dtype: _dtype | None = None, device: Device = None, non_blocking: _bool = False, "
            "copy: _bool = False, memory_format: _memory_format | None = ...",
            "Tensor",
        ),
    ],
}


def annotated(text: str) -> str:
    """An annotation as it stands in a source file, in names that no method hides."""
    text = str(text).replace("np.ndarray", "numpy.ndarray[Any, Any]").replace("Stream", "Any")
    return re.sub(r"\b(?<!_)(int|float|bool|complex|dtype|device)\b", r"_\1", text)


def keys_of(fn, name: str, home: str = "") -> list[str]:
    """What the tables may call a function that is public under ``name`` in ``home``, a namespace or "Tensor": the most
    particular first."""
    plain = fn.op.name.rstrip("_") if hasattr(fn, "op") and not name.startswith("__") else name
    called = fn.__name__
    return [*([f"{home}.{called}"] if home else []), called, called.rstrip("_"), plain]


def kind_of(p: inspect.Parameter, keys: list[str]) -> tuple[str | None, str | None]:
    """The type of a parameter of the function that the tables know by ``keys``, and the entry of PARAMETERS that says
    so. None where nothing is known; no entry where the function is annotated itself."""
    name = "dim" if p.name == "axis" else p.name
    exact = name == "input" and keys[0].endswith("_")  # what is written into is a tensor, a number in no form
    entry = next((e for e in [f"{key}.{name}" for key in keys if not exact or key[-1] == "_"] if e in PARAMETERS), None)
    if entry is None and p.annotation is not p.empty:
        kind = annotated(p.annotation)
    else:
        entry = entry or (name if name in PARAMETERS else None)
        kind = PARAMETERS.get(entry)
    if kind is None:
        return None, entry
    if p.default is None and "None" not in kind and kind not in ("Any", "Device"):
        kind += " | None"
    if p.default == () and "Sequence" not in kind:
        kind += " | Sequence[_int]"
    return kind, entry
