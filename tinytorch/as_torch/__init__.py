"""``import torch`` means tinytorch from here on, in this process.

    import tinytorch.as_torch                        # before anything imports torch
    python -m tinytorch.as_torch script.py args...   # or -m module args...

``torch.nn`` is ``tinytorch.nn``, the same module object, and so is each submodule that tinytorch has; old paths
(``torch.nn.modules.conv``) lead to where the names are (paths.py); what only programs written for PyTorch need is in
stand_ins/, each module at PyTorch's path. dtypes, sizes and types of tensors are shown under PyTorch's name, and
``torch.__version__`` is the version that tinytorch follows. A name that is missing is an AttributeError or ImportError
that says so, and what is near. Pickles hold tinytorch's names, and load in every process that has tinytorch.
"""

from .finder import VERSION, install

__all__ = ["VERSION", "install"]

install()
