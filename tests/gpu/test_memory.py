"""The caching allocator: which memory tensors get, and when it is used anew."""

import gc
import random
import subprocess
import sys
import threading

import pytest
import tinytorch as tt
from tinytorch import cuda
from gpu.memory import LARGE, MiB, SMALL, amount, blocks, free_blocks, fresh_stream, limited, make

# Blocks and segments.


def test_small_tensors_share_a_segment(stream):
    a, b, c = make(1), make(512), make(513)
    assert blocks(stream) == [[512, 512, 1024, -(SMALL - 2048)]]
    assert b.data_ptr() == a.data_ptr() + 512 and c.data_ptr() == b.data_ptr() + 512


def test_sizes_of_segments(stream):
    kept = [make(MiB), make(MiB + 1), make(10 * MiB - 512), make(10 * MiB), make(33 * MiB + 5)]
    assert blocks(stream) == [
        [MiB, -MiB],
        [MiB + 512, 10 * MiB - 512, -(9 * MiB)],
        [10 * MiB],
        [34 * MiB],
    ]  # what is left is too little for another large block
    del kept


def test_a_freed_block_is_used_at_once_by_the_same_stream(stream):
    a = make(4096)
    at = a.data_ptr()
    del a
    b = make(4000)
    assert b.data_ptr() == at and len(blocks(stream)) == 1


def test_each_stream_has_blocks_of_its_own(stream):
    a = make(4096)
    at = a.data_ptr()
    del a
    with cuda.stream(cuda.default_stream(0)):
        assert make(4096).data_ptr() != at
    assert make(4096).data_ptr() == at


def test_free_neighbours_become_one_block(stream):
    kept = [make(1024) for _ in range(5)]
    rest = SMALL - 5 * 1024
    kept[1] = None
    assert blocks(stream) == [[1024, -1024, 1024, 1024, 1024, -rest]]
    kept[3] = None
    assert blocks(stream) == [[1024, -1024, 1024, -1024, 1024, -rest]]
    kept[2] = None
    assert blocks(stream) == [[1024, -3072, 1024, -rest]]
    kept[0] = None
    assert blocks(stream) == [[-4096, 1024, -rest]]
    kept[4] = None
    assert blocks(stream) == [[-SMALL]]


def test_the_best_fitting_block_is_taken_and_split(stream):
    sizes = (8192, 512, 2048, 512, 4096, 512)
    kept = [make(n) for n in sizes]
    at = [t.data_ptr() for t in kept]
    kept[0] = kept[2] = kept[4] = None
    exact, smaller, split = make(4096), make(1536), make(1000)
    assert exact.data_ptr() == at[4]
    assert smaller.data_ptr() == at[2]
    assert split.data_ptr() == at[0]  # 512 bytes are left of the block of 2048: too little
    assert blocks(stream)[0][:4] == [1024, -7168, 512, 1536]


def check_splits():
    """The figures of free blocks beside others are those of the blocks that are there."""
    parts = [segment["blocks"] for segment in cuda.memory_snapshot(0) if len(segment["blocks"]) > 1]
    free = [b["size"] for some in parts for b in some if b["state"] == "inactive"]
    stats = cuda.memory_stats(0)
    assert (stats["inactive_split.all.current"], stats["inactive_split_bytes.all.current"]) == (len(free), sum(free))


def test_random_sizes_leave_one_free_segment_each(stream):
    rng = random.Random(0)
    kept = []
    for _ in range(400):
        if kept and rng.random() < 0.5:
            kept.pop(rng.randrange(len(kept)))
        else:
            kept.append(make(rng.choice((100, 700, 5000, 70_000, MiB, 3 * MiB, 9 * MiB))))
        spans = sorted((t.data_ptr(), t.numel()) for t in kept)
        assert all(p + n <= q for (p, n), (q, _) in zip(spans, spans[1:]))
        check_splits()
    kept.clear()
    check_splits()
    assert all(len(segment) == 1 and segment[0] < 0 for segment in blocks(stream))
    reserved = cuda.memory_reserved(0)
    held = sum(-segment[0] for segment in blocks(stream))
    cuda.empty_cache()
    assert blocks(stream) == [] and cuda.memory_reserved(0) == reserved - held


def test_a_tensor_without_elements_has_no_memory(stream):
    a = tt.empty(0, 3, device="cuda:0")
    assert a.data_ptr() == 0 and blocks(stream) == []


def test_memory_comes_from_the_device_asked_for(gpu):
    if cuda.device_count() < 2:
        pytest.skip("one device")
    gc.collect()
    before = cuda.memory_allocated(0), cuda.memory_allocated(1)
    a = tt.empty(1000, device="cuda:1")
    assert (cuda.memory_allocated(0), cuda.memory_allocated(1)) == (before[0], before[1] + 4096)
    del a


# Figures.


def test_figures(stream):
    cuda.reset_peak_memory_stats(0)
    cuda.reset_accumulated_memory_stats(0)
    before = cuda.memory_stats(0)
    a, b = make(1000), make(3 * MiB)
    del a
    after = cuda.memory_stats(0)

    def change(name):
        return after[name] - before[name]

    assert change("allocated_bytes.all.current") == 3 * MiB == change("allocated_bytes.large_pool.current")
    assert change("allocated_bytes.all.peak") == 3 * MiB + 1024
    assert after["allocated_bytes.all.allocated"] == 3 * MiB + 1024
    assert after["allocated_bytes.all.freed"] == after["allocated_bytes.small_pool.freed"] == 1024
    assert change("requested_bytes.all.peak") == 3 * MiB + 1000
    assert change("allocation.all.current") == 1 and after["allocation.all.allocated"] == 2
    assert change("reserved_bytes.all.current") == SMALL + LARGE and change("segment.all.current") == 2
    assert change("inactive_split_bytes.all.current") == change("inactive_split_bytes.large_pool.current") == 17 * MiB
    assert change("inactive_split.all.current") == 1
    assert cuda.memory_reserved(0) == after["reserved_bytes.all.current"]
    assert cuda.max_memory_allocated(0) == after["allocated_bytes.all.peak"] > cuda.memory_allocated(0)
    cuda.reset_peak_memory_stats(0)
    assert cuda.max_memory_allocated(0) == cuda.memory_allocated(0)
    whole, short = cuda.memory_summary(0), cuda.memory_summary(0, abbreviated=True)
    assert "reserved bytes" in short and "small pool" in whole and "small pool" not in short
    assert b.numel() == 3 * MiB


def test_figures_of_no_device_before_one_is_used():
    script = (
        "from tinytorch import cuda\n"
        "for f in (cuda.memory_stats, cuda.reset_peak_memory_stats, cuda.reset_accumulated_memory_stats,\n"
        "          cuda.get_rng_state):\n"
        "    for index in (-1, 1 << 20):\n"
        "        try: f(index)\n"
        "        except RuntimeError: pass\n"
        "        else: raise AssertionError(f, index)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


# Out of memory.


def test_out_of_memory_says_how_much_there_is(stream):
    kept = make(MiB)
    ooms = cuda.memory_stats(0)["num_ooms"]
    with limited(0), pytest.raises(tt.OutOfMemoryError) as caught:
        make(50 * MiB)
    text = str(caught.value)
    assert "CUDA out of memory. Tried to allocate 50.00 MiB (52428800 bytes) on cuda:0. Of the GPU's" in text
    stats, free = cuda.memory_stats(0), free_blocks()
    assert f"has reserved {amount(stats['reserved_bytes.all.current'])} (it is limited to " in text
    assert f"MiB are allocated in {stats['allocation.all.current']} blocks, {amount(sum(free))} are reserved" in text
    assert text.endswith(f"of which the largest free block has {amount(max(free))}.") and MiB in free
    assert stats["num_ooms"] == ooms + 1
    assert make(MiB).data_ptr() == kept.data_ptr() + MiB  # all goes on


def test_sizes_beyond_all_memory(stream):
    with pytest.raises(tt.OutOfMemoryError, match="Tried to allocate 1048576.00 GiB"):
        tt.empty(1 << 50, dtype=tt.uint8, device="cuda:0")


def test_the_cache_is_emptied_before_there_is_none(stream):
    a = make(30 * MiB)
    del a
    retries = cuda.memory_stats(0)["num_alloc_retries"]
    with limited(0):
        b = make(28 * MiB)  # fits into what was freed
        del b
        c = make(24 * MiB)
        d = c.data_ptr()
        assert cuda.memory_stats(0)["num_alloc_retries"] == retries
        del c
        with cuda.stream(fresh_stream()):
            e = make(30 * MiB)  # the other stream's block has to go first
        assert cuda.memory_stats(0)["num_alloc_retries"] == retries + 1 and blocks(stream) == []
    assert e.numel() and d


# Several streams.


def test_a_block_used_by_another_stream_waits_for_it(stream, emulated):
    other = cuda.Stream()
    a = make(4096)
    at = a.data_ptr()
    a.record_stream(other)
    emulated.held.add(other.cuda_stream)
    del a
    assert cuda.memory_snapshot(0)[0]["blocks"][0]["state"] == "active_pending_free"
    b = make(4096)
    assert b.data_ptr() != at
    emulated.held.clear()
    c = make(4096)
    assert c.data_ptr() == at


def test_a_block_waits_for_every_stream(stream, emulated):
    one, other = cuda.Stream(), cuda.Stream()
    a = make(4096)
    at = a.data_ptr()
    for s in (one, other, one, stream):
        a.record_stream(s)
    emulated.held.update({one.cuda_stream, other.cuda_stream, stream.cuda_stream})
    del a
    kept = [make(4096)]
    emulated.held.discard(one.cuda_stream)
    kept.append(make(4096))
    assert at not in [t.data_ptr() for t in kept]
    emulated.held.discard(other.cuda_stream)  # its own stream need not be waited for
    assert make(4096).data_ptr() == at
    emulated.held.clear()


def test_out_of_memory_waits_for_other_streams(stream, emulated):
    other = cuda.Stream()
    a = make(30 * MiB)
    at = a.data_ptr()
    a.record_stream(other)
    emulated.held.add(other.cuda_stream)
    with limited(0):
        del a
        assert make(30 * MiB).data_ptr() == at
    assert not emulated.held


def test_a_block_whose_event_cannot_be_recorded_is_not_used_again(stream, emulated, monkeypatch):
    a = make(4096)
    at = a.data_ptr()
    a.record_stream(cuda.Stream())

    def fail(event, stream):
        raise RuntimeError("the device is gone")

    monkeypatch.setattr(emulated, "record", fail)
    del a
    assert make(4096).data_ptr() != at


def test_record_stream_refuses(stream):
    with pytest.raises(RuntimeError, match="record_stream: the tensor is on the CPU"):
        tt.ones(3).record_stream(stream)
    with pytest.raises(TypeError, match="must be Stream, not int"):
        make(3).record_stream(0)


def test_threads_allocate_and_free_at_once(gpu):
    gc.collect()
    cuda.synchronize()
    before = cuda.memory_allocated(0)
    wrong = []

    def work(seed):
        try:
            with cuda.stream(cuda.Stream() if seed % 2 else None):
                kept = []
                for k in range(300):
                    kept.append(make(100 + (k * seed) % 5000))
                    if k % 3:
                        kept.pop((k * seed) % len(kept))
                spans = sorted((t.data_ptr(), t.numel()) for t in kept)
                assert all(p + n <= q for (p, n), (q, _) in zip(spans, spans[1:]))
        except Exception as exc:  # noqa: BLE001
            wrong.append(exc)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 7)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong and cuda.memory_allocated(0) == before


# The interpreter's end.


def test_tensors_may_outlive_everything(gpu):
    """Memory is given back in a thread and at exit, when streams and devices may be gone."""
    code = f"""
import sys, threading
sys.path[:0] = {sys.path!r}
import tinytorch as tt
from tinytorch import cuda
from tinytorch.backends.cuda import runtime
if not runtime.device_count():
    from gpu.emulator import Emulator
    runtime.use_driver(Emulator())
a, s = tt.ones(1000, device="cuda"), cuda.Stream()
a.record_stream(s)
kept = threading.local()
def work():
    with cuda.stream(s):
        kept.tensor = a + 1
        kept.tensor.record_stream(cuda.default_stream())
thread = threading.Thread(target=work)
thread.start()
thread.join()
p = tt.ones(10).pin_memory()
b = p.to("cuda", non_blocking=True)
class Late:
    def __init__(self):
        self.tensor, self.event = tt.ones(1000, device="cuda"), cuda.Event()
        self.event.record()
        self.tensor.record_stream(s)
    def __del__(self):
        self.tensor = None
sys.late = Late()
print("end")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stderr, done.stdout.split()) == (0, "", ["end"])
