"""SciPy's FFT on all cores, the rest NumPy."""

import numpy as np
import scipy
import scipy.fft

import numpy_peer
from works import Works, split


class ScipyWorks(Works):
    def rfft_of(self, x):
        return scipy.fft.rfft(x, workers=-1)


class Peer(numpy_peer.Peer):
    versions = {"scipy": scipy.__version__}

    def __init__(self, device):
        self.works = ScipyWorks(np)

    def variants(self, row, arrays):
        if split(row)[0] not in ("rfft", "logmel"):
            return {}
        work = self.works.work(row)
        return {"SciPy fft": lambda: work(**arrays)}
