"""Every verb on malformed files:  run_errors.py [--tenon BIN]

Each verb that reads what is wrong with a file of make_bad_files.py must end within 10 seconds and 1 GiB with status 1, one
sentence on stderr, the one of messages.txt, and no output file. Files that are merely odd must load. --update writes
messages.txt anew; read the difference before you keep it.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MESSAGES = HERE / "messages.txt"
VERBS = {"all": ("show", "run", "grad", "convert", "compile"), "run": ("run",), "weights": ("run", "grad", "convert", "compile"),
         "operators": ("show", "run", "grad", "compile"), "compute": ("run", "grad", "compile"), "execute": ("run", "compile")}
SECONDS, KILOBYTES = 10, 1 << 20


def arguments(verb, file, out):
    return {"show": ["show", file], "run": ["run", file], "grad": ["grad", file, "-o", out], "convert": ["convert", file, out],
            "compile": ["compile", file, "-o", out]}[verb]


def measured(command):
    """Runs it: status (negative: a signal), standard error, seconds and the greatest resident size in KB."""
    with tempfile.TemporaryFile() as error:
        start = time.monotonic()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=error)
        timer = threading.Timer(2 * SECONDS, process.kill)
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        error.seek(0)
        return process.returncode, error.read().decode(errors="replace"), time.monotonic() - start, usage.ru_maxrss


def mistakes(status, error, seconds, kilobytes, wanted):
    lines = [line for line in error.splitlines() if line.strip()]
    if status != wanted:
        yield f"status {status}, expected {wanted}"
    if seconds > SECONDS:
        yield f"took {seconds:.1f} s"
    if kilobytes > KILOBYTES:
        yield f"took {kilobytes >> 10} MiB"
    if wanted == 1 and (len(lines) != 1 or not lines[0].startswith("tenon: ")):
        yield f"{len(lines)} lines on stderr, expected one sentence"
    if "internal error" in error:
        yield "blames Tenon"
    if any(ord(c) < 32 and c != "\n" for c in error):
        yield "control characters on stderr"


def read_messages():
    """(file, verb) -> message. A line is: file, verbs and message, between tabs."""
    messages = {}
    for line in MESSAGES.read_text().splitlines() if MESSAGES.exists() else []:
        name, verbs, message = line.split("\t")
        messages.update({(name, verb): message for verb in verbs.split(",")})
    return messages


def write_messages(messages):
    lines = {}
    for (name, verb), message in messages.items():
        lines.setdefault((name, message), []).append(verb)
    text = (f"{name}\t{','.join(verbs)}\t{message}\n" for (name, message), verbs in sorted(lines.items()))
    MESSAGES.write_text("".join(text))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tenon", default=str(ROOT / "build" / "bin" / "tenon"))
    parser.add_argument("--only", nargs="*", default=[], help="only files whose name contains one of these")
    parser.add_argument("--print", action="store_true", help="print every message")
    parser.add_argument("--update", action="store_true", help="write messages.txt anew")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--totals", help="a file to append \"passed failed\" to")
    options = parser.parse_args()
    passed = failed = 0
    wanted, said = read_messages(), {}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        subprocess.run([sys.executable, HERE / "make_bad_files.py", folder], check=True, stdout=subprocess.DEVNULL)
        cases = []
        for name, entry in json.loads((folder / "index.json").read_text()).items():
            if options.only and not any(word in name for word in options.only):
                continue
            bad = entry["verdict"] == "bad"
            cases += [(name, entry["mistake"], bad, verb) for verb in (VERBS[entry["verb"]] if bad else ("show", "convert"))]

        def check(number, name, bad, verb):
            out = folder / f"{number}.out.pt2"
            result = measured([options.tenon, *map(str, arguments(verb, folder / name, out))])
            found = list(mistakes(*result, 1 if bad else 0))
            message = result[1].strip().replace(str(folder / name), "FILE").replace(str(out), "OUT")
            if bad and not options.update and message != wanted.get((name, verb)):
                found.append(f"expected: {wanted.get((name, verb))}")
            if out.exists():
                out.unlink()
                if bad:
                    found.append("left an output file")
            return message, found

        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            answers = [pool.submit(check, i, name, bad, verb) for i, (name, _, bad, verb) in enumerate(cases)]
            for (name, mistake, bad, verb), answer in zip(cases, answers):
                message, found = answer.result()
                if bad:
                    said[name, verb] = message
                if options.print or found:
                    print(f"{verb} {name} ({mistake}): {'; '.join(found) or 'ok'}\n    {message[:500]}", flush=True)
                passed, failed = passed + (not found), failed + bool(found)
    if options.update:
        write_messages({**wanted, **said} if options.only else said)
    print(f"{passed} passed, {failed} failed")
    if options.totals:
        with open(options.totals, "a") as file:
            file.write(f"{passed} {failed}\n")
    sys.exit(failed > 0 or passed == 0)


if __name__ == "__main__":
    main()
