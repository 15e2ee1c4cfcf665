"""The named tuples of operators with several results. Follow ``torch.return_types``."""

from __future__ import annotations


class _Result(tuple):
    """Several results under names: also a plain tuple."""

    __slots__ = ()
    _fields: tuple[str, ...] = ()

    def __new__(cls, *values):
        return tuple.__new__(cls, values[0] if len(values) == 1 else values)

    def __repr__(self):
        fields = ",\n".join(f"{name}={value!r}" for name, value in zip(self._fields, self))
        return f"tinytorch.return_types.{type(self).__name__}(\n{fields})"

    def __reduce__(self):
        return type(self), (tuple(self),)


def _field(position: int, name: str):
    return property(lambda self: self[position], doc=f"Result {position}: {name}.")


def result_type(name: str, *fields: str) -> type:
    """A named tuple class ``tinytorch.return_types.<name>``."""
    names = {field: _field(i, field) for i, field in enumerate(fields)}
    return type(name, (_Result,), {"__slots__": (), "_fields": fields, "__module__": __name__,
                                   "__doc__": f"The results of ``{name}``: {', '.join(fields)}.", **names})


max = result_type("max", "values", "indices")  # noqa: A001
min = result_type("min", "values", "indices")  # noqa: A001
sort = result_type("sort", "values", "indices")
topk = result_type("topk", "values", "indices")
kthvalue = result_type("kthvalue", "values", "indices")
median = result_type("median", "values", "indices")
nanmedian = result_type("nanmedian", "values", "indices")
mode = result_type("mode", "values", "indices")
cummax = result_type("cummax", "values", "indices")
cummin = result_type("cummin", "values", "indices")
aminmax = result_type("aminmax", "min", "max")
linalg_svd = result_type("linalg_svd", "U", "S", "Vh")
linalg_eigh = result_type("linalg_eigh", "eigenvalues", "eigenvectors")
linalg_qr = result_type("linalg_qr", "Q", "R")
linalg_slogdet = result_type("linalg_slogdet", "sign", "logabsdet")
slogdet = result_type("slogdet", "sign", "logabsdet")
linalg_cholesky_ex = result_type("linalg_cholesky_ex", "L", "info")
linalg_solve_ex = result_type("linalg_solve_ex", "result", "info")
linalg_inv_ex = result_type("linalg_inv_ex", "inverse", "info")
