"""Tests of the table's run, on the CPU and at tiny sizes: bench_test.py FOREBAY_BENCH."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import report  # noqa: E402
from arms import Arm, Failed  # noqa: E402

PROGRAM = sys.argv.pop()
ISSUE = {"image", "normclip", "rowstd", "globalstd", "matmul_bf16", "hist256", "hist256_equal", "hist_rows", "seed_chain",
         "logmel", *(f"rfft_{length}" for length in (400, 512, 1000, 1024, 2048, 4096)),
         *(f"chain_{steps}" for steps in range(1, 13))}


def run_py(*words):
    return subprocess.run([sys.executable, os.path.join(HERE, "run.py"), "--program", PROGRAM, "--device", "cpu", *words],
                          capture_output=True, text=True, check=False)


def program(*words, requests=""):
    return subprocess.run([PROGRAM, *words], input=requests, capture_output=True, text=True, check=False)


class Rows(unittest.TestCase):
    def test_every_row_is_a_plan_on_both_devices_without_a_gpu(self):
        for device in ("cpu", "cuda"):
            for size in ("gpu", "cpu", "smoke"):
                planned = program("plan", "--device", device, "--size", size)
                if device == "cuda" and "this build has no CUDA body" in planned.stderr:
                    self.assertNotEqual(planned.returncode, 0)  # a build without CUDA refuses, with the reason
                    continue
                self.assertEqual(planned.returncode, 0, planned.stderr)
                for row in ISSUE:
                    self.assertIn(f"pipeline {row}: batches of", planned.stdout)

    def test_unknown_rows_and_words_are_named(self):
        self.assertIn("there is no row `imagine`; there are image, normclip", program("plan", "imagine").stderr)
        self.assertIn("--size is `big`; it must be gpu, cpu or smoke.", program("list", "--size", "big").stderr)
        self.assertIn("--size wants a value.", program("list", "--size").stderr)
        self.assertEqual(program("dance").returncode, 2)
        self.assertIn("there is no row imagine; there are image", run_py("--list", "--only", "imagine").stderr)

    def test_a_bad_request_is_answered_and_serving_goes_on(self):
        requests = '{"do": "time", "runs": 1}\nnonsense\n{"do": "open", "row": "chain_1"}\n{"do": "dance"}\n{"do": "close"}\n'
        served = program("serve", "--device", "cpu", "--size", "smoke", requests=requests)
        answers = [json.loads(line) for line in served.stdout.splitlines()]
        self.assertEqual(answers[0]["error"], "`time` needs an open row.")
        self.assertIn("parse error", answers[1]["error"])
        self.assertEqual(answers[2], {"steps": ["normalize"]})
        self.assertIn("error", answers[3])
        self.assertEqual(answers[4], {})


class Run(unittest.TestCase):
    def test_list_has_the_rows(self):
        listed = run_py("--list")
        self.assertEqual(listed.returncode, 0, listed.stderr)
        self.assertEqual({line.split()[0] for line in listed.stdout.splitlines()}, ISSUE)

    def test_smoke(self):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "smoke")
            ran = run_py("--smoke", "--rounds", "2", "--peers", "numpy,nobody", "--out", out)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            with open(out + ".json", encoding="utf-8") as file:
                result = json.load(file)
            self.assertEqual({row["id"] for row in result["rows"]}, ISSUE)
            for row in result["rows"]:
                self.assertGreater(row["ours_ms"], 0)
                self.assertAlmostEqual(row["ratio"], row["ours_ms"] / row["floor_ms"])
                self.assertEqual(row["not_timed"], {})  # each peer that there is agrees with us
            self.assertIn("nobody", result["skipped"])
            self.assertTrue(result["machine"]["cpu"])
            with open(out + ".md", encoding="utf-8") as file:
                self.assertEqual(file.read(), report.markdown(result))


class Arms(unittest.TestCase):
    def arm(self, code):
        arm = Arm("test", [sys.executable, "-c", "import sys, time\nfor line in sys.stdin:\n " + code])
        self.addCleanup(arm.stop)
        return arm

    def test_answers_errors_ends_and_silence(self):
        self.assertEqual(self.arm("print('{\"ms\": 1}', flush=True)").ask({}), {"ms": 1})
        broken = self.arm("print('{\"error\": \"no\"}', flush=True)")
        with self.assertRaisesRegex(Failed, "^no$"):
            broken.ask({})
        self.assertTrue(broken.alive)
        ended = self.arm("sys.exit(3)")
        with self.assertRaisesRegex(Failed, "^test: the process ended with status 3$"):
            ended.ask({})
        self.assertFalse(ended.alive)
        silent = self.arm("time.sleep(60)")
        with self.assertRaisesRegex(Failed, "^test: no answer in 0 s$"):
            silent.ask({}, timeout=0.2)
        self.assertFalse(silent.alive)


RESULT = {
    "date": "2026-12-01", "rounds": 3, "seconds": 12, "size": "gpu",
    "machine": {"gpu": "NVIDIA H200", "driver": "580", "cpu": "Xeon", "cpu_model": "207", "cores": 16, "system": "Linux",
                "python": "3.12"},
    "versions": {"forebay": "0.1.0", "torch": "2.11"}, "skipped": {"cupy": "No module named 'cupy'"},
    "flops_per_ms": {"bf16": {"forebay": 7.8e11, "torch": 7.7e11}},
    "rows": [
        {"id": "image", "text": "to f16", "dtype": "u8", "shape": [1024, 3], "target": 1.05, "floor_ms": 0.1, "ours_ms": 0.104,
         "ratio": 1.04, "peers": {"torch": 2.0, "JAX": 0.144}, "not_timed": {}, "steps": ["cast"]},
        {"id": "rowstd", "text": "rows", "dtype": "f32", "shape": [8], "target": 1.03, "floor_ms": 0.1, "ours_ms": 0.2,
         "ratio": 2.0, "peers": {}, "not_timed": {"torch": "wrong result"}, "steps": ["normalize"]},
    ],
}


class Report(unittest.TestCase):
    def test_markdown(self):
        text = report.markdown(RESULT)
        self.assertIn("# NVIDIA H200, 2026-12-01", text)
        self.assertIn("| image | to f16; u8 1024 x 3 | 0.100 | 0.104 | 1.04 | 1.05 ok | JAX 0.144 | 1.44 | 1.38 |", text)
        self.assertIn("| rowstd | rows; f32 8 | 0.100 | 0.200 | 2.00 | 1.03 **missed** | none |  |  |", text)
        self.assertIn("| image | 0.104 | 0.144 | 2.00 |", text)
        self.assertIn("bf16 forebay 780, torch 770", text)
        self.assertIn("- cupy was skipped: No module named 'cupy'.", text)
        self.assertIn("- rowstd, torch was not timed: wrong result.", text)
        self.assertIn("- image: cast", text)

    def test_on_a_cpu_the_target_is_the_best_peer(self):
        rows = [{**RESULT["rows"][0], "id": "chain_1", "target": 0},
                {**RESULT["rows"][0], "id": "chain_12", "target": 0, "ours_ms": 0.156}]
        text = report.markdown({**RESULT, "size": "cpu", "rows": rows})
        self.assertIn("| 0.104 | 1.04 | ahead | JAX 0.144 |", text)
        self.assertIn("| 0.156 | 1.04 | **behind** | JAX 0.144 |", text)
        self.assertIn("chain_12 takes 1.500 times as long as chain_1.", text)

    def test_numbers_have_three_digits(self):
        self.assertEqual([report.number(ms) for ms in (123.4, 12.34, 1.234, 0.1234, 0.01234)],
                         ["123", "12.3", "1.23", "0.123", "0.0123"])


if __name__ == "__main__":
    unittest.main()
