/* The numbers by which front ends, backends and their kernels name kinds of work. */
#pragma once

/* What is left to do with a reduction's accumulator. */
enum { TT_RED_ALONE, TT_RED_DIVIDE, TT_RED_ROOT, TT_RED_DIVIDE_ROOT, TT_RED_FINITE, TT_RED_LOG_ADD };

/* Statistics of rows. */
enum { TT_STATISTIC_VAR, TT_STATISTIC_STD, TT_STATISTIC_LOGSUMEXP };

/* Scans; the first three as tt_scan has them. */
#define TT_SCAN_SUM 0
#define TT_SCAN_PROD 1
#define TT_SCAN_LOGSUMEXP 2
#define TT_SCAN_RECUR 3
#define TT_SCAN_MIN 4
#define TT_SCAN_MAX 5

/* Selections along a dimension; the first four as tt_pick has them. */
enum { TT_KTH, TT_MEDIAN, TT_NANMEDIAN, TT_MODE, TT_SORT, TT_TOPK };

/* Sequences. */
enum { TT_RANGE_INTEGERS, TT_RANGE_STEPPED, TT_RANGE_BETWEEN, TT_RANGE_POWER, TT_RANGE_TRIL, TT_RANGE_TRIU };

/* What is done with the classes of a classification. */
#define TT_CLASS_LOGITS 1
#define TT_CLASS_BACKWARD 2
#define TT_CLASS_TARGETS 4

/* How images are sampled at places of a grid, and what lies beyond them. */
enum { TT_GRID_NEAREST, TT_GRID_BILINEAR, TT_GRID_BICUBIC };
enum { TT_GRID_ZEROS, TT_GRID_BORDER, TT_GRID_REFLECTION };
