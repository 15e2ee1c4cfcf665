"""Builds tinytorch's C kernels. What the package is, and what it needs, stands in pyproject.toml."""

import concurrent.futures
import os
import pathlib
import runpy
import shutil
import subprocess
import sys

from setuptools import setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

ROOT = pathlib.Path(__file__).resolve().parent
BUILD = runpy.run_path(str(ROOT / "kernels" / "build.py"))


class BuildKernels(build_ext):
    """Compiles kernels/cpu/simd/*.c once per instruction set, with its own flags, and the rest as usual."""

    def build_extensions(self):
        compiler = os.environ.get("CC", "cc").split()[0]
        if not shutil.which(compiler) and not shutil.which("gcc"):
            sys.exit(f"tinytorch needs a C compiler to build its kernels: '{compiler}' was not found; "
                     "install gcc or clang (Debian: apt install gcc), or set CC.")
        super().build_extensions()

    def build_extension(self, ext):
        version = subprocess.run([*self.compiler.compiler_so, "--version"], capture_output=True, text=True, check=False)
        flags = BUILD["FLAGS"] + ([] if "clang" in version.stdout.lower() else BUILD["GCC"])

        def compile_one(job):
            isa, source = job
            return self.compiler.compile(
                [source], output_dir=os.path.join(self.build_temp, isa), macros=[("TT_ISA", isa), *ext.define_macros],
                include_dirs=ext.include_dirs, extra_postargs=flags + BUILD["ISAS"][isa],
                debug=self.debug, depends=ext.depends)

        jobs = [(isa, BUILD["relative"](s)) for isa in BUILD["ISAS"] for s in BUILD["SIMD_SOURCES"]]
        with concurrent.futures.ThreadPoolExecutor(self.parallel or os.cpu_count()) as pool:
            for objects in pool.map(compile_one, jobs):
                ext.extra_objects = [*ext.extra_objects, *objects]
        super().build_extension(ext)


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


setup(cffi_modules=["kernels/build.py:ffibuilder"],
      cmdclass={"build_ext": BuildKernels, "build_py": BuildPython})
