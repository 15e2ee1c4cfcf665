"""Builds tinytorch's C kernels. What the package is, and what it needs, stands in pyproject.toml."""

import concurrent.futures
import hashlib
import os
import pathlib
import runpy
import shutil
import subprocess
import sys
import sysconfig

from setuptools import setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

ROOT = pathlib.Path(__file__).resolve().parent
BUILD = runpy.run_path(str(ROOT / "kernels" / "build.py"))


class BuildKernels(build_ext):
    """Compiles every C file in one pool, kernels/cpu/simd/*.c once per instruction set, and links the objects.

    An object is kept in build/kernels, and compiled again only if its source, a header that it includes, or the
    command has changed. TINYTORCH_CFLAGS come after our own flags, so that `-O1 -g` changes those.
    """

    def finalize_options(self):
        given = self.build_temp
        super().finalize_options()
        if not given:  # pip gives a temporary folder, in which there would be no objects to keep
            self.build_temp = os.path.join("build", "kernels")

    def build_extensions(self):
        compiler = os.environ.get("CC", "cc").split()[0]
        if not shutil.which(compiler) and not shutil.which("gcc"):
            sys.exit(
                f"tinytorch needs a C compiler to build its kernels: '{compiler}' was not found; "
                "install gcc or clang (Debian: apt install gcc), or set CC."
            )
        super().build_extensions()

    def build_extension(self, ext):
        version = subprocess.run([*self.compiler.compiler_so, "--version"], capture_output=True, text=True, check=False)
        simd = [] if "clang" in version.stdout.lower() else BUILD["GCC"]
        flags = [*ext.extra_compile_args, "-g0"]
        given = os.environ.get("TINYTORCH_CFLAGS", "").split()
        jobs = [
            (source, flags + simd + BUILD["ISAS"][isa] + given, [("TT_ISA", isa)])
            for source in BUILD["SIMD_SOURCES"]
            for isa in BUILD["ISAS"]
        ]
        jobs += [(source, flags + given, []) for source in sorted(ext.sources, key=os.path.getsize, reverse=True)]
        with concurrent.futures.ThreadPoolExecutor(self.parallel or len(os.sched_getaffinity(0))) as pool:
            ext.extra_objects = list(pool.map(lambda job: self.compile_one(ext, version.stdout, *job), jobs))
        ext.sources = []
        self.force = True  # to link
        super().build_extension(ext)

    def compile_one(self, ext, version, source, flags, macros):
        """The object of a source file, compiled unless it is up to date."""
        command = repr((version, self.compiler.compiler_so, sysconfig.get_path("include"), macros, flags))
        folder = os.path.join(self.build_temp, hashlib.sha256(command.encode()).hexdigest()[:16])
        [target] = self.compiler.object_filenames([source], output_dir=folder)
        if self.force or not up_to_date(target):
            self.compiler.compile(
                [source],
                output_dir=folder,
                macros=[*macros, *ext.define_macros],
                include_dirs=ext.include_dirs,
                extra_postargs=[*flags, "-MMD"],
                debug=self.debug,
            )
        return target


def up_to_date(target):
    """Is an object newer than the files that the compiler read for it? It has listed them beside the object."""
    try:
        made = os.path.getmtime(target)
        read = pathlib.Path(target).with_suffix(".d").read_text().replace("\\\n", " ").split()[1:]
        return all(os.path.getmtime(name) < made for name in read)
    except OSError:
        return False


class BuildPython(build_py):
    """Puts the kernels' sources that are compiled where the package is used into it: the scalar functions, which fused
    mode's generated code includes, and CUDA's kernels, as tinytorch/kernels. (Where the package is used in its source
    tree, they are found there.)"""

    def run(self):
        super().run()
        if self.editable_mode:
            return
        for name, patterns in (("scalar", ["*.h"]), ("cuda/device", ["*.h", "*.cuh"])):
            folder = os.path.join(self.build_lib, "tinytorch", "kernels", name)
            self.mkpath(folder)
            for pattern in patterns:
                for header in sorted((ROOT / "kernels" / name).glob(pattern)):
                    self.copy_file(str(header), folder)


# One wheel for every CPython since 3.10; one without the GIL has no stable ABI.
stable = {} if sysconfig.get_config_var("Py_GIL_DISABLED") else {"py_limited_api": "cp310"}
setup(
    cffi_modules=["kernels/build.py:ffibuilder"],
    options={"bdist_wheel": stable},
    cmdclass={"build_ext": BuildKernels, "build_py": BuildPython},
)
