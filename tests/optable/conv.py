"""Convolutions, and blocks of images as columns."""

from compare import FLOATS

from optable.core import NUMBERS, Op, S, T, only
from optable.nn import functional

# One dimension.
DILATED = only(
    FLOATS,
    S(T(1, 1, 7), T(1, 1, 2), stride=3, dilation=2),
    S(T(1, 2, 6), T(2, 2, 3), padding="same", dilation=2),
    S(T(1, 1, 5), T(1, 1, 2), None, 2, "valid", 3),
)
LINES = (
    S(T(2, 3, 5), T(4, 3, 2)),
    S(T(3, 5), T(4, 3, 2), T(4)),
    S(T(1, 2, 4), T(3, 2, 4), T(3), 2),
    S(T(2, 2, 7), T(2, 2, 3), stride=(2,), padding=(2,)),
    S(T(1, 2, 5), T(1, 2, 3), padding=4),
    S(T(1, 4, 6), T(6, 2, 3), T(6), padding=1, groups=2),
    S(T(2, 3, 4), T(6, 1, 2), stride=2, groups=3),
    S(T(2, 5), T(1, 2, 4), T(1), padding="same"),
    S(T(0, 3, 5), T(2, 3, 2)),
    *DILATED,
    S(T(5, 2, 3, layout="transposed"), T(2, 2, 3, layout="strided"), T(2, layout="offset")),
    S(T(2, 2, 3, layout="expanded"), T(3, 2, 2, layout="transposed")),
)
LINES_BACK = (
    S(T(2, 3, 4), T(3, 2, 2)),
    S(T(3, 4), T(3, 2, 3), T(2)),
    S(T(1, 2, 3), T(2, 3, 2), T(3), 3, 1, 2),
    S(T(1, 4, 3), T(4, 1, 2), T(2), stride=2, groups=2),
    S(T(1, 2, 3), T(2, 1, 3), stride=(2,), padding=(1,), output_padding=(1,), dilation=(2,)),
    S(T(0, 2, 3), T(2, 1, 2)),
    S(T(3, 2, 2, layout="transposed"), T(2, 2, 3, layout="strided"), T(2, layout="offset")),
)

# Two. The first with more channels than a tile has rows, and more places than it has columns.
IMAGES = (
    S(T(1, 3, 9, 8), T(9, 3, 2, 2), T(9)),
    S(T(2, 2, 4, 5), T(3, 2, 2, 3), T(3)),
    S(T(2, 4, 5), T(3, 2, 2, 3)),
    *only(FLOATS, S(T(1, 2, 5, 4), T(2, 2, 3, 2), T(2), (2, 1), (1, 2), (1, 3))),
    *only(FLOATS, S(T(1, 1, 6, 6), T(2, 1, 2, 3), stride=(3, 2), padding=1, dilation=(2, 1))),
    S(T(2, 4, 3, 3), T(2, 2, 3, 3), padding="same", groups=2),
    *only(FLOATS, S(T(1, 2, 4, 4), T(2, 2, 2, 4), T(2), padding="same", dilation=(1, 2))),
    S(T(1, 3, 4, 5), T(3, 1, 3, 2), T(3), padding=1, groups=3),
    S(T(1, 2, 5, 4), T(4, 1, 2, 2), stride=2, groups=2),
    S(T(2, 3, 3, 2), T(4, 3, 1, 1), T(4)),
    S(T(2, 3, 4, 3), T(2, 3, 1, 1), stride=2),
    S(T(0, 2, 4, 4), T(3, 2, 2, 2), T(3)),
    S(T(4, 3, 2, 2, layout="transposed"), T(2, 3, 2, 2, layout="strided"), T(2, layout="offset")),
    S(T(2, 2, 3, 3, layout="expanded"), T(2, 2, 2, 2, layout="transposed")),
)
IMAGES_BACK = (
    S(T(1, 9, 5, 7), T(9, 2, 2, 2), T(2)),
    S(T(2, 2, 3, 4), T(2, 3, 2, 3), T(3)),
    S(T(2, 3, 4), T(2, 3, 2, 1)),
    S(T(1, 2, 3, 2), T(2, 2, 3, 2), T(2), (2, 3), (1, 0), (1, 2), 1, (2, 1)),
    S(T(1, 4, 2, 3), T(4, 1, 3, 2), T(2), stride=2, padding=1, groups=2),
    S(T(1, 3, 3, 3), T(3, 1, 2, 2), T(3), stride=3, groups=3),
    S(T(2, 2, 3, 2), T(2, 3, 1, 1), stride=2),
    S(T(0, 2, 3, 3), T(2, 1, 2, 2)),
    S(T(3, 2, 2, 2, layout="transposed"), T(2, 2, 2, 2, layout="strided"), T(2, layout="offset")),
)

# Three.
VOLUMES = (
    S(T(1, 2, 3, 3, 4), T(2, 2, 2, 1, 3), T(2)),
    S(T(1, 3, 3, 3), T(2, 1, 2, 2, 2), padding=1, stride=2),
    *only(FLOATS, S(T(1, 2, 4, 3, 2), T(2, 1, 2, 3, 1), T(2), (1, 2, 1), (0, 1, 1), (2, 1, 1), 2)),
    S(T(1, 1, 2, 3, 2), T(1, 1, 2, 3, 1), padding="same"),
)
VOLUMES_BACK = (
    S(T(1, 2, 2, 2, 3), T(2, 2, 2, 1, 2), T(2)),
    S(T(2, 2, 1, 2), T(2, 1, 2, 2, 2), stride=2, output_padding=(1, 0, 1)),
    S(T(1, 2, 2, 2, 2), T(2, 1, 1, 3, 2), T(2), (1, 2, 1), (0, 1, 0), 0, 2, (1, 1, 2)),
)
ALL = (
    S(T(1, 2, 4), T(3, 2, 2), T(3), [2], [1], [1], False, [0], 1),
    *only((*FLOATS, "int64"), S(T(1, 2, 4, 3), T(2, 1, 2, 2), None, [1, 2], [1], [1], True, [0, 1], 1)),
)
BLOCKS = (
    S(T(2, 3, 4, 5), 2),
    S(T(3, 4, 5), (2, 3), padding=1),
    S(T(1, 2, 5, 4), (1, 2), (1, 2), (2, 0), (2, 1)),
    S(T(0, 2, 3, 3), 2),
    S(T(4, 3, 2, 2, layout="transposed"), 2, padding=1, stride=2),
    S(T(2, 2, 3, 4, layout="strided"), 2),
)
COLUMNS = (
    S(T(2, 12, 6), (3, 4), 2),
    S(T(6, 16), (3, 4), (2, 3), padding=(1, 1), stride=1),
    S(T(1, 4, 18), (5, 4), (1, 2), (1, 2), (0, 2), (2, 1)),
    S(T(0, 4, 4), 3, 2),
    S(T(2, 8, 4, layout="transposed"), 3, 2),
    S(T(2, 4, 4, layout="strided"), 3, 2),
)


def convolution(name, samples, dtypes=NUMBERS):
    return Op(name, samples, dtypes=dtypes, half_ulps=4)


BACK = (*FLOATS, "int64")
OPS = (
    convolution("conv1d", LINES),
    convolution("conv2d", IMAGES),
    convolution("conv3d", VOLUMES),
    convolution("conv_transpose1d", LINES_BACK, BACK),
    convolution("conv_transpose2d", IMAGES_BACK, BACK),
    convolution("conv_transpose3d", VOLUMES_BACK, BACK),
    convolution("convolution", ALL),
    Op("F.unfold", BLOCKS, call=functional("unfold"), dtypes=(*FLOATS, "bool")),
    Op("F.fold", COLUMNS, call=functional("fold"), dtypes=(*FLOATS, "bool"), half_ulps=4),
)
