"""``torch.version``: of PyTorch, which tinytorch follows."""

from tinytorch.cuda import is_available

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "xpu"]

__version__ = "2.13.0"
cuda = "13.0" if is_available() else None
debug, git_version, hip, xpu = False, "tinytorch", None, None
