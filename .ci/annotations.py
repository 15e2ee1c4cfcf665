"""The types of results and attributes, for .ci/stubs.py. Those of parameters: tinytorch/ops/declare/kinds.py."""

# Results; a method has its function's. The others give a named tuple, where return_types has one, or a Tensor.
_RESULTS = {
    "_bool": """allclose equal is_tensor is_floating_point is_same_size can_cast is_contiguous is_pinned
        is_complex is_signed is_set_to is_inference __contains__""",
    "_int": "numel dim seed initial_seed element_size get_device data_ptr storage_offset __hash__",
    "tuple[Tensor, ...]": """split split_with_sizes chunk unbind tensor_split hsplit vsplit dsplit meshgrid
        broadcast_tensors split_copy split_with_sizes_copy unbind_copy gradient unravel_index""",
    "tuple[Tensor, tuple[Tensor, ...]]": "histogramdd",
    "tuple[Tensor, Tensor]": "var_mean std_mean lstm_cell",
    "tuple[Tensor, Tensor, Tensor]": "svd_lowrank pca_lowrank",
    "tuple[Tensor, Tensor | None]": "multi_head_attention_forward",
    "None": "set_rng_state backward retain_grad record_stream __setitem__",
    "_dtype": "result_type promote_types",
    "Size": "broadcast_shapes",
    "Generator": "manual_seed",
    "Number": "item",
    "Any": """tolist unique unique_consecutive to_dlpack __dlpack__ register_hook register_post_accumulate_grad_hook
        atleast_1d atleast_2d atleast_3d __reduce_ex__ __array__""",
    "Iterator[Tensor]": "__iter__",
    "numpy.ndarray[Any, Any]": "numpy",
    "list[str]": "__dir__",
}
RESULTS = {name: kind for kind, names in _RESULTS.items() for name in names.split()}

# Members of Tensor that are no methods; those that can be assigned are marked.
PROPERTIES = {
    "shape": "Size",
    "ndim": "_int",
    "dtype": "_dtype",
    "device": "_device",
    "itemsize": "_int",
    "nbytes": "_int",
    "is_cuda": "_bool",
    "is_cpu": "_bool",
    "is_sparse": "_bool",
    "is_sparse_csr": "_bool",
    "is_meta": "_bool",
    "is_quantized": "_bool",
    "is_nested": "_bool",
    "is_mkldnn": "_bool",
    "is_mps": "_bool",
    "is_xpu": "_bool",
    "is_xla": "_bool",
    "is_vulkan": "_bool",
    "is_ipu": "_bool",
    "is_maia": "_bool",
    "is_mtia": "_bool",
    "layout": "_layout",
    "_version": "_int",
    "is_leaf": "_bool",
    "grad_fn": "Any",
    "output_nr": "_int",
    "retains_grad": "_bool",
    "name": "None",
    "_base": "Tensor | None",
    "T": "Tensor",
    "mT": "Tensor",
    "H": "Tensor",
    "mH": "Tensor",
    "__cuda_array_interface__": "dict[str, Any]",
}
ASSIGNABLE = {
    "requires_grad": "_bool",
    "grad": "Tensor | None",
    "data": "Tensor",
    "real": "Tensor",
    "imag": "Tensor",
    "volatile": "_bool",
}
