"""What each row computes, for libraries with NumPy's functions: NumPy, CuPy, jax.numpy as `xp`.

A work takes the row's input `x` and its constants by name. Names ending in a number are families: rfft_400, chain_7.
"""

MEAN, STD = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)  # of an image's channels
LOW, HIGH = -5.0, 7.0  # of histograms

# chain_k is the first k of these.
CHAIN = (
    ("normalize", 1.0, 2.0), ("clip", -3.0, 3.0), ("scale", 1.5, 0.25), ("abs",), ("sqrt",), ("scale", 0.5, 1.0),
    ("log1p",), ("scale", 2.0, -0.5), ("clip", -1.0, 1.5), ("exp",), ("scale", 0.1, 0.0), ("clip", 0.12, 0.4),
)


def split(row):
    """'chain_7' -> ('chain', 7), 'image' -> ('image', None)."""
    family, _, number = row.rpartition("_")
    return (family, int(number)) if number.isdigit() else (row, None)


def chain(functions, steps, x):
    for name, *numbers in CHAIN[:steps]:
        x = functions[name](x, *numbers)
    return x


class Works:
    """The works over one library; `work(row)` finds one or None."""

    def __init__(self, xp):
        self.xp = xp
        f32 = xp.float32
        self.functions = {
            "normalize": lambda x, mean, std: (x - f32(mean)) / f32(std),
            "clip": lambda x, low, high: xp.clip(x, f32(low), f32(high)),
            "scale": lambda x, factor, offset: x * f32(factor) + f32(offset),
            "abs": xp.abs, "sqrt": xp.sqrt, "log1p": xp.log1p, "exp": xp.exp,
        }

    def work(self, row):
        family, number = split(row)
        if family == "chain":
            return lambda x: chain(self.functions, number, x)
        if row == "hist256_equal":
            row = "hist256"
        return getattr(self, family if family == "rfft" else row, None)

    def image(self, x):
        xp = self.xp
        mean, std = xp.asarray(MEAN, xp.float32), xp.asarray(STD, xp.float32)
        y = xp.clip((x.astype(xp.float32) - mean) / std, xp.float32(-3), xp.float32(3))
        return xp.ascontiguousarray(y.transpose(0, 3, 1, 2)).astype(xp.float16)

    def normclip(self, x):
        return chain(self.functions, 2, x)

    def rowstd(self, x):
        xp = self.xp
        return (x - x.mean(1, keepdims=True)) / (x.std(1, keepdims=True) + xp.float32(1e-5))

    def globalstd(self, x):
        return (x - x.mean()) / x.std(ddof=1)

    def rfft(self, x):
        xp = self.xp
        return xp.log1p(xp.abs(self.rfft_of(self.normclip(x))) ** 2)

    def rfft_of(self, x):
        return self.xp.fft.rfft(x)

    def hist256(self, x):
        return self.xp.histogram(x, 256, range=(LOW, HIGH))[0]

    def hist_rows(self, x):
        """One bincount over all rows: no library has the op."""
        xp = self.xp
        rows, bins = x.shape[0], 64
        bin_ = xp.clip(((x - xp.float32(LOW)) * xp.float32(bins / (HIGH - LOW))).astype(xp.int32), 0, bins - 1)
        flat = (bin_ + xp.arange(rows, dtype=xp.int32)[:, None] * bins).reshape(-1)
        return self.bincount(flat, rows * bins).reshape(rows, bins)

    def bincount(self, x, length):
        return self.xp.bincount(x, minlength=length)

    def logmel(self, x, window, mel):
        xp = self.xp
        length, hop = window.shape[0], 160
        frames = 1 + (x.shape[1] - length) // hop
        index = xp.arange(frames)[:, None] * hop + xp.arange(length)[None, :]
        power = xp.abs(self.rfft_of(x[:, index] * window)) ** 2
        return xp.log(power @ mel + xp.float32(1e-6))

    def seed_chain(self, x, other):
        xp = self.xp
        spectrum = xp.fft.fft(self.matmul_tf32(self.normclip(x), other))
        return xp.histogram(xp.abs(spectrum), 64, range=(0.0, 200.0))[0]

    def matmul_tf32(self, x, other):
        return x @ other
