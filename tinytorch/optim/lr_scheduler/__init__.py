"""Learning rates that change from epoch to epoch. Follows ``torch.optim.lr_scheduler``.

A schedule gives the next rate from the present one (``next_rate``), so that several may act on one optimiser; and,
where there is a formula, the rate of any epoch from the first (``rate_at``)."""

from .composite import ChainedScheduler, ReduceLROnPlateau, SequentialLR
from .formulas import (
    ConstantLR,
    CosineAnnealingLR,
    CosineAnnealingWarmRestarts,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiStepLR,
    MultiplicativeLR,
    OneCycleLR,
    PolynomialLR,
    StepLR,
)
from .scheduler import LRScheduler

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]
