#!/usr/bin/env python3
"""Measures the table: for each row the floor, Forebay and the peers, in turns on the same machine.

    run.py --device cuda --out results/h200        writes results/h200.json and results/h200.md
    run.py --list                                  the rows
    run.py --only image,normclip --rounds 5        parts of it

Needs nothing but Python; a peer whose library is missing is skipped, and the table says so.
"""

import argparse
import datetime
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import report
from arms import Arm, Failed

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = ("torch", "numpy", "scipy", "cupy", "jax")
OPEN_SECONDS = 150  # the first torch.compile of a process takes long
SLOW_MS = 300  # of one run: fewer rounds


def find_program():
    for place in (HERE, os.path.join(HERE, "../build/default/bin"), os.path.join(HERE, "../build/cpu/bin")):
        path = os.path.join(place, "forebay_bench")
        if os.access(path, os.X_OK):
            return path
    sys.exit("run.py: no forebay_bench beside this file or in ../build/default/bin; build it or name it with --program")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--only", default="", help="ids, comma-separated; chain_ takes all that begin so")
    parser.add_argument("--peers", default=",".join(PEERS), help="libraries, comma-separated; empty for none")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--out", default="", help="writes OUT.json and OUT.md")
    parser.add_argument("--program", default="", help="forebay_bench")
    parser.add_argument("--list", action="store_true", help="prints the rows and ends")
    parser.add_argument("--smoke", action="store_true", help="tiny sizes: to see that all of it works")
    args = parser.parse_args()
    args.program = args.program or find_program()
    if args.device == "auto":
        args.device = "cuda" if shutil.which("nvidia-smi") and gpu() else "cpu"
    args.size = "smoke" if args.smoke else "gpu" if args.device == "cuda" else "cpu"
    return args


def read_rows(args):
    listed = subprocess.run([args.program, "list", "--device", args.device, "--size", args.size], check=False,
                            capture_output=True, text=True)
    if listed.returncode:
        sys.exit(f"run.py: {args.program} does not run: {listed.stderr.strip()}")
    rows = [json.loads(line) for line in listed.stdout.splitlines()]
    only = [word for word in args.only.split(",") if word]
    unknown = [word for word in only if not any(matches(row["id"], word) for row in rows)]
    if unknown:
        sys.exit(f"run.py: there is no row {', '.join(unknown)}; there are {', '.join(r['id'] for r in rows)}")
    return [row for row in rows if not only or any(matches(row["id"], word) for word in only)]


def matches(row, word):
    return row == word or (word.endswith("_") and row.startswith(word))


def gpu():
    """Name and driver of the first GPU; empty without one."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    answer = subprocess.run(query, capture_output=True, text=True, check=False)
    return answer.stdout.splitlines()[0] if answer.returncode == 0 and answer.stdout.strip() else ""


def machine(device):
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        fields = dict(line.split(":", 1) for line in file.read().split("\n\n")[0].splitlines() if ":" in line)
    fields = {key.strip(): value.strip() for key, value in fields.items()}
    found = {"cpu": fields.get("model name", platform.processor()), "cpu_model": fields.get("model", ""),
             "cores": len(os.sched_getaffinity(0)), "system": platform.platform(), "python": platform.python_version()}
    if device == "cuda":
        found["gpu"], found["driver"] = (gpu().split(", ") + ["", ""])[:2]
    return found


class Run:
    """The arms, and what has been found so far."""

    def __init__(self, args):
        self.args = args
        self.ours = Arm("forebay", [args.program, "serve", "--device", args.device, "--size", args.size])
        self.peers = {name: self.start(name) for name in args.peers.split(",") if name}
        self.versions = self.ours.ask({"do": "versions"})
        self.skipped = {}
        for name in list(self.peers):
            self.greet(name)
        self.rates = {}

    def start(self, name):
        return Arm(name, [sys.executable, os.path.join(HERE, "peers/serve.py"), name, self.args.device])

    def greet(self, name):
        try:
            answer = self.peers[name].receive(OPEN_SECONDS)
            reason = answer.get("skipped")
            self.versions.update(answer.get("versions", {}))
        except Failed as failure:
            reason = str(failure)
        if reason:
            self.skipped[name] = reason
            self.peers.pop(name).stop()
            say(f"{name}: skipped, {reason}")

    def rate(self, compute):
        """The best matrix rate that anybody here reaches."""
        if compute not in self.rates:
            found = {"forebay": self.ours.ask({"do": "rate", "compute": compute}, OPEN_SECONDS)["flops_per_ms"]}
            if "torch" in self.peers:
                found["torch"] = self.peers["torch"].ask({"do": "rate", "compute": compute})["flops_per_ms"]
            self.rates[compute] = found
        return max(self.rates[compute].values())

    def row(self, row, folder):
        steps = self.ours.ask({"do": "open", "row": row["id"]}, OPEN_SECONDS)["steps"]
        variants, not_timed = self.open_peers(row, folder) if self.peers else ({}, {})
        contestants = {"floor": (self.ours, {"do": "floor"}), "ours": (self.ours, {"do": "time"})}
        for name, library in variants.items():
            contestants[name] = (self.peers[library], {"do": "time", "variant": name})
        times = self.take_turns(contestants, not_timed)
        for library in dict.fromkeys(variants.values()):
            if library in self.peers:
                self.quietly(library, {"do": "close"})
        self.ours.ask({"do": "close"})
        medians = {name: statistics.median(ms) for name, ms in times.items()}
        copy, ours = medians.pop("floor"), medians.pop("ours")
        floor = max(copy, row["flops"] / self.rate(row["compute"]) if row["flops"] else 0)
        return {"id": row["id"], "text": row["text"], "shape": row["shape"], "dtype": row["dtype"],
                "target": row["target"] if self.args.size == "gpu" else 0, "floor_ms": floor, "ours_ms": ours,
                "ratio": ours / floor, "peers": medians, "copy_ms": copy, "gb_per_s": row["bytes"] / copy / 1e6,
                "range_ms": {name: [min(ms), max(ms)] for name, ms in times.items()}, "steps": steps,
                "not_timed": not_timed}

    def open_peers(self, row, folder):
        """The variants of all libraries with a right result, by name, and why others are not timed."""
        saved = self.ours.ask({"do": "save", "folder": folder}, OPEN_SECONDS)
        request = {"do": "open", "row": row["id"], **saved}
        variants, not_timed = {}, {}
        for library, arm in self.peers.items():  # all at once: they compile beside each other
            arm.send(request)
        for library in list(self.peers):
            try:
                for name, reason in self.peers[library].receive(OPEN_SECONDS)["variants"].items():
                    if reason is None:
                        variants[name] = library
                    else:
                        not_timed[name] = reason
            except Failed as failure:
                not_timed[library] = str(failure)
                self.restart(library)
        return variants, not_timed

    def restart(self, library):
        """After a failure that ended the process: a fresh one for the next row."""
        if not self.peers[library].alive:
            self.peers[library] = self.start(library)
            self.greet(library)

    def quietly(self, library, request):
        try:
            self.peers[library].ask(request)
        except Failed:
            self.restart(library)

    def take_turns(self, contestants, not_timed):
        """Milliseconds of each round, by contestant; each round starts with another one."""
        times, runs = {}, {}
        for name in list(contestants):
            estimate = self.time(contestants, name, 1, not_timed)
            if estimate is not None:
                runs[name] = max(1, min(200, round((10 if self.args.device == "cuda" else 5) / max(estimate, 1e-3))))
                times[name] = [estimate] if estimate > SLOW_MS else []
        for turn in range(self.args.rounds):
            names = list(times)
            for i in range(len(names)):
                name = names[(i + turn) % len(names)]
                if name in contestants and (turn < 2 or not times[name] or times[name][0] < SLOW_MS):
                    ms = self.time(contestants, name, runs[name], not_timed)
                    if ms is not None:
                        times[name].append(ms)
        return {name: ms for name, ms in times.items() if ms and name in contestants}

    def time(self, contestants, name, runs, not_timed):
        arm, request = contestants[name]
        if self.args.device == "cpu" and not self.args.smoke:
            time.sleep(0.02)  # threads of the one before stop spinning
        try:
            return arm.ask({**request, "runs": runs})["ms"]
        except Failed as failure:
            if arm is self.ours:
                raise
            not_timed[name] = str(failure)
            del contestants[name]
            return None

    def stop(self):
        for arm in (self.ours, *self.peers.values()):
            arm.stop()


def say(text):
    print(text, flush=True)


def write(result, out):
    for suffix, text in ((".json", json.dumps(result, indent=1) + "\n"), (".md", report.markdown(result))):
        with open(out + suffix, "w", encoding="utf-8") as file:
            file.write(text)


def main():
    args = arguments()
    rows = read_rows(args)
    if args.list:
        for row in rows:
            say(f"{row['id']:14s} {row['text']}, {row['dtype']} {' x '.join(map(str, row['shape']))}")
        return
    begin = time.monotonic()
    run = Run(args)
    result = {"date": datetime.date.today().isoformat(), "device": args.device, "size": args.size, "rounds": args.rounds,
              "machine": machine(args.device), "versions": run.versions, "skipped": run.skipped,
              "flops_per_ms": run.rates, "rows": []}
    try:
        with tempfile.TemporaryDirectory(prefix="forebay_bench_") as folder:
            for row in rows:
                result["rows"].append(run.row(row, folder))
                say(report.line(result["rows"][-1]))
                result["seconds"] = round(time.monotonic() - begin)
                if args.out:  # after each row: a run that is ended leaves what it has found
                    write(result, args.out)
    finally:
        run.stop()
    say(f"{len(rows)} rows in {round(time.monotonic() - begin)} s")


if __name__ == "__main__":
    try:
        main()
    except Failed as failed:
        sys.exit(f"run.py: {failed}")
