# make setup | build | test | demo | bench, with PRESET=default (all that is found), cpu, asan or tsan.
PRESET ?= default
kind := $(if $(filter default,$(PRESET)),full,core)
tools := .deps-$(kind)/bin
export PATH := $(CURDIR)/$(tools):$(PATH)

.PHONY: setup build test demo install clean
build: setup
	@test -e build/$(PRESET)/build.ninja || cmake --preset $(PRESET)
	@cmake --build --preset $(PRESET)
setup:
	@cmake/setup.sh $(kind)
test: build
	@ctest --preset $(PRESET)
demo: build
	@OMP_WAIT_POLICY=PASSIVE build/$(PRESET)/examples/digits/digits --accuracy 0.93
install: build
	@cmake --install build/$(PRESET) --prefix $(or $(PREFIX),build/$(PRESET)/install)
clean:
	rm -rf build/$(PRESET)
