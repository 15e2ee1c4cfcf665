"""Distributions on devices: samples lie there, and densities and their gradients are the CPU's."""

import numpy as np
import pytest
import tinytorch as tt

from distributions.families import CASES, numbers

pytestmark = pytest.mark.filterwarnings(
    "ignore:Low df values", "ignore:Singular sample", "ignore:invalid value", "ignore:overflow"
)


SOME = {
    "StudentT", "VonMises", "Gamma", "Dirichlet", "Binomial", "NegativeBinomial", "Categorical", "Multinomial",
    "RelaxedOneHotCategorical", "MultivariateNormal", "LowRankMultivariateNormal", "Wishart", "LKJCholesky", "Mixture",
}  # fmt: skip


def parameters():
    return [pytest.param(c, id=c.id, marks=() if c.id in SOME else pytest.mark.slow) for c in CASES]


@pytest.mark.parametrize("case", parameters())
def test_on_a_device(gpu, case):
    tt.manual_seed(0)
    values, found = case.build(tt)[0].sample((3,)), []
    for device in ("cpu", "cuda"):
        d, p = case.build(tt, device=device)
        x = d.sample((20,))
        assert x.device.type == device and d.support.check(x).all()
        log_prob = d.log_prob(values.to(device))
        gradients = tt.autograd.grad(log_prob.sum(), list(p.values()))
        found.append([log_prob, *gradients])
        if d.has_rsample:
            d, p = case.build(tt, device=device)
            tt.autograd.grad(d.rsample((2,)).sum(), list(p.values()), allow_unused=True)
    for here, there in zip(*found):
        np.testing.assert_allclose(numbers(there), numbers(here), rtol=1e-8, atol=1e-9)
