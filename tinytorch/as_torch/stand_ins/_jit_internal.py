"""``torch._jit_internal``: decorators that give what they are given."""

from __future__ import annotations

from .jit import Final, Future, _overload, export, ignore, is_scripting, unused

__all__ = ["Final", "Future", "_copy_to_script_wrapper", "_overload", "boolean_dispatch", "export", "ignore",
           "is_scripting", "unused"]  # fmt: skip


def _copy_to_script_wrapper(fn):
    """``fn`` itself."""
    return fn


def boolean_dispatch(arg_name, arg_index, default, if_true, if_false, module_name, func_name):
    """A function that is ``if_true`` or ``if_false``, as its argument of that name says."""

    def fn(*args, **kwargs):
        flag = kwargs.get(arg_name, args[arg_index] if arg_index < len(args) else default)
        return (if_true if flag else if_false)(*args, **kwargs)

    return fn
