"""The most memory that this process has had, in its own life: resource.getrusage begins with what its parent had."""


def peak() -> int:
    """In megabytes."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) >> 10
