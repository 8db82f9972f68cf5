"""Writes the schemas of the operators that programs contain, one per line:  record_schemas.py FILE [SWEEP_FOLDER]

Every overload is listed of each operator that targets.py names or that has recordings, with its in-place twin.
"""

import pathlib
import sys
import zipfile

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import samples_of_quantization  # noqa: E402
import samples_of_vision  # noqa: E402, F401
from targets import FIRST_LIST, SECOND_LIST, THIRD_LIST  # noqa: E402


def names_of(folder):
    for path in sorted(folder.glob("*.zip")):
        with zipfile.ZipFile(path) as archive:
            yield from (name.removesuffix(".json") for name in archive.namelist() if name.endswith(".json"))


def main():
    out = pathlib.Path(sys.argv[1])
    wanted = [*FIRST_LIST, *SECOND_LIST, *THIRD_LIST]
    if len(sys.argv) > 2:
        wanted += names_of(pathlib.Path(sys.argv[2]))
    operators = {name.split(".")[0] for name in wanted}
    operators |= {name.removesuffix("_") for name in operators if not name.startswith("__")}
    operators |= {f"{name}_" for name in operators if not name.endswith("_")}
    samples_of_quantization.load_packages()
    lines = set()
    for name in operators:
        space, _, base = name.rpartition("::")
        packet = getattr(getattr(torch.ops, space or "aten"), base, None)
        if packet is None:
            continue
        for overload in packet.overloads():
            lines.add(str(getattr(packet, overload)._schema))
    if out.exists():  # of packages that are not installed what is there stays
        known = {line.split("(")[0].split(".")[0] for line in lines}
        lines |= {line for line in out.read_text().splitlines() if not line.startswith("aten::") and line.split("(")[0].split(".")[0] not in known}
    out.write_text("\n".join(sorted(lines)) + "\n")
    print(f"{len(lines)} schemas of {len(operators)} operators")


if __name__ == "__main__":
    main()
