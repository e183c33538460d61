# The two commands of the README, and the steps they are made of. CMake does the building.
BUILD := build
CHECKED := build-sanitize
JOBS := $(shell nproc)
CONFIGURE := cmake -G Ninja $(if $(shell command -v ccache),-DCMAKE_C_COMPILER_LAUNCHER=ccache)

.PHONY: build deps demo check quick sanitize fuzz install bundle clean

build: $(BUILD)/build.ninja
	ninja -C $(BUILD)

$(BUILD)/build.ninja:
	$(CONFIGURE) -S . -B $(BUILD)

deps:
	scripts/install-deps.sh

# Compiles and runs an example on real input; shows its plan and its timing. Of the build it is the command alone.
demo: deps
	$(MAKE) $(BUILD)/build.ninja
	ninja -C $(BUILD) texo
	scripts/demo.sh $(BUILD)/driver/texo

# Every test: the whole of them on the build that people use, and those that need no LLVM again under
# the address and undefined-behaviour sanitizers, the fuzzers among them; there the random tests run
# short, and what reads sources alone does not.
check:
	scripts/install-deps.sh tests
	$(CONFIGURE) -S . -B $(BUILD)
	$(MAKE) build
	$(MAKE) sanitize
	ctest --test-dir $(CHECKED) -j$(JOBS) --output-on-failure -E '_(long|many)$$|^(structure|format)/'
	ctest --test-dir $(BUILD) -j$(JOBS) --output-on-failure

quick:
	$(MAKE) build
	ctest --test-dir $(BUILD) -j$(JOBS) -L quick --output-on-failure

sanitize: $(CHECKED)/build.ninja
	ninja -C $(CHECKED)

$(CHECKED)/build.ninja:
	$(CONFIGURE) -S . -B $(CHECKED) -DCMAKE_C_COMPILER=clang-22 -DCMAKE_BUILD_TYPE=Debug \
	  "-DCMAKE_C_FLAGS_DEBUG=-O2 -gline-tables-only" -DTEXO_SANITIZE=ON -DTEXO_LLVM=OFF

# The fuzzers alone, as in a check.
fuzz: sanitize
	ctest --test-dir $(CHECKED) -j$(JOBS) -R '^fuzz/' --output-on-failure

# The command, both libraries, their headers, and what pkg-config and CMake want to know of them.
# PREFIX is /usr/local; DESTDIR is honoured.
install: build
	cmake --install $(BUILD) $(if $(PREFIX),--prefix $(PREFIX))

# A folder and a .tar.xz that run on a machine with libc alone, in BUILD/out.
bundle: $(BUILD)/build.ninja
	scripts/bundle.sh $(BUILD) $(BUILD)/out

clean:
	rm -rf $(BUILD) $(CHECKED)
