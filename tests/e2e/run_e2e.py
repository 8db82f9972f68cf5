"""Runs the tests of this folder:  run_e2e.py [NAME ...]  They call the built command line and need NumPy, but no PyTorch."""

import argparse
import pathlib
import sys
import unittest


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="tests, as test_run.Inputs.test_by_name")
    parser.add_argument("--totals", help="a file to append \"passed failed\" to")
    options = parser.parse_args()
    folder = str(pathlib.Path(__file__).resolve().parent)
    sys.path.insert(0, folder)
    loader = unittest.defaultTestLoader
    suite = loader.loadTestsFromNames(options.names) if options.names else loader.discover(folder)
    result = unittest.TextTestRunner(verbosity=1).run(suite)
    failed = len(result.failures) + len(result.errors)
    passed = result.testsRun - failed - len(result.skipped)
    print(f"{passed} passed, {failed} failed")
    if options.totals:
        with open(options.totals, "a") as out:
            out.write(f"{passed} {failed}\n")
    sys.exit(failed > 0 or passed == 0)


if __name__ == "__main__":
    main()
