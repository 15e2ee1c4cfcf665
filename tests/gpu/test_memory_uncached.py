"""Without the caching allocator, TINYTORCH_CUDA_CACHING=0: an allocation for each tensor."""

from contextlib import nullcontext

import pytest
import tinytorch as tt
from tinytorch import cuda
from gpu.memory import MiB, SMALL, blocks, limited, make


@pytest.fixture
def told(gpu, monkeypatch):
    """What the driver was told: the sizes that it was asked for, and the addresses it got back."""

    class Told:
        sizes, host_sizes, freed = [], [], []

    def allocate(device, nbytes, real=gpu.allocate):
        Told.sizes.append(nbytes)
        return real(device, nbytes)

    def allocate_host(nbytes, real=gpu.allocate_host):
        Told.host_sizes.append(nbytes)
        return real(nbytes)

    def free(device, address, real=gpu.free):
        Told.freed.append(address)
        real(device, address)

    monkeypatch.setattr(gpu, "allocate", allocate)
    monkeypatch.setattr(gpu, "allocate_host", allocate_host)
    monkeypatch.setattr(gpu, "free", free)
    return Told


def test_each_tensor_has_an_allocation_of_just_its_size(stream, told):
    a, b = make(100), make(100)
    del b
    before = cuda.memory_stats(0)
    sizes = 1, 512, 513, MiB + 1, 12 * MiB + 5
    with tt.config(cuda_caching=0):
        told.sizes.clear()
        kept = [make(n) for n in sizes]
        assert told.sizes == list(sizes) and told.freed == []  # `a` keeps its segment
        assert blocks(stream) == [[512, -(SMALL - 512)], [512], [512], [1024], [MiB + 512], [12 * MiB + 512]]
        assert make(0).data_ptr() == 0 and len(told.sizes) == 5
        after = cuda.memory_stats(0)
        rounded = 2048 + 13 * MiB + 1024
        for name, change in (
            ("allocation.all", 5),
            ("segment.small_pool", 3),
            ("segment.large_pool", 2),
            ("requested_bytes.all", sum(sizes)),
            ("allocated_bytes.all", rounded),
            ("reserved_bytes.all", rounded),
            ("active_bytes.all", rounded),
            ("inactive_split_bytes.all", 0),
            ("inactive_split.all", 0),
        ):
            assert after[f"{name}.current"] - before[f"{name}.current"] == change, name
    del kept
    cuda.empty_cache()
    after = cuda.memory_stats(0)
    assert all(after[name] == before[name] for name in after if name.endswith(".current")) and a.numel() == 100


def test_what_is_freed_goes_back_before_the_next_allocation(stream, told):
    cached = make(3 * MiB)
    del cached
    with tt.config(cuda_caching=0):
        told.sizes.clear()
        a, b = make(700), make(700)
        assert len(told.freed) == 1  # what was cached
        at = a.data_ptr()
        del a
        assert blocks(stream) == [[-1024], [1024]] and len(told.freed) == 1
        c = make(700)
        assert told.freed[1:] == [at] and told.sizes == [700] * 3 and blocks(stream) == [[1024], [1024]]
        at = {b.data_ptr(), c.data_ptr()}
        del b, c
        cuda.empty_cache()
        assert set(told.freed[2:]) == at and blocks(stream) == []


def test_tensors_of_both_kinds_freed_in_either_mode(stream, told):
    cached = [make(1000), make(1000)]
    with tt.config(cuda_caching=0):
        single = [make(1000), make(1000)]
        shared = cached.pop().data_ptr()
        del single[1]
        single.append(make(1000))  # the other cached one still needs its segment
        assert blocks(stream) == [[1024, -(SMALL - 1024)], [1024], [1024]]
    told.sizes.clear()
    at = {t.data_ptr() for t in single}
    single.clear()
    again = [make(1000) for _ in range(3)]  # from the segment: what was a single tensor's is smaller than it looks
    assert again[0].data_ptr() == shared and not at & {t.data_ptr() for t in again} and told.sizes == []
    told.freed.clear()
    cuda.empty_cache()
    assert set(told.freed) == at and len(blocks(stream)) == 1
    del again
    with tt.config(cuda_caching=0):
        cached.clear()
        kept = make(1)
        assert len(told.freed) == 3 and blocks(stream) == [[512]]
    assert make(1).data_ptr() != kept.data_ptr() and told.sizes == [1, SMALL]


def test_numbers_without_the_cache(stream):
    x, y = tt.rand(300, 7), tt.rand(7)
    expected = ((x * 2 + y).sum(0), x.t().contiguous(), (x - y).exp())
    with tt.config(cuda_caching=0):
        for mode in (nullcontext, tt.fuse):
            with mode():
                p, q = x.cuda(), y.cuda()
                found = [t.cpu() for t in ((p * 2 + q).sum(0), p.t().contiguous(), (p - q).exp())]
            assert all(tt.equal(a, b) for a, b in zip(found, expected))


def test_blocks_wait_for_streams_without_the_cache(stream, emulated, told):
    other = cuda.Stream()
    with tt.config(cuda_caching=0):
        a = make(4096)
        at = a.data_ptr()
        a.record_stream(other)
        emulated.held.add(other.cuda_stream)
        del a
        b = make(4096)
        assert told.freed == []
        emulated.held.clear()
        c = make(4096)
        assert told.freed == [at] and b.data_ptr() != c.data_ptr()


def test_out_of_memory_without_the_cache(stream, emulated):
    other = cuda.Stream()
    with tt.config(cuda_caching=0):
        a = make(30 * MiB)
        a.record_stream(other)
        emulated.held.add(other.cuda_stream)
        before = cuda.memory_stats(0)
        with limited(0):
            with pytest.raises(tt.OutOfMemoryError, match=r"Tried to allocate 50\.00 MiB .* limited to"):
                make(50 * MiB)
            del a
            b = make(30 * MiB)  # waits for the other stream
            after = cuda.memory_stats(0)
        assert after["num_ooms"] == before["num_ooms"] + 1 and not emulated.held
        assert after["num_alloc_retries"] == before["num_alloc_retries"] + 2
        assert blocks(stream) == [[30 * MiB]] and b.numel()


def test_graphs_and_page_locked_memory_keep_their_cache(stream, told):
    with tt.config(cuda_caching=0):
        x = tt.ones(64, device="cuda")
        told.sizes.clear()
        g = cuda.CUDAGraph()
        with cuda.graph(g):
            y = x + 1
            z = y * 2
        assert told.sizes == [SMALL]
        pinned = [tt.ones(8).pin_memory() for _ in range(2)]
        assert told.host_sizes == [SMALL] and pinned[0].tolist() == pinned[1].tolist()
        g.replay()
        assert z.tolist() == [4.0] * 64
