"""Parameters that are given as probabilities or as logits."""

from __future__ import annotations

from ..nn.functional import binary_cross_entropy_with_logits
from . import constraints
from .distribution import attribute
from .utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits

__all__ = []


def given(probs, logits) -> dict:
    """The one that is given, by its name. ValueError for none or both."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")
    return {"logits": logits} if probs is None else {"probs": probs}


class Odds:
    """A probability of success, or its log odds; each is computed of the other when it is asked for."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}

    @lazy_property
    def logits(self):
        """log(probs / (1 - probs))."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self):
        """The probability of success."""
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def _param(self):
        return self.__dict__["probs" if "probs" in self.__dict__ else "logits"]

    @property
    def param_shape(self):
        """The shape of the parameter."""
        return self._param.shape

    def _new(self, *args, **kwargs):
        return self._param.new(*args, **kwargs)

    def _log_odds(self, value):
        """value log(probs) + (1 - value) log(1 - probs)."""
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")


class OfCategorical:
    """The parameters of a categorical distribution that is an attribute, ``_categorical``."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    probs = attribute("_categorical.probs")
    logits = attribute("_categorical.logits")
    param_shape = attribute("_categorical.param_shape")
    _param = attribute("_categorical._param")
    _held = ("_categorical",)

    def _new(self, *args, **kwargs):
        return self._categorical._new(*args, **kwargs)
