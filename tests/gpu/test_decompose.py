"""Decompositions on a device: by the kernels for small matrices and, in their stead, by the libraries (of which the
emulated device has a stand-in), beside the CPU's. Each operator with its derivatives: test_ops.py --device cuda."""

import pytest
import tinytorch as tt
from gpu import solvers
from tinytorch.backends.cpu import lib

L = tt.linalg
SQUARE = [(1, 1), (5, 5), (2, 3, 3), (2, 1, 18, 18), (40, 40), (0, 0), (2, 0, 0), (0, 3, 3)]
ANY = [(5, 3), (3, 5), (2, 7, 4), (2, 4, 7), (33, 20), (3, 0), (0, 3), (0, 2, 3), (2, 5, 1)]
DTYPES = ["float32", "float64", "complex64", "complex128"]


@pytest.fixture(params=[128, 0], ids=["kernels", "library"])
def way(gpu, request):
    """Up to which size matrices are our kernels'."""
    before, lib.tt_cuda_small_side = lib.tt_cuda_small_side, request.param
    yield request.param
    lib.tt_cuda_small_side = before


def svd(full):
    def call(a):
        U, S, Vh = L.svd(a, full)
        k = S.shape[-1]
        return (U[..., :k] * S.unsqueeze(-2)) @ Vh[..., :k, :], S, U.mH @ U, Vh @ Vh.mH

    return call


def eigh(uplo):
    def call(a):
        values, V = L.eigh(a.tril() if uplo == "L" else a.triu(), uplo)
        return (V * values.unsqueeze(-2)) @ V.mH, values, V.mH @ V

    return call


def eig(a):
    values, V = L.eig(a)
    return (V * values.unsqueeze(-2)) @ L.inv(V), values.abs().sort(-1)[0], V.abs().square().sum(-2)


def qr(mode):
    def call(a):
        Q, R = L.qr(a, mode)
        return (Q @ R, Q.mH @ Q, R.abs()) if mode != "r" else R.mH @ R

    return call


def solve_triangular(how):
    def call(a, b):
        right = not how.get("left", True)
        return L.solve_triangular(a, b.mT if right else b, **how)

    return call


# By name: how the operand is made of one with a strong diagonal, the function, and whether it takes a second one.
FACTORS = {
    "cholesky": (lambda a: a @ a.mH, L.cholesky, False),
    "cholesky upper": (lambda a: a @ a.mH, lambda a: L.cholesky(a, upper=True), False),
    "cholesky_inverse": (lambda a: L.cholesky(a @ a.mH) + a.triu(1), tt.cholesky_inverse, False),
    "cholesky_inverse upper": (
        lambda a: L.cholesky(a @ a.mH, upper=True) + a.tril(-1),
        lambda a: tt.cholesky_inverse(a, upper=True),
        False,
    ),
    "inv": (lambda a: a, L.inv, False),
    "lu": (lambda a: a, L.lu, False),
    "lu_factor_ex": (lambda a: a, L.lu_factor_ex, False),
    "solve": (lambda a: a, L.solve, True),
    "solve, one A": (lambda a: a, lambda a, b: L.solve(a.reshape(-1, *a.shape[-2:])[:1] if a.numel() else a, b), True),
    "lu_solve adjoint": (lambda a: a, lambda a, b: L.lu_solve(*L.lu_factor(a), b, adjoint=True), True),
    "eigh L": (lambda a: a + a.mH, eigh("L"), False),
    "eigh U": (lambda a: a + a.mH, eigh("U"), False),
    "eigvalsh": (lambda a: a + a.mH, L.eigvalsh, False),
    "eig": (lambda a: a, eig, False),
    "eigvals": (lambda a: a, lambda a: L.eigvals(a).abs().sort(-1)[0], False),
    "ldl": (lambda a: a + a.mT, L.ldl_factor, False),
    "ldl hermitian": (lambda a: a + a.mH, lambda a: L.ldl_factor(a, hermitian=True), False),
    "ldl_solve": (lambda a: a + a.mT, lambda a, b: L.ldl_solve(*L.ldl_factor(a), b), True),
    "ldl_solve hermitian": (
        lambda a: a + a.mH,
        lambda a, b: L.ldl_solve(*L.ldl_factor(a, hermitian=True), b, hermitian=True),
        True,
    ),
} | {
    f"solve_triangular {how}": (lambda a: a, solve_triangular(how), True)
    for how in (
        {"upper": True},
        {"upper": False},
        {"upper": True, "left": False},
        {"upper": False, "left": False},
        {"upper": False, "unitriangular": True},
    )
}
OF_ANY = {
    "svd": svd(False),
    "svd full": svd(True),
    "svdvals": L.svdvals,
    "qr": qr("reduced"),
    "qr complete": qr("complete"),
    "qr r": qr("r"),
    "geqrf": tt.geqrf,
    "lu": L.lu,
}


# The emulated device takes half a minute for all four, whose kernels are of one source.
FEWER = [pytest.param(name, marks=pytest.mark.slow) if name in ("float64", "complex64") else name for name in DTYPES]


def make(shape, dtype, seed=0):
    g = tt.Generator().manual_seed(seed)
    return tt.randn(shape, dtype=getattr(tt, dtype), generator=g)


def strong(shape, dtype):
    """A matrix whose diagonal outweighs the rest."""
    steps = tt.arange(1, shape[-1] + 1).to(getattr(tt, dtype)) * 2 * shape[-1]
    return make(shape, dtype) / 2 + steps.diag_embed() + 1


def near(got, want):
    tolerance = 2e-4 if want.dtype in (tt.float32, tt.complex64) else 1e-11
    scale = float(want.abs().max()) if want.numel() else 0
    assert got.dtype is want.dtype and got.shape == want.shape
    assert tt.allclose(got, want, rtol=tolerance, atol=tolerance * (scale + 1e-30))


def check(call, *operands):
    expected, found = call(*operands), call(*(x.cuda() for x in operands))
    pairs = zip(expected, found) if isinstance(expected, tuple) else [(expected, found)]
    for want, got in pairs:
        assert got.is_cuda
        near(got.cpu(), want)


@pytest.mark.parametrize("dtype", FEWER)
@pytest.mark.parametrize("name", FACTORS)
def test_square_matrices(way, name, dtype):
    prepare, call, takes_b = FACTORS[name]
    for shape in SQUARE:
        b = [make((*shape[:-1], 3), dtype, 1)] if takes_b else []
        check(call, prepare(strong(shape, dtype)), *b)


@pytest.mark.parametrize("dtype", FEWER)
@pytest.mark.parametrize("name", OF_ANY)
def test_any_matrices(way, name, dtype):
    for shape in ANY:
        check(OF_ANY[name], make(shape, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 4, 4), (2, 9, 4), (3, 0)])
def test_least_squares(way, shape, dtype):
    a, b = make(shape, dtype), make((*shape[:-1], 2), dtype, 1)
    check(lambda a, b: L.lstsq(a, b, driver="gels").solution, a, b)


def test_least_squares_have_one_driver(gpu):
    a = tt.eye(3, device="cuda")
    assert tt.equal(L.lstsq(a, a).solution, a)
    with pytest.raises(RuntimeError, match="linalg.lstsq: `driver` other than `gels` is not supported on CUDA"):
        L.lstsq(a, a, driver="gelsd")


def test_layouts(way):
    a = strong((2, 6, 6), "float64")
    check(lambda a: L.inv(a.mT), a)
    check(lambda a: L.svdvals(a[:, ::2, 1:].mT), a)
    check(lambda a: L.solve_triangular(a.mT, a[..., ::2], upper=True), a)
    check(lambda a: L.solve(a, a[0].expand(2, 6, 6)), a)


def test_an_inverse_that_does_not_fit_beside_its_matrix(way):
    check(L.inv, strong((2, 110, 110), "complex128"))


@pytest.mark.parametrize("columns", [1, 3000])
def test_many_right_hand_sides(way, columns):
    a, b = strong((9, 9), "complex128"), make((9, columns), "complex128", 1)
    check(L.solve, a, b)
    check(lambda a, b: L.solve_triangular(a, b.mT, upper=True, left=False), a, b)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_ranks_and_scales(way, dtype):
    """Zeros, values that coincide, ranks below the size, and elements whose squares are not there."""
    x = make((6, 2), dtype)
    low = x @ x.mH
    same, large = tt.eye(5, dtype=x.dtype), 1e30 if way else 1e10  # which cuSOLVER's vectors lose
    for a in (low, low[:, :4], low[:3], same, same * 0, same - 2 * same[:, :1], low * large, low / large):
        check(svd(True), a)
        if a.shape[0] == a.shape[1]:
            check(eigh("L"), a + a.mH)
        check(qr("complete"), a)


def test_lu_in_order(way):
    a = strong((2, 5, 5), "float64").cuda()
    P, LOWER, U = L.lu(a, pivot=False)
    assert P.numel() == 0 and tt.allclose(LOWER @ U, a)
    LU, pivots = L.lu_factor(a, pivot=False)
    assert pivots.tolist() == [[1, 2, 3, 4, 5]] * 2
    assert tt.allclose(L.lu_solve(LU, pivots, a), tt.eye(5, dtype=a.dtype, device="cuda").expand(2, 5, 5))
    a.requires_grad_()
    assert tt.autograd.gradcheck(lambda a: L.lu(a, pivot=False)[1:], (a,))


EYE, ZEROS = tt.eye(3), tt.zeros(3, 3)
NAN, INF = EYE + 0, EYE + 0
NAN[1, 1], INF[1, 0] = float("nan"), float("inf")
FAILURES = {
    "cholesky": (L.cholesky, tt.stack([EYE, ZEROS])),
    "cholesky of NaN": (L.cholesky, NAN),
    "cholesky of one": (lambda a: L.cholesky(a, upper=True), -EYE),
    "cholesky_inverse": (tt.cholesky_inverse, tt.stack([EYE, EYE - EYE[:, 1:2] * EYE[1]])),
    "inv": (L.inv, tt.stack([EYE, ZEROS])),
    "solve": (lambda a: L.solve(a, a), tt.stack([EYE, EYE, ZEROS])),
    "lu_factor": (L.lu_factor, ZEROS),
    "ldl_factor": (L.ldl_factor, tt.stack([EYE, ZEROS])),
    "eigh": (L.eigh, tt.stack([EYE, NAN])),
    "eigvalsh": (L.eigvalsh, INF),
    "eig": (L.eig, tt.stack([EYE, NAN])),
    "eigvals": (L.eigvals, INF),
    "svd": (L.svd, tt.stack([INF, EYE])),
    "svdvals": (L.svdvals, NAN),
    "lstsq": (lambda a: L.lstsq(a, a, driver="gels"), NAN),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failures_are_those_of_the_cpu(way, name):
    call, a = FAILURES[name]
    with pytest.raises(L.LinAlgError) as expected:
        call(a)
    with pytest.raises(L.LinAlgError) as found:
        call(a.cuda())
    assert str(found.value) == str(expected.value)


def test_a_matrix_of_lower_rank_has_no_least_squares(way):
    with pytest.raises(L.LinAlgError, match=r"\(Batch element 1\): The least squares problem could not be solved"):
        L.lstsq(tt.stack([EYE, ZEROS]).cuda(), tt.stack([EYE, EYE]).cuda())


def test_states_without_errors(way):
    a = tt.stack([EYE, ZEROS]).cuda()
    assert L.cholesky_ex(a).info.tolist() == [0, 1] == L.inv_ex(a).info.tolist() == L.lu_factor_ex(a).info.tolist()
    assert not way or not L.inv_ex(NAN.cuda()).info.item()  # cuSOLVER takes NaN for 0


@pytest.mark.parametrize("solve", [L.lu_solve, L.ldl_solve])
def test_wrong_pivots(way, solve):
    pivots = tt.tensor([1, 9, 3], dtype=tt.int32, device="cuda")
    with pytest.raises(RuntimeError, match="pivots must be between 1 and the number of rows, 3, .*; one is 9"):
        solve(EYE.cuda(), pivots, EYE.cuda()).sum().item()


def test_drivers_of_svd(way):
    a = make((4, 6), "complex128")
    for driver in (None, "gesvd", "gesvdj", "gesvda"):
        assert tt.allclose(L.svdvals(a.cuda(), driver=driver).cpu(), L.svdvals(a))
        U, S, Vh = L.svd(a.cuda(), False, driver=driver)
        assert tt.allclose(((U * S) @ Vh).cpu(), a)
    with pytest.raises(RuntimeError, match="unknown svd driver nope"):
        L.svd(a.cuda(), driver="nope")


def test_what_does_not_converge_is_tried_again(emulated):
    library = lib.tt_cuda_small_side, solvers.stand_in()
    lib.tt_cuda_small_side = 0
    try:
        for shape in ((3, 6, 4), (3, 4, 6)):
            library[1].fake_does_not_converge = 2
            check(svd(True), make(shape, "complex64"))
            assert library[1].fake_does_not_converge == 0
    finally:
        lib.tt_cuda_small_side = library[0]


def test_a_stack_of_small_matrices_is_one_launch(emulated):
    a = strong((50, 4, 4), "float32").cuda()
    for call, family in ((L.inv_ex, "tiny"), (L.cholesky_ex, "tiny"), (L.qr, "small"), (L.svd, "jacobi")):
        emulated.launches.clear()
        call(a)
        assert [name for name in emulated.launches if family in name] and "linalg" not in emulated.launches
        assert len(emulated.launches) == 1 + (family != "tiny")  # one copies the operand


def in_order(a):
    """Factors without exchanges: on the CPU with them, since the diagonal outweighs the rest."""
    return L.lu_factor_ex(a, pivot=not a.is_cuda)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_in_lanes(emulated, dtype):
    """Of matrices of up to 32 rows, more than a thread block's, some of which are singular or not positive."""
    for n in (1, 2, 7, 8, 9, 16, 17, 31, 32):
        a = strong((19, n, n), dtype)
        a[4] *= -1
        a[7, :, n // 2] = 0
        on_device = a.cuda()
        emulated.launches.clear()
        for call in (L.cholesky_ex, L.inv_ex, L.lu_factor_ex, in_order):
            found, expected = call(on_device), call(a)
            good = expected[-1] == 0
            assert good.any() and not (n > 1 and good.all())
            for got, want in zip(found[:-1], expected[:-1], strict=True):
                near(got.cpu()[good], want[good])
            assert (found[-1].cpu() == expected[-1]).all()
        LU, pivots = L.lu_factor(a[:3, tt.arange(n - 1, -1, -1)])
        b = make((5, 3, n, n), dtype)
        for how in ({}, {"adjoint": True}, {"left": False}, {"left": False, "adjoint": True}):
            near(L.lu_solve(LU.cuda(), pivots.cuda(), b.cuda(), **how).cpu(), L.lu_solve(LU, pivots, b, **how))
        assert any("tiny" in name for name in emulated.launches) == (dtype != "complex128" or n <= 16)


def test_operands_of_two_devices_are_refused(gpu):
    for call in (L.solve, lambda a, b: L.solve_triangular(a, b, upper=True)):
        for a, b in ((EYE, EYE.cuda()), (EYE.cuda(), EYE)):
            with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
                call(a, b)


def test_tiny_matrices_as_they_lie(emulated):
    """Of operands in any layout, and batches of one or several dimensions that broadcast, one launch without a copy."""
    n = 12
    base = strong((3, 2, n, n), "float64")[..., tt.randperm(n, generator=tt.Generator().manual_seed(0)), :]
    b = make((3, 2, n, 5), "float64", 1)
    wide = make((3, 2, n, 40), "float64", 2)  # beyond a team's lanes

    def spaced(a):
        view = a.new_zeros((3, 2, 2 * n, 2 * n))[..., ::2, 1::2]
        return view.copy_(a)

    views = {
        "transposed": lambda a: a.mT,
        "batches exchanged": lambda a: a.transpose(0, 1).contiguous().transpose(0, 1),
        "spaced": spaced,
        "one": lambda a: a[:1, 1:].expand(3, 2, n, n),
    }
    calls = {
        "solve": lambda a, view, b: L.solve(view(a), b),
        "solve, transposed b": lambda a, view, b: L.solve(view(a), b.mT.contiguous().mT),
        "solve vector": lambda a, view, b: L.solve(view(a), b[..., 0]),
        "inv": lambda a, view, b: L.inv(view(a)),
        "lu_factor": lambda a, view, b: tuple(L.lu_factor_ex(view(a))),
        "lu_solve": lambda a, view, b: L.lu_solve(*L.lu_factor(view(a)), b),
        "lu_solve adjoint": lambda a, view, b: L.lu_solve(*L.lu_factor(view(a)), b, adjoint=True),
        "cholesky": lambda a, view, b: L.cholesky(view(a @ a.mT)),
        "cholesky upper": lambda a, view, b: L.cholesky(view(a @ a.mT), upper=True),
    }
    for view in views.values():
        for name, call in calls.items():
            for right in (b, wide) if name == "solve" else (b,):
                check(lambda a, b, call=call, view=view: call(a, view, b), base, right)
    for a, right in ((base, b[0, 0]), (base[0], b), (base[:, :1], b[:1]), (base[0, 0], wide)):
        check(L.solve, a, right)
        check(lambda a, b: L.lu_solve(*L.lu_factor(a), b), a, right)
    on_device = base.mT.cuda().mT, b.cuda().mT.contiguous().mT
    emulated.launches.clear()
    L.solve(*on_device), L.cholesky_ex(on_device[0]), L.inv(on_device[0])
    assert emulated.launches == ["tiny_f64"] * 3


@pytest.mark.parametrize("dtype", DTYPES)
def test_pivots_of_every_size(gpu, dtype):
    """Exchanges are LAPACK's: of several largest elements the first, of NaN what comes first. Exact numbers."""
    for n in range(1, 34):
        g = tt.Generator().manual_seed(n)
        a = tt.randint(-2, 3, (6, n, n), generator=g).to(getattr(tt, dtype))
        a[1] = 1  # all alike
        a[2] = tt.eye(n).flip(0)
        a[3, :, 0] = 0
        a[4] = tt.ones(n, n).tril() - tt.ones(n, n).triu(1)  # -1 or 1, everywhere
        on_device = a.cuda()
        found, expected = L.lu_factor_ex(on_device), L.lu_factor_ex(a)
        exact = [1, 2, 3, 4] if n > 4 else range(6)  # of others what is left after division is rounded
        assert (found.info.cpu() == expected.info)[exact].all(), n
        assert (found.pivots.cpu() == expected.pivots)[exact].all(), n
        near(found.LU.cpu()[exact], expected.LU[exact])
        P, LOWER, U = L.lu(on_device)
        near((P @ LOWER @ U).cpu(), a)
        good = (L.lu_factor_ex(a).info == 0) & (L.cond(a) < 1e4)
        if good.any():
            b = make((int(good.sum()), n, 3), dtype)
            near(L.solve(a[good].cuda(), b.cuda()).cpu(), L.solve(a[good], b))


@pytest.mark.parametrize("n", [3, 8, 20, 32, 33])
def test_a_broken_matrix_leaves_others_alone(gpu, n):
    """One that is singular, has NaN or infinities: its neighbours in the same warp are right, and it is the one that
    the error names."""
    a, b = strong((7, n, n), "float32"), make((7, n, 2), "float32")
    for broken in (lambda x: x.zero_(), lambda x: x.fill_(float("nan")), lambda x: x[1].fill_(float("inf"))):
        bad = a.clone()
        broken(bad[4])
        others = [0, 1, 2, 3, 5, 6]
        for call in (lambda a: L.inv_ex(a)[0], lambda a: L.solve_ex(a, b.to(a.device))[0], L.det):
            near(call(bad.cuda()).cpu()[others], call(a)[others])
        near(L.cholesky_ex((bad @ bad.mT).cuda())[0].cpu()[others], L.cholesky(a @ a.mT)[others])
    bad[4] = 0
    for call in (L.inv, L.cholesky, lambda a: L.solve(a, b.to(a.device)), L.lu_factor):
        with pytest.raises(L.LinAlgError, match=r"\(Batch element 4\)"):
            call(bad.cuda())
    assert L.solve_ex(bad.cuda(), b.cuda()).info.tolist() == [0, 0, 0, 0, 1, 0, 0]


def test_from_33_rows_on_small_kernels_have_a_block(emulated):
    for n, family in ((32, "tiny"), (33, "small")):
        a = strong((2, n, n), "float32").cuda()
        for call in (L.inv, L.cholesky, L.lu_factor, lambda a: L.solve(a, a), L.det):
            emulated.launches.clear()
            call(a)
            assert any(family in name for name in emulated.launches) and "linalg" not in emulated.launches
