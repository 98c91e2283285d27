"""NumPy on the CPU: as one writes it, and with `out=` into kept buffers where it can."""

import time

import numpy as np

from works import CHAIN, MEAN, STD, Works, split


class Peer:
    devices = ("cpu",)
    versions = {"numpy": np.__version__}

    def __init__(self, device):
        self.works = Works(np)

    def load(self, path):
        return np.load(path)

    def variants(self, row, arrays):
        work = self.works.work(row)
        found = {}
        if row == "hist_rows":
            from works import HIGH, LOW
            found["NumPy"] = lambda: np.stack([np.histogram(r, 64, range=(LOW, HIGH))[0] for r in arrays["x"]])
        elif work is not None:
            found["NumPy"] = lambda: work(**arrays)
        kept = self.kept(row, **arrays)
        if kept is not None:
            found["NumPy out="] = kept
        return found

    def kept(self, row, x, **constants):
        """The work with every pass into buffers that are made once; None where NumPy has no `out=` for it."""
        family, steps = split(row)
        if row == "normclip":
            family, steps = "chain", 2
        if family == "chain":
            out = np.empty_like(x)
            return lambda: chain_into(out, steps, x)
        if row == "image":
            f32, f16 = np.empty(x.shape, np.float32), np.empty((x.shape[0], 3, *x.shape[1:3]), np.float16)
            return lambda: image_into(f16, f32, x)
        if family == "rfft":
            y = np.empty_like(x)
            spectrum = np.empty((x.shape[0], x.shape[1] // 2 + 1), np.complex64)
            power = np.empty(spectrum.shape, np.float32)
            return lambda: rfft_into(power, spectrum, y, x)
        return None

    def time_ms(self, call, runs):
        begin = time.perf_counter()
        for _ in range(runs):
            call()
        return (time.perf_counter() - begin) * 1e3 / runs

    def numbers(self, result, count):
        return result.reshape(-1)[:count].astype(np.float64)

    def free(self):
        pass


def chain_into(out, steps, x):
    f32 = np.float32
    for name, *numbers in CHAIN[:steps]:
        if name == "normalize":
            np.subtract(x, f32(numbers[0]), out=out)
            np.divide(out, f32(numbers[1]), out=out)
        elif name == "scale":
            np.multiply(x, f32(numbers[0]), out=out)
            np.add(out, f32(numbers[1]), out=out)
        elif name == "clip":
            np.clip(x, f32(numbers[0]), f32(numbers[1]), out=out)
        else:
            getattr(np, name)(x, out=out)
        x = out
    return out


def image_into(f16, f32, x):
    np.subtract(x, np.asarray(MEAN, np.float32), out=f32, dtype=np.float32, casting="unsafe")
    np.divide(f32, np.asarray(STD, np.float32), out=f32)
    np.clip(f32, np.float32(-3), np.float32(3), out=f32)
    np.copyto(f16, f32.transpose(0, 3, 1, 2), casting="same_kind")
    return f16


def rfft_into(power, spectrum, y, x):
    chain_into(y, 2, x)
    np.fft.rfft(y, out=spectrum)
    np.abs(spectrum, out=power)
    np.square(power, out=power)
    return np.log1p(power, out=power)
