"""``torch._dynamo._trace_wrapped_higher_order_op``."""

from __future__ import annotations

import contextlib

__all__ = ["TransformGetItemToIndex"]

TransformGetItemToIndex = contextlib.nullcontext
