"""Writes differences.txt anew from what test_dialect printed while the file had no rows:  write_differences.py LOG"""

import pathlib
import re
import sys

ROW = re.compile(r"\n(\S+) (aten|core) differs:\n  ours:    (.*)(?:\n  PyTorch: (.*))?")
HEAD = "# Programs whose decomposition differs from PyTorch's in a letter or more: name, dialect, the first difference.\n"


def called(line):
    """The operator of a printed line, or what the line names."""
    operator = re.search(r"torch\.ops\.([\w.]+)", line)
    return operator[1].removeprefix("aten.").removesuffix(".default") if operator else line.split(" = ")[0].split(":")[0]


def renumbered(ours, theirs):
    """Whether the same call has a name or a type with other numbers."""
    (name, call), (other, same) = (line.split(";")[0].rpartition(" = ")[::2] for line in (ours, theirs))
    unnumbered = [re.sub(r"_int\b|_int(?=_\d)|_?\d+", "", text) for text in (name, other)]
    return call == same and name != other and unnumbered[0] == unnumbered[1]


def reason(ours, theirs):
    if theirs is None:
        return f"refused here: {ours}"
    if ours.startswith("Range constraints:"):
        return "PyTorch's trace brings in a symbol that no size of the program has"
    if "higher_order" in theirs and ours.replace("[", "(").replace("]", ")") == theirs.replace("[", "(").replace("]", ")"):
        return "PyTorch shows as a tuple what files hold as a list"
    if renumbered(ours, theirs):
        return f"other numbers in names or symbols from {called(theirs)} on, which PyTorch counts while it traces"
    if called(ours) == called(theirs):
        return f"other arguments or uses at {called(theirs)}"
    return f"{called(ours)} here, {called(theirs)} in PyTorch"


rows = [f"{name} {dialect} {reason(ours, theirs or None)}" for name, dialect, ours, theirs in ROW.findall(pathlib.Path(sys.argv[1]).read_text())]
(pathlib.Path(__file__).parent / "differences.txt").write_text(HEAD + "\n".join(sorted(rows)) + "\n")
print(len(rows), sum(" aten " in row for row in rows))
