"""``torch.backends``: the settings of the libraries that compute."""

from tinytorch.backends import cudnn

from . import cpu, cuda, mha, mkl, mkldnn, mps, openmp, opt_einsum

__all__ = ["cpu", "cuda", "cudnn", "fp32_precision", "mha", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"]

fp32_precision = "none"
