"""``torch.nn.common_types``: names for annotations."""

from __future__ import annotations

from typing import Optional, TypeVar, Union

from tinytorch import Tensor

T = TypeVar("T")
_scalar_or_tuple_any_t = Union[T, tuple[T, ...]]
_scalar_or_tuple_1_t = Union[T, tuple[T]]
_scalar_or_tuple_2_t = Union[T, tuple[T, T]]
_scalar_or_tuple_3_t = Union[T, tuple[T, T, T]]
_size_any_t, _size_1_t = _scalar_or_tuple_any_t[int], _scalar_or_tuple_1_t[int]
_size_2_t, _size_3_t = _scalar_or_tuple_2_t[int], _scalar_or_tuple_3_t[int]
_size_4_t = Union[int, tuple[int, int, int, int]]
_size_5_t = Union[int, tuple[int, int, int, int, int]]
_size_6_t = Union[int, tuple[int, int, int, int, int, int]]
_size_any_opt_t, _size_2_opt_t = _scalar_or_tuple_any_t[Optional[int]], _scalar_or_tuple_2_t[Optional[int]]
_size_3_opt_t = _scalar_or_tuple_3_t[Optional[int]]
_ratio_any_t = _scalar_or_tuple_any_t[float]
_ratio_2_t, _ratio_3_t = _scalar_or_tuple_2_t[float], _scalar_or_tuple_3_t[float]
_tensor_list_t = Union[Tensor, list[Tensor], tuple[Tensor, ...]]

__all__ = [
    "_ratio_2_t", "_ratio_3_t", "_ratio_any_t", "_scalar_or_tuple_1_t", "_scalar_or_tuple_2_t", "_scalar_or_tuple_3_t",
    "_scalar_or_tuple_any_t", "_size_1_t", "_size_2_opt_t", "_size_2_t", "_size_3_opt_t", "_size_3_t", "_size_4_t",
    "_size_5_t", "_size_6_t", "_size_any_opt_t", "_size_any_t", "_tensor_list_t",
]  # fmt: skip
