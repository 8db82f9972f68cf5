"""Runs the tests of a folder, several at a time:  run_python_tests.py FOLDER [NAME ...]

NAME is a module, a class or a test, as test_run.Inputs.test_by_name. The tests call the built command line.
"""

import argparse
import concurrent.futures
import io
import os
import pathlib
import sys
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent


def names_of(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from names_of(test)
        else:
            yield test.id()


def run(name):
    """(name, passed, skipped, seconds, what was printed)"""
    start, printed = time.monotonic(), io.StringIO()
    result = unittest.TextTestRunner(printed).run(unittest.defaultTestLoader.loadTestsFromName(name))
    return name, result.wasSuccessful(), bool(result.skipped), time.monotonic() - start, printed.getvalue()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="a folder beside this file")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--totals", help="a file to append \"passed failed\" to")
    options = parser.parse_args()
    folder = HERE / options.folder
    sys.path[:0] = [str(folder), str(HERE / "e2e")]  # what calls the command line is in e2e
    loader = unittest.defaultTestLoader
    suite = loader.loadTestsFromNames(options.names) if options.names else loader.discover(str(folder))
    for error in loader.errors:
        print(error)
    passed, failed, skipped = 0, len(loader.errors), 0
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        for name, good, left_out, seconds, printed in pool.map(run, names_of(suite)):
            passed, failed, skipped = passed + (good and not left_out), failed + (not good), skipped + left_out
            if not good:
                print(printed)
            if seconds > 10:
                print(f"{name}: {seconds:.0f} s", flush=True)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    if options.totals:
        with open(options.totals, "a") as out:
            out.write(f"{passed} {failed}\n")
    sys.exit(failed > 0 or passed == 0)


if __name__ == "__main__":
    main()
