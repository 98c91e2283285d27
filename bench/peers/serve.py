#!/usr/bin/env python3
"""One library as an arm of the run: `serve.py LIBRARY DEVICE`, a JSON object a line on stdin, an answer a line on stdout.

    {"do": "open", "row": ..., "arrays": {name: path}, "expected": path, "rtol": r, "atol": a}
        -> {"variants": {name: null, or why it is not timed}}
    {"do": "time", "variant": name, "runs": n}   -> {"ms": of one run}
    {"do": "rate", "compute": "bf16"}            -> {"flops_per_ms": of a product of large matrices} (torch only)
    {"do": "close"}                              -> {}
The first line out is {"versions": {...}}, or {"skipped": reason}.
"""

import importlib
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))


class Arm:
    def __init__(self, peer, device):
        self.peer = peer
        self.device = device
        self.calls = {}
        self.loaded = {}  # by path: rows that follow each other share their data

    def open(self, row, arrays, expected, rtol, atol):
        self.loaded = {path: self.loaded.get(path) for path in arrays.values()}
        for path, array in self.loaded.items():
            if array is None:
                self.loaded[path] = self.peer.load(path)
        inputs = {name: self.loaded[path] for name, path in arrays.items()}
        verdicts = {}
        for name, call in self.peer.variants(row, inputs).items():
            try:
                verdicts[name] = self.check(call, expected, rtol, atol)
            except Exception as error:
                verdicts[name] = f"{type(error).__name__}: {str(error).splitlines()[0][:200] if str(error) else ''}"
            if verdicts[name] is None:
                self.calls[name] = call
        return {"variants": verdicts}

    def check(self, call, expected, rtol, atol):
        """None when the work's result is the expected one, else what is wrong with it."""
        import numpy as np
        want = np.load(expected)
        got = self.peer.numbers(call(), want.size)
        if got.shape != want.shape:
            return f"wrong result: {got.size} numbers for {want.size}"
        excess = np.abs(got - want) - (atol + rtol * np.abs(want))
        worst = int(np.argmax(np.where(np.isnan(excess), np.inf, excess)))
        if excess[worst] <= 0:
            return None
        return f"wrong result: element {worst} is {got[worst]:.9g}, expected {want[worst]:.9g}"

    def time(self, variant, runs):
        return {"ms": self.warm_ms(self.calls[variant], runs)}

    def warm_ms(self, call, runs):
        if self.device == "cuda":
            for _ in range(runs):  # clocks and caches are then as they stay when nothing else runs
                call()
        return self.peer.time_ms(call, runs)

    def rate(self, compute):
        call, operations = self.peer.product(compute)
        runs = max(1, round(10 / self.warm_ms(call, 1))) if self.device == "cuda" else 3
        return {"flops_per_ms": operations / min(self.warm_ms(call, runs) for _ in range(5))}

    def close(self):
        self.calls.clear()
        self.peer.free()
        return {}


def main():
    library, device = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print is no answer
    try:
        module = importlib.import_module(f"{library}_peer")
        if device not in module.Peer.devices:
            raise RuntimeError(f"not for {device}")
        arm = Arm(module.Peer(device), device)
        import numpy  # noqa: F401: arrays come as .npy
    except Exception as error:
        print(json.dumps({"skipped": f"{error}".splitlines()[0][:200] or type(error).__name__}), file=answers)
        return
    print(json.dumps({"versions": module.Peer.versions}), file=answers)
    for line in sys.stdin:
        request = json.loads(line)
        do = getattr(arm, request.pop("do"))
        try:
            answer = do(**request)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
        print(json.dumps(answer), file=answers)


if __name__ == "__main__":
    main()
