"""JAX: each work under one `jax.jit`."""

import os
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import jax
import jax.numpy as jnp

from works import MEAN, STD, Works

jax.config.update("jax_default_matmul_precision", "highest")


class JaxWorks(Works):
    def image(self, x):
        y = jnp.clip((x.astype(jnp.float32) - jnp.asarray(MEAN)) / jnp.asarray(STD), -3, 3)
        return jnp.transpose(y, (0, 3, 1, 2)).astype(jnp.float16)

    def bincount(self, x, length):
        return jnp.bincount(x, length=length)

    def matmul_tf32(self, x, other):
        return jnp.matmul(x, other, precision=jax.lax.Precision.DEFAULT)

    def matmul_bf16(self, x, other):
        return self.normclip(x).astype(jnp.bfloat16) @ other


class Peer:
    devices = ("cuda", "cpu")
    versions = {"jax": jax.__version__}

    def __init__(self, device):
        self.device = jax.devices("gpu" if device == "cuda" else "cpu")[0]
        self.works = JaxWorks(jnp)

    def load(self, path):
        import numpy as np
        return jax.device_put(np.load(path), self.device)

    def variants(self, row, arrays):
        work = self.works.work(row)
        if work is None:
            return {}
        if row == "matmul_bf16":
            arrays = {**arrays, "other": arrays["other"].astype(jnp.bfloat16)}
        compiled = jax.jit(work)
        return {"JAX": lambda: compiled(**arrays)}

    def time_ms(self, call, runs):
        """The host's clock: JAX has no events. The wait at the end is part of it."""
        jax.block_until_ready(call())
        begin = time.perf_counter()
        for _ in range(runs):
            result = call()
        jax.block_until_ready(result)
        return (time.perf_counter() - begin) * 1e3 / runs

    def numbers(self, result, count):
        import numpy as np
        return np.asarray(result.reshape(-1)[:count]).astype("float64")

    def free(self):
        jax.clear_caches()
