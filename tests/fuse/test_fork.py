"""A process that forks while threads record, plan, run and compile programs: Note [Forks] in kernels/core/fork.c."""

from fuse.helpers import python

BUSY = """
    import os, sys, threading, time, warnings
    import tinytorch as torch

    warnings.simplefilter("ignore")  # newer Pythons warn of any fork beside threads
    torch.set_num_threads(2)
    shared, stop = {}, threading.Event()

    def busy(name):
        n = 0
        while not stop.is_set():
            n += 1
            with torch.fuse():
                x = torch.ones(200_000 + n % 50)  # programs come and go
                y = x
                for _ in range(30):
                    y = y.sin().exp() - 1
                shared[name] = y * 0 + n
                y.sum().item()

    def in_child():
        for y in list(shared.values()):
            assert (y == y[0]).all()  # runs what its thread, which is not here, has recorded
        for fused in (False, True):
            with torch.fuse() if fused else torch.no_grad():
                z = torch.ones(100_000, requires_grad=True)
                for k in range(5):
                    assert (z[k:] * 2 + k).sum().item() == (100_000 - k) * (2 + k)
                (torch.ones(64, 64) @ torch.ones(64, 64)).sum().item()

    threads = [threading.Thread(target=busy, args=(k,)) for k in range(3)]
    for t in threads:
        t.start()
    while len(shared) < 3:
        time.sleep(0.01)
    done = 0
    for _ in range(25):
        child = os.fork()
        if not child:
            try:
                in_child()
                os._exit(0)
            except BaseException as exc:
                sys.excepthook(type(exc), exc, exc.__traceback__)
                os._exit(1)
        deadline = time.monotonic() + 100
        while (ended := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < deadline:
            time.sleep(0.005)
        if ended[0] == 0:
            os.kill(child, 9)
            os.waitpid(child, 0)
            print("a child hangs")
            break
        done += ended[1] == 0
    stop.set()
    for t in threads:
        t.join()
    print(done)
"""


def test_children_of_a_process_whose_threads_are_at_work():
    assert python(BUSY).split() == ["25"]
