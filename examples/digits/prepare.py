"""Turns the digits' CSV into .npy files: prepare.py mnist_5k.csv.gz FOLDER.

A line of the CSV is the 784 pixels of a 28 x 28 image and its digit; 5,000 lines, in the order of the digits. Every
tenth image of each digit is held out: test_*.npy, 500 images; train_*.npy has the other 4,500.
"""

import csv
import gzip
import pathlib
import struct
import sys


def write_npy(path, kind, shape, data):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)


def main():
    source, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    images = {"train": [], "test": []}
    labels = {"train": [], "test": []}
    seen = [0] * 10
    with gzip.open(source, "rt", newline="") as lines:
        for number, row in enumerate(csv.reader(lines), 1):
            if len(row) != 785:
                sys.exit(f"{source}:{number}: {len(row)} columns; 784 pixels and a digit are needed")
            label = int(float(row[784]))
            part = "test" if seen[label] % 10 == 9 else "train"
            seen[label] += 1
            images[part].append(bytes(int(float(pixel)) for pixel in row[:784]))
            labels[part].append(label)
    for part in images:
        count = len(labels[part])
        write_npy(folder / f"{part}_images.npy", "|u1", (count, 28, 28), b"".join(images[part]))
        write_npy(folder / f"{part}_labels.npy", "<i8", (count,), struct.pack(f"<{count}q", *labels[part]))


main()
