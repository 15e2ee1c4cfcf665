"""Special functions, most of them operators that have another name elsewhere: ``special.expit`` is ``sigmoid``. Follows
``torch.special``."""

from ..ops.softmax import log_softmax, softmax
from ..ops.arithmetic import logit, polygamma, round
from ..ops.declare import alias as _alias
from ..ops.pointwise import (
    digamma,
    erf,
    erfc,
    erfinv,
    exp2,
    expm1,
    log1p,
    sinc,
    xlogy,
)
from ..ops.pointwise import digamma as psi
from ..ops.pointwise import lgamma as gammaln
from ..ops.pointwise import sigmoid as expit
from ..ops.statistics import logsumexp

__all__ = [
    "digamma", "erf", "erfc", "erfinv", "exp2", "expit", "expm1", "gammaln", "log1p", "log_softmax", "logit",
    "logsumexp", "polygamma", "psi", "round", "sinc", "softmax", "xlogy",
]  # fmt: skip

for _name in __all__:
    _alias(globals()[_name].op.qualified, _name, namespace="special")
