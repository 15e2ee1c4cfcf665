"""The operator table: one entry for each operator, in one file per family; core.py says what an entry is."""

import importlib
import pkgutil

from tinytorch.ops.declare import OPS as DECLARED

from optable.core import Op, Sample, Spec, make
from optable.special import WITHOUT_ENTRY

FAMILIES = [importlib.import_module(f"optable.{m.name}") for m in pkgutil.iter_modules(__path__) if m.name != "core"]
OPS = tuple(op for family in FAMILIES for op in family.OPS)

# Further names of the same functions, where they have no entry of their own, nor nn.functional's of that name has one.
_NAMED = {name for op in OPS for name in (op.name, op.name.removeprefix("F."))}
ALIASES = {
    other: op.name
    for op in DECLARED.values()
    for other in op.aliases
    if other not in _NAMED and not other.endswith("_")
}

__all__ = ["ALIASES", "OPS", "Op", "Sample", "Spec", "WITHOUT_ENTRY", "make"]

assert len({op.name for op in OPS}) == len(OPS), "two entries of the table share a name"
