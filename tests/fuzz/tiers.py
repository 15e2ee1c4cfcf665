"""Fused mode's two tiers over many programs at once: kernels that wait for the compiler are compiled together, in one
run of it, and installed by hand. The worker's thread, which takes them one by one, must not run."""

import contextlib
import os
import re
import tempfile

from tinytorch.backends.cpu import ffi, lib
from tinytorch.backends.cuda import runtime
from tinytorch.fuse import codegen, codegen_cuda, compiler
from tinytorch.fuse.worker import worker

FUNCTION = re.compile(rf"^(void ){codegen.PREFIX}(\d+)\(", re.M)


class Compiler:
    """The compiled tier, driven by hand: ``want`` after the programs have run once, ``compile`` to install kernels."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="tinytorch-fuzz-")
        self.known = {}  # source: (library, prefix), or None where a device's compiler refuses
        self.waiting = []  # kernels and their sources
        self.compiled = 0
        worker.start = lambda: None

    def want(self):
        """Takes up all kernels that wait."""
        while (kernel := lib.tt_kernel_wanted(0)) != ffi.NULL:
            if kernel.device:
                self._install_on_device(kernel)
            else:
                self.waiting.append((kernel, codegen.source(kernel)))

    def compile(self):
        """Installs what waits. How many kernels that were."""
        self.want()
        new = list({source for _, source in self.waiting} - self.known.keys())
        if new:
            library = os.path.join(self.folder, f"{len(self.known)}.so")
            text = []
            for number, source in enumerate(new):
                prefix = f"k{number}_"
                text.append(FUNCTION.sub(rf"\1{prefix}\2(", source))
                self.known[source] = library, prefix
            path = library.removesuffix(".so") + ".c"
            with open(path, "w") as file:
                file.write("\n".join(text))
            compiler.compile_file(path, library, ffi.string(lib.tt_isa_name()).decode())
            self.compiled += len(new)
        count = len(self.waiting)
        for kernel, source in self.waiting:
            library, prefix = self.known[source]
            if lib.tt_kernel_install(kernel, os.fsencode(library), prefix.encode()):
                raise RuntimeError(f"a kernel of {library} cannot be installed")
        self.waiting.clear()
        return count

    def _install_on_device(self, kernel):
        with contextlib.suppress(codegen_cuda.Refused):
            source, detail = codegen_cuda.source(kernel)
            number, known = runtime.install_fused(kernel.device - 1, source)
            lib.tt_kernel_install_device(kernel, number, detail)
            self.compiled += not known
            return
        lib.tt_kernel_refuse(kernel)
