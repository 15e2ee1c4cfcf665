"""The forms in which operators are declared: see README.md in ops/.

    elementwise   unary, binary, ternary: a scalar function and its derivatives
    reduction     a reducer and its derivative
    operator      a forward function with one output or several; c_op where that is one C call
    view          a view of the first argument
    update        an operator that writes into a tensor; overwrite where nothing is left of the old values
    composite     a function made of other operators
"""

from .arguments import (
    broadcast_shape,
    castable,
    deliver,
    dim_or_axis,
    ints,
    is_number,
    number,
    operand,
    requires,
    scalar_kind,
)
from .c_op import c_op, computed, wrong_type
from .elementwise import Elementwise, binary, mul_vjp, ternary, unary, without_history
from .op import NAMESPACES, OPS, Op, names_of, operator_of
from .primitive import primitive
from .publish import alias, both, composite, function, method, publish
from .reduction import reduction
from .update import overwrite, update
from .c_view import SHAPE, c_view

__all__ = ["NAMESPACES", "OPS", "SHAPE", "Elementwise", "Op", "alias", "binary", "both", "broadcast_shape", "c_op", "c_view",
           "castable", "composite", "computed", "deliver", "dim_or_axis", "function", "ints", "is_number",
           "method", "mul_vjp",
           "names_of", "number", "operand", "operator_of", "overwrite", "publish", "reduction",
           "requires", "scalar_kind", "primitive", "ternary", "unary", "update", "without_history", "wrong_type"]
