"""The disk cache: what may stand in its folder, and what may happen to it and to the processes that share it."""

import errno
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from tinytorch import cache as cache_module
from tinytorch import warn_once
from tinytorch.cache import CUDA, Cache, CompileError, default_folder
from tinytorch.fuse.compiler import Compiler, key_of

KEY, OTHER = "a" * 64, "b" * 64
CHILD = Path(__file__).with_name("child.py")


def fake_compiler(text, library):
    """Stands in for the compiler: a file that begins like a library."""
    Path(library).write_bytes(b"\x7fELF" + Path(text).read_bytes())


def refuse(text, library):
    raise AssertionError("compiled again")


@pytest.fixture(autouse=True)
def may_warn(monkeypatch):
    """As if this process had not been warned yet."""
    monkeypatch.setattr(warn_once, "told", {})


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "cache"


# What is in the folder.


def test_a_kernel_is_built_once_and_found_again(folder):
    path = Cache(str(folder)).build(KEY, "source", fake_compiler)
    assert Path(path).read_bytes().startswith(b"\x7fELFsource")
    assert (folder / f"{KEY}.c").read_text() == "source"
    assert Cache(str(folder)).get(KEY) == path
    assert Cache(str(folder)).build(KEY, "source", refuse) == path  # another process was faster
    assert Cache(str(folder)).get(OTHER) is None


def test_kernels_of_both_kinds_share_a_folder(folder):
    cache = Cache(str(folder), limit=10_000)
    path = Path(cache.build(KEY, "source", fake_compiler, CUDA))
    assert path.name == f"{KEY}.cubin" and (folder / f"{KEY}.cu").read_text() == "source"
    assert Cache(str(folder)).read(KEY, CUDA) == b"\x7fELFsource" and cache.get(KEY) is None
    cache.build(KEY, "other", fake_compiler)
    assert cache.read(KEY) == b"\x7fELFother" and cache.read(KEY, CUDA) == b"\x7fELFsource"
    for k in range(20):
        cache.build(f"{k:064x}", "x" * 500, fake_compiler, CUDA if k % 2 else cache_module.CPU)
        assert sum(p.stat().st_size for p in folder.iterdir()) < 12_000
    cache.clear()
    assert {p.name for p in folder.iterdir() if not p.name.startswith("lock-")} == set()


def test_the_folder_and_its_files_are_private(folder):
    before = os.umask(0)
    try:
        path = Cache(str(folder)).build(KEY, "source", fake_compiler)
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert Path(path).stat().st_mode & 0o777 == 0o600
    assert Cache(str(folder)).get(KEY) == path


@pytest.mark.parametrize(
    "damage",
    ["empty", "cut", "short", "zeros", "flipped", "longer", "other key", "symlink", "writable", "folder", "no library"],
)
def test_a_damaged_or_foreign_file_is_not_loaded_but_replaced(folder, damage, tmp_path):
    cache = Cache(str(folder))
    path = Path(cache.build(KEY, "source" * 100, fake_compiler))
    good = path.read_bytes()
    path.chmod(0o600)
    if damage == "symlink":
        path.rename(tmp_path / "elsewhere.so")
        path.symlink_to(tmp_path / "elsewhere.so")
    elif damage == "other key":
        path.unlink()
        Path(cache.build(OTHER, "source" * 100, fake_compiler)).rename(path)
    elif damage == "writable":
        path.chmod(0o622)
    elif damage == "folder":
        path.unlink()
        path.mkdir()
    elif damage == "no library":
        path.write_bytes(b"something else" * 100)
    else:
        path.write_bytes(
            {
                "empty": b"",
                "cut": good[: len(good) // 2],
                "short": good[:-1],
                "zeros": bytes(len(good)),
                "flipped": good[:100] + bytes([good[100] ^ 1]) + good[101:],
                "longer": good + b"\0",
            }[damage]
        )
    assert cache.get(KEY) is None
    if damage == "folder":  # nothing that a cache makes; it does without
        with pytest.warns(RuntimeWarning, match="cannot write to"):
            assert cache.build(KEY, "source", fake_compiler)
        return
    assert cache.build(KEY, "source" * 100, fake_compiler) == str(path)
    assert path.read_bytes() == good and cache.get(KEY) == str(path)


def test_a_file_of_another_user_is_not_loaded(folder, monkeypatch):
    cache = Cache(str(folder))
    cache.build(KEY, "source", fake_compiler)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert cache.get(KEY) is None


def test_the_key_tells_apart_all_that_decides_the_code():
    gcc = Compiler(("cc",), "gcc 12")
    keys = {
        key_of("a", "avx2", gcc),
        key_of("b", "avx2", gcc),
        key_of("a", "baseline", gcc),
        key_of("a", "avx2", Compiler(("cc",), "gcc 13")),
    }
    assert len(keys) == 4 and key_of("a", "avx2", gcc) in keys


def test_the_least_recently_used_kernels_go(folder):
    cache = Cache(str(folder), limit=10_000)
    keys = [f"{k:064x}" for k in range(30)]
    for age, key in enumerate(keys[:8]):
        cache.build(key, "x" * 500, fake_compiler)
        for path in folder.glob(key + ".*"):
            os.utime(path, (time.time() - 10_000 + age,) * 2)
    assert cache.get(keys[0])  # used just now
    for key in keys[8:]:
        cache.build(key, "x" * 500, fake_compiler)
        assert sum(p.stat().st_size for p in folder.iterdir()) < 12_000
    assert cache.get(keys[-1]) and not cache.get(keys[1])
    fresh = Cache(str(folder), limit=10_000)  # another process counts what is there
    fresh.build(OTHER, "x" * 500, fake_compiler)
    assert sum(p.stat().st_size for p in folder.iterdir()) < 12_000


def test_a_used_kernel_outlives_an_unused_one(folder):
    cache = Cache(str(folder), limit=8_000)
    for key in (KEY, OTHER):
        cache.build(key, "x" * 1000, fake_compiler)
        os.utime(folder / f"{key}.so", (time.time() - 5000,) * 2)
    assert cache.get(KEY)
    for k in range(2):
        cache.build(f"{k:064x}", "x" * 1000, fake_compiler)
    assert cache.get(KEY) and not cache.get(OTHER)


def test_clear_removes_kernels_and_leftovers_and_nothing_else(folder):
    cache = Cache(str(folder))
    cache.build(KEY, "source", fake_compiler)
    (folder / "notes.txt").write_text("the user's")
    (folder / "work-old").mkdir()
    (folder / "work-old" / "kernel.c").write_text("")
    os.utime(folder / "work-old", (0, 0))
    (folder / "work-new").mkdir()  # of a process that compiles just now
    cache.clear()
    assert {p.name for p in folder.iterdir()} - {"lock-a"} == {"notes.txt", "work-new"}
    assert cache.get(KEY) is None


# Where the folder is, and when it is not used.


def test_the_folder_is_where_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.setenv("TINYTORCH_CACHE_DIR", str(tmp_path / "mine"))
    assert default_folder() == str(tmp_path / "mine")
    monkeypatch.delenv("TINYTORCH_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_folder() == str(tmp_path / "xdg" / "tinytorch")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_folder() == str(tmp_path / ".cache" / "tinytorch")


def is_refused(folder, match):
    cache = Cache(str(folder))
    with pytest.warns(RuntimeWarning, match=match) as caught:
        path = cache.build(KEY, "source", fake_compiler)
        assert cache.build(KEY, "source", fake_compiler)
    assert len(caught) == 1
    assert not Path(path).is_relative_to(folder) and cache.get(KEY) == path
    return cache


def test_a_folder_that_others_may_write_is_refused(folder):
    folder.mkdir()
    folder.chmod(0o770)
    is_refused(folder, "may be written by other users")
    assert list(folder.iterdir()) == []


def test_a_folder_below_one_that_everyone_may_write_is_refused(tmp_path):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    is_refused(tmp_path / "open" / "cache", "everyone may write")


def test_a_folder_of_another_user_is_refused(folder, monkeypatch):
    folder.mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.warns(RuntimeWarning, match="belongs to another user"):
        assert not Path(Cache(str(folder)).build(KEY, "source", fake_compiler)).is_relative_to(folder)


def test_a_symlink_is_judged_by_what_it_points_to(folder, tmp_path):
    (tmp_path / "real").mkdir(mode=0o700)
    folder.symlink_to(tmp_path / "real")
    assert Path(Cache(str(folder)).build(KEY, "source", fake_compiler)).is_relative_to(folder)
    (tmp_path / "real").chmod(0o777)
    is_refused(folder, "may be written by other users")


def test_a_file_in_the_folders_place_is_refused(folder):
    folder.write_text("")
    is_refused(folder, "is not a folder")


def test_a_folder_that_cannot_be_made_is_done_without(tmp_path):
    (tmp_path / "file").write_text("")
    is_refused(tmp_path / "file" / "cache", "cannot be made")


def test_a_read_only_folder_is_done_without(folder, monkeypatch):
    folder.mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # permissions do not stop root
    is_refused(folder, "is read-only")


def test_threads_share_the_temporary_folder(folder, monkeypatch):
    """All find what one of them has built, though each may have made a folder."""
    cache, make, made = Cache(str(folder)), tempfile.mkdtemp, []

    def slowly(prefix):
        path = make(prefix=prefix)
        made.append(path)
        if len(made) == 1:
            cache.private()  # the other thread
        return path

    monkeypatch.setattr(tempfile, "mkdtemp", slowly)
    assert cache.private() == cache.private() == made[1]
    assert [os.path.isdir(path) for path in made] == [False, True]


def test_a_full_disk_is_done_without_but_still_read(folder, monkeypatch):
    cache = Cache(str(folder))
    kept = cache.build(OTHER, "source", fake_compiler)
    make = tempfile.mkdtemp

    def full(prefix, dir=None):
        if dir:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return make(prefix=prefix, dir=dir)

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    with pytest.raises(CompileError, match="No space left"), pytest.warns(RuntimeWarning, match="No space left"):
        cache.build(KEY, "source", fake_compiler)  # not even a private folder
    assert cache.get(OTHER) == kept
    monkeypatch.setattr(tempfile, "mkdtemp", lambda prefix, dir=None: make(prefix=prefix))
    path = cache.build(KEY, "source", fake_compiler)
    assert not Path(path).is_relative_to(folder) and cache.get(KEY) == path


def test_a_disk_that_is_full_for_the_compiler_is_done_without(folder, monkeypatch):
    cache = Cache(str(folder))

    def no_room(text, library):
        if Path(text).is_relative_to(folder):
            raise CompileError("ld: final link failed: No space left on device")
        fake_compiler(text, library)

    with pytest.raises(CompileError, match="final link"):  # there is room: it was the compiler's own failure
        cache.build(KEY, "source", no_room)
    monkeypatch.setattr(cache_module, "_cannot_hold", lambda folder: "No space left on device")
    with pytest.warns(RuntimeWarning, match="No space left"):
        assert not Path(cache.build(KEY, "source", no_room)).is_relative_to(folder)


def test_a_compiler_that_fails_leaves_nothing_behind(folder):
    def fail(text, library):
        Path(library).write_bytes(b"half")
        raise CompileError("no")

    with pytest.raises(CompileError):
        Cache(str(folder)).build(KEY, "source", fail)
    assert {p.name for p in folder.iterdir()} <= {"lock-a"}


def test_a_lock_that_is_not_given_back_is_not_waited_for_long(folder, monkeypatch):
    monkeypatch.setattr(cache_module, "LOCK_PATIENCE", 0.1)
    cache = Cache(str(folder))
    cache.build("a1" * 32, "source", fake_compiler)
    hold = "import fcntl, sys; f = open(sys.argv[1], 'r+'); fcntl.lockf(f, fcntl.LOCK_EX); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", hold, folder / "lock-a"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        holder.stdout.readline()
        start = time.monotonic()
        assert cache.build(KEY, "source", fake_compiler)
        assert 0.05 < time.monotonic() - start < 60
        holder.communicate(b"\n")


# Processes.


def child(folder, *arguments, **environment):
    """A process of child.py; its standard output is a pipe."""
    root = str(Path(__file__).parents[2])
    variables = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")]),
        "TINYTORCH_CACHE_DIR": str(folder),
        "TINYTORCH_FUSE_HOT": "1",
        **environment,
    }
    return subprocess.Popen(
        [sys.executable, str(CHILD), *map(str, arguments)],
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def outcome(process, warnings=0):
    """What the process printed; its results are right, and it warned at most that often."""
    out, err = process.communicate(timeout=900)
    assert process.returncode == 0, err
    got = json.loads(out.splitlines()[-1])
    assert got["same"] and len(got["warnings"]) <= warnings and "Traceback" not in err, (got, err)
    return got


def test_the_second_process_finds_the_kernel_of_the_first(folder):
    first, second = outcome(child(folder)), outcome(child(folder))
    assert first["compiled"] == 1 and first["hits"] == 0
    assert second["compiled"] == 0 and second["hits"] == 1
    for path in folder.glob("*.so"):
        path.write_bytes(path.read_bytes()[:-100])
    assert outcome(child(folder))["compiled"] == 1


@pytest.mark.parametrize("limit", [1, 1000, 12_000])
def test_files_that_cannot_grow(folder, limit):
    got = outcome(child(folder, 1, limit), warnings=1)
    assert got["refused"] == 1 and len(got["warnings"]) == 1
    assert list(folder.glob("*.so")) == []


def test_no_place_for_files_at_all(folder, tmp_path):
    (tmp_path / "file").write_text("")
    got = outcome(child(tmp_path / "file" / "x", TMPDIR=str(tmp_path / "nowhere"), HOME="/nonexistent"), warnings=1)
    assert got["refused"] + got["compiled"] == 1 and len(got["warnings"]) == 1


def test_processes_that_are_killed_at_any_moment(folder):
    rng = random.Random(0)
    for k in range(6):
        process = child(folder, 3)
        assert process.stdout.readline() == "ready\n"
        time.sleep(rng.uniform(0, 0.12 * (k + 1)))
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    got = outcome(child(folder, 3))
    assert got["refused"] == 0 and got["hits"] + got["compiled"] == 3
    assert outcome(child(folder, 3))["hits"] == 3


def start_together(folder, number):
    processes = [child(folder, 2) for _ in range(number)]
    results = [outcome(p) for p in processes]
    assert all(r["refused"] == 0 and r["hits"] + r["compiled"] == 2 for r in results)
    assert sum(r["compiled"] for r in results) == 2, "processes did not wait for one another"
    assert {p.suffix for p in folder.iterdir() if not p.name.startswith("lock-")} == {".c", ".so"}


def test_twenty_processes_start_at_once(folder):
    start_together(folder, 20)


@pytest.mark.slow
def test_two_hundred_processes_start_at_once(folder):
    start_together(folder, 200)
