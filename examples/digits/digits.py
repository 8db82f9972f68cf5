"""Inputs and results of the digits network for `make demo`; needs nothing but Python.

digits.py inputs COUNT OUT.npz            the last COUNT digits as the network takes them
digits.py report SCORES.npz               the first digits with what the network says, and how many of all are right
digits.py loss SCORES.npz IN.npz OUT.npz  the cross-entropy of scores; OUT is IN with its gradient as tangent_output_0
"""

import array
import ast
import io
import math
import pathlib
import struct
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
CODES = {"|u1": "B", "<i8": "q", "<f4": "f"}


def read_npz(path):
    """{name: (sizes, flat values)} of arrays in C order."""
    out = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            data = archive.read(name)
            length, = struct.unpack_from("<H", data, 8)
            header = ast.literal_eval(data[10:10 + length].decode())
            values = array.array(CODES[header["descr"]])
            values.frombytes(data[10 + length:])
            out[name.removesuffix(".npy")] = (header["shape"], values)
    return out


def write_npz(path, arrays):
    with zipfile.ZipFile(path, "w") as archive:
        for name, (sizes, values) in arrays.items():
            descr = {code: descr for descr, code in CODES.items()}[values.typecode]
            header = repr({"descr": descr, "fortran_order": False, "shape": tuple(sizes)}).encode()
            header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
            out = io.BytesIO()
            out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + values.tobytes())
            archive.writestr(f"{name}.npy", out.getvalue())


def last_digits(count):
    digits = read_npz(HERE / "digits.npz")
    return digits["images"][1][-64 * count:], digits["labels"][1][-count:]


def inputs(count, path):
    images, _ = last_digits(count)
    write_npz(path, {"images": ((count, 1, 8, 8), array.array("f", (v / 16 for v in images)))})


def rows_of(path):
    (count, width), values = read_npz(path)["output_0"]
    return [values[width * i:width * (i + 1)] for i in range(count)]


def report(path, shown=8):
    rows = rows_of(path)
    images, labels = last_digits(len(rows))
    said = [row.index(max(row)) for row in rows]
    for y in range(8):
        print("  ".join("".join(2 * " .:*#"[min(images[64 * d + 8 * y + x] // 4, 4)] for x in range(8)) for d in range(shown)).rstrip())
    print("  ".join(f"{'is ' + str(labels[d]) + ', says ' + str(said[d]):16}" for d in range(shown)).rstrip())
    right = sum(a == b for a, b in zip(said, labels))
    print(f"{right} of {len(rows)} digits are read right")


def loss(scores, given, out):
    rows = rows_of(scores)
    _, labels = last_digits(len(rows))
    total, tangent = 0.0, array.array("f")
    for row, label in zip(rows, labels):
        top = max(row)
        powers = [math.exp(v - top) for v in row]
        total += math.log(sum(powers)) + top - row[label]
        tangent.extend((p / sum(powers) - (i == label)) / len(rows) for i, p in enumerate(powers))
    write_npz(out, read_npz(given) | {"tangent_output_0": ((len(rows), len(rows[0])), tangent)})
    print(f"cross-entropy {total / len(rows):.4f} (guessing gives {math.log(10):.4f})")


if __name__ == "__main__":
    verb, *arguments = sys.argv[1:]
    if verb == "inputs":
        inputs(int(arguments[0]), arguments[1])
    elif verb == "report":
        report(arguments[0])
    else:
        loss(*arguments)
