"""The named tuples of operators with several results. Follow ``torch.return_types``."""

from __future__ import annotations

from . import library_name


class _Result(tuple):
    """Several results under names: also a plain tuple."""

    __slots__ = ()
    _fields: tuple[str, ...] = ()

    def __new__(cls, *values):
        return tuple.__new__(cls, values[0] if len(values) == 1 else values)

    def __repr__(self):
        fields = ",\n".join(f"{name}={value!r}" for name, value in zip(self._fields, self))
        return f"{library_name.shown}.return_types.{type(self).__name__}(\n{fields})"

    def __reduce__(self):
        return type(self), (tuple(self),)


def _field(position: int, name: str):
    return property(lambda self: self[position], doc=f"Result {position}: {name}.")


def _result_type(name: str, *fields: str) -> type:
    """A named tuple class ``tinytorch.return_types.<name>``."""
    names = {field: _field(i, field) for i, field in enumerate(fields)}
    return type(
        name,
        (_Result,),
        {
            "__slots__": (),
            "_fields": fields,
            "__module__": __name__,
            "__doc__": f"The results of ``{name}``: {', '.join(fields)}.",
            **names,
        },
    )


max = _result_type("max", "values", "indices")  # noqa: A001
min = _result_type("min", "values", "indices")  # noqa: A001
sort = _result_type("sort", "values", "indices")
topk = _result_type("topk", "values", "indices")
kthvalue = _result_type("kthvalue", "values", "indices")
median = _result_type("median", "values", "indices")
nanmedian = _result_type("nanmedian", "values", "indices")
mode = _result_type("mode", "values", "indices")
cummax = _result_type("cummax", "values", "indices")
cummin = _result_type("cummin", "values", "indices")
aminmax = _result_type("aminmax", "min", "max")
histogram = _result_type("histogram", "hist", "bin_edges")
histogramdd = _result_type("histogramdd", "hist", "bin_edges")
frexp = _result_type("frexp", "mantissa", "exponent")
linalg_svd = _result_type("linalg_svd", "U", "S", "Vh")
linalg_eig = _result_type("linalg_eig", "eigenvalues", "eigenvectors")
linalg_eigh = _result_type("linalg_eigh", "eigenvalues", "eigenvectors")
linalg_qr = _result_type("linalg_qr", "Q", "R")
linalg_slogdet = _result_type("linalg_slogdet", "sign", "logabsdet")
slogdet = _result_type("slogdet", "sign", "logabsdet")
linalg_cholesky_ex = _result_type("linalg_cholesky_ex", "L", "info")
linalg_ldl_factor = _result_type("linalg_ldl_factor", "LD", "pivots")
linalg_ldl_factor_ex = _result_type("linalg_ldl_factor_ex", "LD", "pivots", "info")
linalg_lstsq = _result_type("linalg_lstsq", "solution", "residuals", "rank", "singular_values")
linalg_lu = _result_type("linalg_lu", "P", "L", "U")
linalg_lu_factor = _result_type("linalg_lu_factor", "LU", "pivots")
linalg_lu_factor_ex = _result_type("linalg_lu_factor_ex", "LU", "pivots", "info")
linalg_solve_ex = _result_type("linalg_solve_ex", "result", "info")
linalg_inv_ex = _result_type("linalg_inv_ex", "inverse", "info")
_lu_with_info = _result_type("_lu_with_info", "LU", "pivots", "info")
geqrf = _result_type("geqrf", "a", "tau")
lu_unpack = _result_type("lu_unpack", "P", "L", "U")
qr = _result_type("qr", "Q", "R")
svd = _result_type("svd", "U", "S", "V")
triangular_solve = _result_type("triangular_solve", "solution", "cloned_coefficient")

__all__ = [_name for _name, _type in vars().items() if isinstance(_type, type) and not _name.startswith("_")]
