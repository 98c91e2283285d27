# make setup | build | test | demo | bench, with PRESET=default (all that is found), cpu, asan or tsan.
PRESET ?= default
PYTHON ?= python3
kind := $(if $(filter default,$(PRESET)),full,core)
tools := .deps-$(kind)/bin
export PATH := $(CURDIR)/$(tools):$(PATH)

.PHONY: setup configure build test bench demo install clean
build: configure
	@cmake --build --preset $(PRESET)
configure: setup
	@test -e build/$(PRESET)/build.ninja || cmake --preset $(PRESET)
setup:
	@cmake/setup.sh $(kind)
test: build
	@ctest --preset $(PRESET)
# The rows of bench/ on the CPU; peers are what $(PYTHON) has installed (bench/README.md). BENCH takes run.py's options.
bench: configure
	@cmake --build --preset $(PRESET) --target forebay_bench
	@$(PYTHON) bench/run.py --program build/$(PRESET)/bin/forebay_bench --device cpu --out build/$(PRESET)/bench_cpu $(BENCH)
demo: configure
	@cmake --build --preset $(PRESET) --target digits
	@OMP_WAIT_POLICY=PASSIVE build/$(PRESET)/examples/digits/digits --accuracy 0.93
install: build
	@cmake --install build/$(PRESET) --prefix $(or $(PREFIX),build/$(PRESET)/install)
clean:
	rm -rf build/$(PRESET)
