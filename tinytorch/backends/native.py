"""Types written in C (kernels/python/python.h): the module tinytorch.backends._native, in cffi's shared object."""

from __future__ import annotations

import importlib.util
import sys

from . import _cpu


_spec = importlib.util.spec_from_file_location(f"{__package__}._native", _cpu.__file__)
_native = sys.modules[_spec.name] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_native)

TensorBase, owner = _native.TensorBase, _native.owner
owned_result, owned_results, owned_array = _native.owned_result, _native.owned_results, _native.owned_array
ModeContextBase, ModeSwitchBase, modes = _native.ModeContextBase, _native.ModeSwitchBase, _native.modes
FusedBase = _native.FusedBase
call_on_device, owned_memory = _native.call_on_device, _native.owned_memory
raise_after_call = _native.raise_after_call
NodeBase, new_node, record, record_stamped = _native.NodeBase, _native.new_node, _native.record, _native.record_stamped
has_views, edges_of, versions_of = _native.has_views, _native.edges_of, _native.versions_of
count, shape_of, dtype_of, set_dtypes = _native.count, _native.shape_of, _native.dtype_of, _native.set_dtypes
last_write, elementwise_into, elementwise_of = _native.last_write, _native.elementwise_into, _native.elementwise_of
copy_into, fill_into, is_quiet = _native.copy_into, _native.fill_into, _native.is_quiet
nodes_on_path, with_history = _native.nodes_on_path, _native.with_history
