/* Products of matrices. */
#pragma once
#include "api/core.h"

/* Where the BLAS library is; it is opened at the first product. "": there is none. */
int tt_blas_library(const char *path);
int tt_blas_is_open(void);

/* torch.matmul for operands of any rank, the last two dimensions of either taken as swapped if asked. */
tt_array *tt_matmul(tt_array *a, tt_array *b, int transpose_a, int transpose_b);
/* beta * input + alpha * a @ b; a and b are matrices, input broadcasts to their product. */
tt_array *tt_addmm(tt_array *input, tt_array *a, tt_array *b, double beta, double alpha);
/* x @ w.T + bias over the last dimension of x; bias may be NULL. */
tt_array *tt_linear(tt_array *x, tt_array *w, tt_array *bias);
/* g.T @ x, all leading dimensions of both taken together: the gradient of linear's weight. */
tt_array *tt_linear_weight(tt_array *g, tt_array *x);
/* The same in recurrent layers, of which PyTorch has cuDNN compute all: backends.cudnn.allow_tf32 says whether a GPU
 * may round float32's operands. */
tt_array *tt_layer_matmul(tt_array *a, tt_array *b, int transpose_a, int transpose_b);
tt_array *tt_layer_linear(tt_array *x, tt_array *w, tt_array *bias);
tt_array *tt_layer_weight(tt_array *g, tt_array *x);
