/* Updates of single elements whose positions are sorted by all digits of the element they mean but the last: a warp has
 * a bucket of 256 elements, and goes through its updates in their order, 32 at a time. Of those of one element it makes
 * the first, then the second, and so on. */
#pragma once
#define TT_BUCKET 256
#define TT_BUCKETS_THREADS TT_CUDA_THREADS

static TT_DEVICE stored *element_at(const TT_ARGS &p, sort_key bucket, int slot) {
    return (stored *)(p.table + (int64_t)(bucket * TT_BUCKET + slot) * p.grain);
}

static TT_DEVICE void fill_bucket(const TT_ARGS &p, sort_key bucket, int64_t begin) {
    __shared__ value sums[TT_BUCKETS_THREADS / 32][TT_BUCKET];
    __shared__ uint8_t touched[TT_BUCKETS_THREADS / 32][TT_BUCKET];
    const sort_key *const keys = (const sort_key *)p.keys;
    const given *const rows = (const given *)p.rows;
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    value *const sum = sums[warp];
#pragma unroll
    for (int slot = lane; slot < TT_BUCKET; slot += 32) {
        touched[warp][slot] = 0;
        if (bucket * TT_BUCKET + slot < p.slots) sum[slot] = TT_CONVERT(TT_D0, TT_K, *element_at(p, bucket, slot));
    }
    __syncwarp();
    for (bool more = true; more; begin += 32 * TT_AHEAD) {
        sort_key key[TT_AHEAD];
        given next[TT_AHEAD];
#pragma unroll
        for (int u = 0; u < TT_AHEAD; u++) {
            const int64_t j = begin + u * 32 + lane;
            key[u] = j < p.m ? keys[j] : ~(sort_key)0;
            if (j < p.m) next[u] = rows[j];
        }
#pragma unroll
        for (int u = 0; u < TT_AHEAD; u++) {
            const bool here = key[u] / TT_BUCKET == bucket && begin + u * 32 + lane < p.m;
            const int slot = (int)(key[u] % TT_BUCKET);
            uint32_t peers = __ballot_sync(~0u, here);
            more = peers == ~0u;
            if (!peers) break;
#pragma unroll
            for (int b = 0; b < 8; b++) {
                const bool set = slot >> b & 1;
                const uint32_t with = __ballot_sync(~0u, set);
                peers &= set ? with : ~with;
            }
            const int rank = __popc(peers & ((1u << lane) - 1));
            if (here) touched[warp][slot] = 1;
            for (int k = 0; __any_sync(~0u, here && rank >= k); k++) {
                if (here && rank == k) sum[slot] = TT_UPDATE(sum[slot], (value)TT_CONVERT(TT_D1, TT_K, next[u]));
                __syncwarp();
            }
            if (!more) break;
        }
    }
#pragma unroll
    for (int slot = lane; slot < TT_BUCKET; slot += 32)
        if (touched[warp][slot]) *element_at(p, bucket, slot) = (stored)TT_CONVERT(TT_K, TT_D0, sum[slot]);
    __syncwarp();
}

/* The buckets that begin among the TT_OWN positions from there on. */
static TT_DEVICE void fill_buckets(const TT_ARGS &p, int64_t from) {
    const sort_key *const keys = (const sort_key *)p.keys;
    const int lane = threadIdx.x & 31;
    uint32_t starts = 0; /* lane k has those of the k-th 32 */
#pragma unroll
    for (int k = 0; k < TT_OWN / 32; k++) {
        const int64_t j = from + k * 32 + lane;
        const uint32_t some = __ballot_sync(~0u, j < p.m && (j == 0 || keys[j - 1] / TT_BUCKET != keys[j] / TT_BUCKET));
        if (lane == k) starts = some;
    }
    for (int k = 0; k < TT_OWN / 32; k++)
        for (uint32_t some = __shfl_sync(~0u, starts, k); some; some &= some - 1) {
            const int64_t begin = from + k * 32 + (__ffs(some) - 1);
            fill_bucket(p, keys[begin] / TT_BUCKET, begin);
        }
}
