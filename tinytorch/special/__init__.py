"""Special functions, many of them operators that have another name elsewhere: ``special.expit`` is ``sigmoid``. Follows
``torch.special``."""

from ..ops.declare import alias as _alias
from ..ops.declare import names_of as _names_of

_SAME = "digamma erf erfc erfinv exp2 expm1 i0 log1p log_softmax logit logsumexp polygamma round sinc softmax xlogy"
for _name in _SAME.split():
    _alias(_name, _name, namespace="special")
_alias("digamma", "psi", namespace="special")
_alias("igamma", "gammainc", namespace="special")
_alias("igammac", "gammaincc", namespace="special")
_alias("lgamma", "gammaln", namespace="special")
_alias("mvlgamma", "multigammaln", namespace="special")
_alias("sigmoid", "expit", namespace="special")
globals().update(_names_of("special"))
__all__ = sorted(_names_of("special"))
