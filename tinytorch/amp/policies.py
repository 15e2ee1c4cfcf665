"""What autocast does to the arguments of operators: PyTorch's lists for CUDA and for the CPU.

``lower``: they are cast to autocast's dtype; ``full``: to float32; ``widest``: to the widest dtype among them;
``second``: to that of the second one, a recurrent layer's state, whose dtype PyTorch's results have (its products are
of autocast's dtype there, and each of its steps is some operators); ``refused``: half types are an error. An operator
in no list runs in the dtypes that it gets."""

from __future__ import annotations

_PRODUCTS = """
    addbmm addmm baddbmm bmm mm matmul chain_matmul linalg.multi_dot einsum nn.functional.linear prelu
    conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d
    nn.functional.scaled_dot_product_attention rnn_tanh rnn_relu rnn_tanh_cell rnn_relu_cell lstm
"""
_LOSSES = """
    nn.functional.binary_cross_entropy_with_logits nn.functional.cosine_embedding_loss nn.functional.cross_entropy
    nn.functional.hinge_embedding_loss nn.functional.kl_div nn.functional.l1_loss nn.functional.margin_ranking_loss
    nn.functional.mse_loss nn.functional.multilabel_margin_loss nn.functional.multi_margin_loss nn.functional.nll_loss
    nn.functional.poisson_nll_loss nn.functional.smooth_l1_loss nn.functional.soft_margin_loss nn.functional.ctc_loss
"""

_LISTS = {
    "cuda": {
        "lower": _PRODUCTS + "addmv addr mv linalg.vecdot lstm_cell gru gru_cell",
        "full": _LOSSES
        + """
            acos asin cosh erfinv exp exp2 expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow
            nn.functional.softplus cumprod cumsum prod sum nansum norm renorm dist logsumexp
            linalg.norm linalg.vector_norm linalg.matrix_norm
            softmax log_softmax nn.functional.softmax nn.functional.log_softmax nn.functional.softmin
            layer_norm rms_norm group_norm
            cosine_similarity cdist pdist
            nn.functional.normalize nn.functional.local_response_norm polar stft fft.fft fft.ifft fft.fft2 fft.ifft2
            fft.fftn fft.ifftn fft.rfft fft.irfft fft.rfft2 fft.irfft2 fft.rfftn fft.irfftn fft.hfft fft.ihfft
        """,
        "widest": """
            addcdiv addcmul atan2 nn.functional.bilinear cross dot vdot nn.functional.grid_sample index_put
            scatter_add tensordot cat stack
        """,
        "refused": "nn.functional.binary_cross_entropy",
    },
    "cpu": {
        "lower": _PRODUCTS + "linalg.vecdot",
        "second": "gru gru_cell lstm_cell",
        "full": _LOSSES
        + """
            nn.functional.binary_cross_entropy nn.functional.huber_loss nn.functional.avg_pool3d
            nn.functional.grid_sample nn.functional.max_pool3d nn.functional.max_unpool2d nn.functional.max_unpool3d
            nn.functional.adaptive_avg_pool3d polar prod quantile nanquantile stft cdist trace view_as_complex
            cholesky cholesky_inverse cholesky_solve inverse lu_solve ormqr pinverse qr linalg.qr
            fft.fft fft.ifft fft.fft2 fft.ifft2 fft.fftn fft.ifftn fft.rfft fft.irfft fft.rfft2 fft.irfft2 fft.rfftn
            fft.irfftn fft.hfft fft.ihfft linalg.cond linalg.matrix_rank linalg.solve linalg.cholesky linalg.svdvals
            linalg.eigvals linalg.eigvalsh linalg.inv linalg.householder_product linalg.tensorinv linalg.tensorsolve
            linalg.eig linalg.eigh linalg.lstsq linalg.svd
        """,
        "widest": "cat stack index_copy",
        "refused": "",
    },
}

#: Methods that are these operators in Python's own notation.
NOTATION = {"matmul": ("__matmul__", "__rmatmul__"), "pow": ("__pow__", "__rpow__"), "reciprocal": ("__rtruediv__",)}

#: By the qualified name of an operator: what is done on each kind of device.
POLICIES: dict[str, dict[str, str]] = {}
for _device, _rules in _LISTS.items():
    for _rule, _names in _rules.items():
        for _name in _names.split():
            POLICIES.setdefault(_name, {})[_device] = _rule
