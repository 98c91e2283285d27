"""PyTorch: eager, eager into kept buffers (out=), torch.compile."""

import time

import torch
import torch.nn.functional as F

from works import CHAIN, HIGH, LOW, MEAN, STD, split


def normclip(x):
    return ((x - 1.0) / 2.0).clamp(-3, 3)


def rowstd(x):
    return (x - x.mean(1, keepdim=True)) / (x.std(1, keepdim=True, unbiased=False) + 1e-5)


def globalstd(x):
    return (x - x.mean()) / x.std()


def matmul_bf16(x, other):
    return normclip(x).bfloat16() @ other


def rfft(x):
    return torch.log1p(torch.fft.rfft(normclip(x)).abs().square())


def hist256(x):
    return torch.histc(x, 256, LOW, HIGH)


def hist_rows(x):
    rows, bins = x.shape[0], 64
    bin_ = ((x - LOW) * (bins / (HIGH - LOW))).long().clamp_(0, bins - 1)
    bin_ += torch.arange(rows, device=x.device)[:, None] * bins
    return torch.bincount(bin_.view(-1), minlength=rows * bins).view(rows, bins)


def logmel(x, window, mel):
    length = window.shape[0]
    spectrum = torch.stft(x, length, 160, length, window, center=False, return_complex=True)
    return torch.log(spectrum.abs().square().transpose(1, 2) @ mel + 1e-6)


def seed_chain(x, other):
    return torch.histc(torch.fft.fft(normclip(x) @ other).abs(), 64, 0, 200)


FUNCTIONS = {
    "normalize": lambda x, mean, std: (x - mean) / std, "clip": torch.clamp,
    "scale": lambda x, factor, offset: x * factor + offset,
    "abs": torch.abs, "sqrt": torch.sqrt, "log1p": torch.log1p, "exp": torch.exp,
}


def chain(steps):
    def work(x):
        for name, *numbers in CHAIN[:steps]:
            x = FUNCTIONS[name](x, *numbers)
        return x
    return work


class Peer:
    devices = ("cuda", "cpu")
    versions = {"torch": torch.__version__}

    def __init__(self, device):
        self.device = torch.device(device)
        self.mean, self.std = (torch.tensor(v, device=self.device) for v in (MEAN, STD))
        self.sync = torch.cuda.synchronize if device == "cuda" else lambda: None

    def load(self, path):
        import numpy as np
        return torch.from_numpy(np.load(path)).to(self.device)

    def image(self, x):
        return ((x.float() - self.mean) / self.std).clamp(-3, 3).permute(0, 3, 1, 2).contiguous().half()

    def work(self, row):
        family, steps = split(row)
        if family == "chain":
            return chain(steps)
        if row == "image":
            return self.image
        works = {"normclip": normclip, "rowstd": rowstd, "globalstd": globalstd, "matmul_bf16": matmul_bf16, "rfft": rfft,
                 "hist256": hist256, "hist256_equal": hist256, "hist_rows": hist_rows, "logmel": logmel,
                 "seed_chain": seed_chain}
        return works.get(family if family == "rfft" else row)

    def variants(self, row, arrays):
        torch.backends.cuda.matmul.allow_tf32 = row == "seed_chain"
        work = self.work(row)
        if work is None:
            return {}
        if row == "matmul_bf16":
            arrays = {**arrays, "other": arrays["other"].bfloat16()}
        torch._dynamo.reset()
        compiled = torch.compile(work, dynamic=False)
        found = {"torch": lambda: work(**arrays), "torch.compile": lambda: compiled(**arrays)}
        if row == "rowstd":
            x = arrays["x"]
            found["torch layer_norm"] = lambda: F.layer_norm(x, x.shape[1:], eps=1e-10)
        if row == "hist_rows" and self.device.type == "cpu":
            found["torch loop of histc"] = lambda: torch.stack([torch.histc(r, 64, LOW, HIGH) for r in arrays["x"]])
        kept = self.kept(row, **arrays)
        if kept is not None:
            found["torch out="] = kept
        return found

    def kept(self, row, x, other=None, **constants):
        """The work with every pass into buffers that are made once; None where torch has no `out=` for it."""
        family, steps = split(row)
        if family == "chain" or row == "normclip":
            out = torch.empty_like(x)
            return lambda: chain_into(out, steps or 2, x)
        if row == "image":
            f32 = torch.empty((x.shape[0], 3, *x.shape[1:3]), device=x.device)
            f16 = torch.empty_like(f32, dtype=torch.half)
            mean, std = self.mean[:, None, None], self.std[:, None, None]
            return lambda: f16.copy_(f32.copy_(x.permute(0, 3, 1, 2)).sub_(mean).div_(std).clamp_(-3, 3))
        if row == "rowstd":
            out = torch.empty_like(x)
            return lambda: rowstd_into(out, x)
        if row == "globalstd":
            out = torch.empty_like(x)
            return lambda: torch.sub(x, x.mean(), out=out).div_(x.std())
        if row == "matmul_bf16":
            y, narrow = torch.empty_like(x), torch.empty_like(x, dtype=torch.bfloat16)
            out = torch.empty((x.shape[0], other.shape[1]), dtype=torch.bfloat16, device=x.device)
            return lambda: torch.mm(narrow.copy_(chain_into(y, 2, x)), other, out=out)
        if family == "rfft":
            y = torch.empty_like(x)
            spectrum = torch.empty((x.shape[0], x.shape[1] // 2 + 1), dtype=torch.complex64, device=x.device)
            power = torch.empty_like(spectrum, dtype=torch.float32)
            return lambda: rfft_into(power, spectrum, y, x)
        return None

    def time_ms(self, call, runs):
        if self.device.type == "cuda":
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            for _ in range(runs):
                call()
            end.record()
            end.synchronize()
            return begin.elapsed_time(end) / runs
        start = time.perf_counter()
        for _ in range(runs):
            call()
        return (time.perf_counter() - start) * 1e3 / runs

    def product(self, compute):
        """A product of large square matrices and its operations. Numbers of both signs, as in the rows: others switch fewer
        transistors, so that a GPU's power limit leaves it a faster clock."""
        torch.backends.cuda.matmul.allow_tf32 = compute == "tf32"
        side = 8192 if self.device.type == "cuda" else 2048
        dtype = torch.bfloat16 if compute == "bf16" else torch.float32
        a, b = (torch.rand((side, side), device=self.device).mul_(2).sub_(1).to(dtype) for _ in range(2))
        return lambda: a @ b, 2 * side**3

    def numbers(self, result, count):
        return result.reshape(-1)[:count].double().cpu().numpy()

    def free(self):
        torch._dynamo.reset()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()


def chain_into(out, steps, x):
    for name, *numbers in CHAIN[:steps]:
        if name == "normalize":
            torch.sub(x, numbers[0], out=out).div_(numbers[1])
        elif name == "scale":
            torch.mul(x, numbers[0], out=out).add_(numbers[1])
        elif name == "clip":
            torch.clamp(x, *numbers, out=out)
        else:
            FUNCTIONS[name](x, out=out)
        x = out
    return out


def rowstd_into(out, x):
    torch.sub(x, x.mean(1, keepdim=True), out=out)
    return out.div_(x.std(1, keepdim=True, unbiased=False).add_(1e-5))


def rfft_into(power, spectrum, y, x):
    torch.fft.rfft(chain_into(y, 2, x), out=spectrum)
    torch.abs(spectrum, out=power)
    return power.square_().log1p_()
