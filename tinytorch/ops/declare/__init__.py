"""The forms in which operators are declared: see README.md in ops/.

elementwise   unary, binary, ternary: a scalar function and its derivatives
reduction     a reducer and its derivative
primitive     a forward function with one output or several; c_op where that is one C call
c_view        a view of the first argument, by one C call
update        an operator that writes into a tensor; overwrite where nothing is left of the old values
composite     a function made of other operators; alias: another name of one
"""

from .arguments import (
    broadcast_shape,
    castable,
    ints,
    is_number,
    number,
    number_parts,
    operand,
    requires,
    scalar_kind,
    write_all_out,
    write_out,
)
from .c_op import c_op, computed
from .c_view import SHAPE, c_view
from .deprecated import old_order
from .elementwise import Elementwise, binary, mul_vjp, ternary, unary, without_history
from .op import COMPUTES, NAMESPACES, OPS, Op, names_of, operator_of
from .primitive import primitive
from .public import dim_or_axis, outermost
from .publish import (
    alias,
    attach,
    both,
    composite,
    function,
    method,
    name_methods,
    publish,
    record_of,
    same_parameters,
    shown,
)
from .refusals import fits, flags_only, real_only, refuse, refuse_call, tensors_only
from .reduction import reduction, shortcut
from .update import overwrite, update
