# Thin over CMake and Ninja. What the targets need on a fresh Debian machine, scripts/setup installs.
#   make          an optimised build under build/; the command line is build/bin/tenon
#   make demo     trains a network of handwritten digits, compiles it and calls it from C
#   make install  libtenon, its headers and the command line under PREFIX (/usr/local), below DESTDIR where that is given
#   make test     everything: C++ tests, also under sanitizers, fuzzing, command lines, real PyTorch in both directions
#   make test-long  the whole sweep under sanitizers, races between threads, valgrind, repetitions
#   make quick    the C++ tests alone
#   make record   recordings of real PyTorch made anew (they are committed)
#   make fuzz     fuzzes every target for MINUTES (default 1) minutes
#   make bench    build time, opening, eager calls; models and training steps beside the other engines (docs/performance.md)
#   make format   formats the C++ sources; format-check only looks
.PHONY: all install demo test test-long quick record fuzz bench format format-check clean configure
.DEFAULT_GOAL := all

all: configure
	@ninja -C build

configure: build/build.ninja
build/build.ninja:
	@scripts/setup system
	@cmake -S . -B build -G Ninja

PREFIX ?= /usr/local
install: configure
	@ninja -C build tenon tenon_static tenon_shared
	@DESTDIR=$(DESTDIR) cmake --install build --prefix $(PREFIX)

demo: configure
	@ninja -C build tenon tenon_runtime
	@scripts/demo

test:
	@scripts/test

test-long:
	@scripts/test-long

quick: configure
	@ninja -C build
	@scripts/run_cpp_tests build

record:
	@scripts/record

fuzz:
	@scripts/fuzz $$(( $(or $(MINUTES),1) * 60 ))

bench: configure
	@scripts/setup bench
	@bench/run

format:
	@git ls-files '*.cpp' '*.hpp' '*.h' '*.c' | xargs clang-format -i

format-check:
	@git ls-files '*.cpp' '*.hpp' '*.h' '*.c' | xargs clang-format --dry-run --Werror

clean:
	@rm -rf build build-asan build-tsan build-clean
