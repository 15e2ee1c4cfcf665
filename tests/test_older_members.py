"""Members that older programs name: expressions that must say the same with PyTorch and with tinytorch."""

import pytest
from autograd.rules import agree, outcome

import tinytorch

# t is (2, 3) of ones, b a bool matrix, s a sparse one, c complex.
EXPRESSIONS = """
t.xpu(); t.ipu(); t.mtia(); t.to("xpu"); torch.zeros(2, device="xpu"); torch.zeros(2, device="mtia"); t.to("ipu")
t.dequantize().dtype is torch.float32; torch.dequantize(b).tolist(); t.is_distributed(); torch.is_distributed(t)
t.const_data_ptr() == t.data_ptr(); t.name; t.volatile; t.resize(3, 2).tolist(); t.resize(4)
t.resize_as(torch.ones(3, 2)).shape; t.resize(3, 2).data_ptr() == t.data_ptr()
t.solve(t); t.lstsq(t); t.eig(); t.symeig(); torch.eig(t); torch.solve(t, t); torch.lstsq(t, t); torch.symeig(t, True)
torch.matrix_rank(t); list(reversed(w))[0].tolist(); w.__reversed__().tolist(); b._is_all_true().item()
b._is_any_true().item(); t._is_all_true(); torch._is_any_true(b).dtype is torch.bool; c._conj().tolist()
t._conj_physical().tolist(); t._addmm_activation(torch.ones(2, 3), torch.ones(3, 3)).tolist()
torch._addmm_activation(-torch.ones(3), t, torch.ones(3, 3), beta=2, alpha=0.1).tolist()
torch._addmm_activation(t, t, torch.ones(3, 3), use_gelu=True)[0, 0].item().__round__(5)
torch.ones(1).__nonzero__(); torch.ones(1).__long__(); torch.ones(1).__div__(2).tolist(); t._has_symbolic_sizes_strides
t.module_load(torch.zeros(2, 3)).tolist(); t.module_load(t * 2, assign=True).tolist(); t.layout is torch.sparse_csc
str(torch.sparse_bsr).split(".")[-1]; s.layout is torch.sparse_bsc; t.layout is torch.jagged
torch.sparse_compressed_tensor([0, 1, 2], [0, 1], [1.0, 2.0], layout=torch.sparse_csr).to_dense().tolist()
torch.arange(6).resize(2, 3).tolist(); w.requires_grad_().resize(6).sum().backward() or w.grad.tolist()
"""
CASES = [case.strip() for line in EXPRESSIONS.strip().splitlines() for case in line.split(";")]
ABSENT = """
t.to_sparse_csc(); s.to_sparse_csc(); t.to_sparse_bsr((1, 1)); t.to_sparse_bsc((1, 1)); t.ccol_indices()
s.row_indices(); t.to_mkldnn(); t.to_padded_tensor(0.0); t.to_sparse(layout=torch.sparse_csc)
torch.sparse_compressed_tensor(t, t, t, layout=torch.sparse_csc)
"""


def evaluate(case, torch):
    """The value of an expression of the table."""
    t, b = torch.ones(2, 3), torch.tensor([[True, False]])
    names = {"torch": torch, "t": t, "b": b, "s": torch.eye(2).to_sparse(), "c": torch.tensor([1 + 2j])}
    return outcome(lambda: eval(case, names | {"w": torch.arange(6.0).reshape(2, 3)}))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore")
def test_expression(case, torch):
    agree(lambda library: evaluate(case, library), torch)


@pytest.mark.parametrize("case", [case.strip() for line in ABSENT.strip().splitlines() for case in line.split(";")])
def test_what_is_not_here(case):
    names = {"torch": tinytorch, "t": tinytorch.ones(2, 3), "s": tinytorch.eye(2).to_sparse()}
    with pytest.raises(NotImplementedError):
        eval(case, names)
