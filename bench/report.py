#!/usr/bin/env python3
"""The result of a run as text: `report.py RESULT.json` prints the Markdown table again."""

import json
import sys


def number(ms):
    """Three significant digits, no exponent."""
    digits = 0 if ms >= 100 else 1 if ms >= 10 else 2 if ms >= 1 else 3 if ms >= 0.1 else 4
    return f"{ms:.{digits}f}"


def best_peer(row):
    """(name, ms), or None when no peer was timed."""
    return min(row["peers"].items(), key=lambda item: item[1]) if row["peers"] else None


def line(row):
    """One row while the run goes on."""
    peer = best_peer(row)
    beside = f"   best peer {number(peer[1]):>8s} ms ({peer[0]})" if peer else ""
    wrong = "".join(f"\n    {name}: {reason}" for name, reason in row["not_timed"].items())
    return (f"{row['id']:14s} floor {number(row['floor_ms']):>8s} ms   ours {number(row['ours_ms']):>8s} ms"
            f"   x{row['ratio']:5.2f}{beside}{wrong}")


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(cells) + " |" for cells in rows])


def verdict(result, row, peer):
    """On a GPU the target of the ratio, and whether it is met; on a CPU the target is the best peer."""
    if result["size"] == "cpu":
        return "" if peer is None else "ahead" if row["ours_ms"] < peer[1] else "**behind**"
    if not row["target"]:
        return ""
    return f"{row['target']:.2f} " + ("ok" if row["ratio"] <= row["target"] else "**missed**")


def summary(result):
    rows = []
    for row in result["rows"]:
        peer = best_peer(row)
        size = f"{row['dtype']} {' x '.join(map(str, row['shape']))}"
        rows.append([row["id"], f"{row['text']}; {size}", number(row["floor_ms"]), number(row["ours_ms"]),
                     f"{row['ratio']:.2f}", verdict(result, row, peer)] +
                    ([f"{peer[0]} {number(peer[1])}", f"{peer[1] / row['floor_ms']:.2f}",
                      f"{peer[1] / row['ours_ms']:.2f}"] if peer else ["none", "", ""]))
    return table(["id", "work", "floor ms", "ours ms", "ours / floor", "target", "best peer ms", "peer / floor",
                  "peer / ours"], rows)


def chains(result):
    """What eleven more elementwise ops cost."""
    ms = {row["id"]: row["ours_ms"] for row in result["rows"]}
    if "chain_1" not in ms or "chain_12" not in ms:
        return ""
    return f"chain_12 takes {ms['chain_12'] / ms['chain_1']:.3f} times as long as chain_1."


def all_peers(result):
    names = sorted({name for row in result["rows"] for name in row["peers"]})
    rows = [[row["id"], number(row["ours_ms"])] + [number(row["peers"][n]) if n in row["peers"] else "" for n in names]
            for row in result["rows"]]
    return table(["id", "ours", *names], rows)


def remarks(result):
    lines = [f"- {library} was skipped: {reason}." for library, reason in result["skipped"].items()]
    for row in result["rows"]:
        lines += [f"- {row['id']}, {name} was not timed: {reason}." for name, reason in row["not_timed"].items()]
    return "\n".join(lines)


def markdown(result):
    machine = result["machine"]
    name = machine.get("gpu") or machine["cpu"]
    cores = f"{machine['cores']} cores of {machine['cpu']} (model {machine['cpu_model']})"
    where = f"{name}, driver {machine['driver']}, {cores}" if machine.get("gpu") else cores
    versions = ", ".join(f"{key} {value}" for key, value in result["versions"].items() if value)
    rates = "; ".join(f"{compute} {', '.join(f'{who} {rate / 1e9:.4g}' for who, rate in found.items())}"
                      for compute, found in result["flops_per_ms"].items())
    parts = [f"# {name}, {result['date']}",
             f"{where}. {versions}. {machine['system']}, Python {machine['python']}. {result['rounds']} rounds in "
             f"{result.get('seconds', 0)} s; medians. `bench/README.md` says how it is measured.",
             summary(result)]
    if rates:
        parts.append(f"Matrix rates in TFLOP/s: {rates}. The floor of a row with a product is the longer of copying its "
                     "bytes and the best of these.")
    if chains(result):
        parts.append(chains(result))
    if any(row["peers"] for row in result["rows"]):
        parts += ["## All peers, ms", all_peers(result)]
    if remarks(result):
        parts += ["## Not timed", remarks(result)]
    steps = [f"- {row['id']}: {'; '.join(row['steps'])}" for row in result["rows"]]
    parts += ["## What Forebay ran", "\n".join(steps)]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as opened:
        print(markdown(json.load(opened)), end="")
