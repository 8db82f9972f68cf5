"""Runs the tests of this folder:  run_training.py [NAME ...]  They compare the built command line with real PyTorch."""

import argparse
import pathlib
import sys
import unittest


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="tests, as test_modes.Modes.test_the_mode_it_has_changes_nothing")
    parser.add_argument("--totals", help="a file to append \"passed failed\" to")
    options = parser.parse_args()
    folder = pathlib.Path(__file__).resolve().parent
    sys.path[:0] = [str(folder), str(folder.parent / "e2e")]
    loader = unittest.defaultTestLoader
    suite = loader.loadTestsFromNames(options.names) if options.names else loader.discover(str(folder))
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
