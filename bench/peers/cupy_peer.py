"""CuPy: as one writes it, and with `cupy.fuse` around what is element by element."""

import cupy as cp

from works import CHAIN, Works, split


class Peer:
    devices = ("cuda",)
    versions = {"cupy": cp.__version__}

    def __init__(self, device):
        self.works = Works(cp)

    def load(self, path):
        import numpy as np
        return cp.asarray(np.load(path))

    def variants(self, row, arrays):
        found = {}
        work = self.works.work(row)
        if work is not None:
            found["CuPy"] = lambda: work(**arrays)
        fused = self.fused(row)
        if fused is not None:
            found["CuPy fuse"] = lambda: fused(arrays["x"])
        return found

    def fused(self, row):
        family, steps = split(row)
        if family == "chain" or row == "normclip":
            return fused_chain(self.works, steps or 2)
        if family == "rfft":
            before = fused_chain(self.works, 2)

            @cp.fuse()
            def after(z):  # cupy.fuse needs a named function
                return cp.log1p(cp.abs(z) ** 2)
            return lambda x: after(cp.fft.rfft(before(x)))
        return None

    def time_ms(self, call, runs):
        begin, end = cp.cuda.Event(), cp.cuda.Event()
        begin.record()
        for _ in range(runs):
            call()
        end.record()
        end.synchronize()
        return cp.cuda.get_elapsed_time(begin, end) / runs

    def numbers(self, result, count):
        return cp.asnumpy(result.reshape(-1)[:count]).astype("float64")

    def free(self):
        cp.get_default_memory_pool().free_all_blocks()


def fused_chain(works, steps):
    @cp.fuse()
    def elementwise(x):
        for name, *numbers in CHAIN[:steps]:
            x = works.functions[name](x, *numbers)
        return x
    return elementwise
