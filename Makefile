# make, make help: what there is. Needs a C compiler and make; the sanitizers, clang, python3 and a C++ compiler are
# used by `make check` if they are there, and named if they are not.
CC      ?= cc
CFLAGS  ?= -O2
JOBS    ?= 2
ARGS    ?=

# C++ compiler that belongs to CC, unless given.
ccname  := $(notdir $(firstword $(CC)))
CXX_OF  := $(if $(findstring clang,$(ccname)),$(subst clang,clang++,$(ccname)),$(if $(findstring gcc,$(ccname)),$(subst gcc,g++,$(ccname)),c++))
ifeq ($(origin CXX),default)
CXX     := $(CXX_OF)
endif

WARN    := -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wundef -Werror
OPENMP  := $(shell mkdir -p build; echo 'int main(void){return 0;}' > build/probe.c; \
             $(CC) -fopenmp build/probe.c -o build/probe 2>/dev/null && echo -fopenmp)

# Tests see the library compiled once, at the optimisation that users have; each file also compiles alone, because it
# includes the implementation unless the Makefile says that it stands elsewhere (tests/library.h). No -g here: it is a
# fourth of the time.
TESTS   := $(patsubst tests/%.c,%,$(wildcard tests/test_*.c))
TFLAGS   = -std=c99 -O1 $(WARN) -DSWA_NODISCARD=
LIBS    := -lm -lpthread $(OPENMP)
HEADERS := swa.h $(wildcard tests/*.h examples/*.h)
FRAMES  := -Wframe-larger-than=8192
SAN     := -fsanitize=address,undefined -fno-sanitize-recover=all

EXAMPLES := build/generate build/mla

# Everything in build/ goes stale when the compiler or the flags change.
stamp   := $(shell printf '%s\n' '$(CC) $(CFLAGS)' > build/flags.new; \
             cmp -s build/flags.new build/flags || cp build/flags.new build/flags)

# Parallel unless the caller has already said how.
jobs     = $(if $(findstring j,$(firstword -$(MAKEFLAGS))),,-j$(JOBS))
again    = $(MAKE) --no-print-directory $(jobs) CC='$(CC)' CXX='$(CXX)' CFLAGS='$(CFLAGS)'

help:           ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' Makefile
	@echo "  Variables: CC=clang CFLAGS='-O3 -march=native' ARGS='options of the program' JOBS=2"

run: build/generate  ## build and run the example: a small model writes through a ring of 64 tokens (ARGS='-h')
	./build/generate $(ARGS)

# What takes longest is begun first: the one that compiles a library of its own while the other core compiles the one
# that all tests link; the short ones fill the end.
LONG    := tiles model omp bits mla attention lists cache families trees index
LOGS    := $(LONG:%=build/test_%.log) build/compile.log build/readme.log build/examples.log build/fuzz.log \
             $(filter-out $(LONG:%=build/test_%.log),$(TESTS:%=build/%.log)) build/manual.log
ASANLOG := $(TESTS:%=build/%.asan.log)
test:           ## build and run all tests; the last line is `N passed, N failed, N skipped`
# Logs go first: one of yesterday must not speak for a test that no longer compiles.
	@rm -f $(LOGS)
	+-@$(again) -k $(LOGS)
	@sh tests/total.sh $(LOGS)

total:          # what the tests have said so far
	@sh tests/total.sh $(LOGS)

check:          ## everything that proves the library, in half an hour on two cores, and a table of it
	@bash tests/check.sh '$(MAKE)' '$(CC)' '$(JOBS)'

matrix:         ## every compiler, language, switch and machine to be had here (ARGS=word: those with it in the name)
	@JOBS='$(JOBS)' bash tests/check/matrix.sh $(ARGS)

sanitize:       ## the tests under ASan, UBSan, MSan, TSan and valgrind (ARGS=word: those with it in the name)
	@JOBS='$(JOBS)' bash tests/check/sanitize.sh $(ARGS)

emulate:        ## the tests on CPUs that this one is not: Arm and old x86-64 by qemu, AVX-512 by a model (ARGS='bits')
	@CC='$(CC)' JOBS='$(JOBS)' bash tests/check/emulate.sh $(ARGS)

fuzz:           ## the fuzz targets, a minute each (ARGS='seconds word')
	@CC='$(CC)' JOBS='$(JOBS)' bash tests/check/fuzz.sh $(ARGS)

soak:           ## ten minutes of random histories against attention written out (ARGS='seconds seed')
	@CC='$(CC)' bash tests/check/soak.sh $(ARGS)

coverage:       ## lines and branches of swa.h that the tests run
	@JOBS='$(JOBS)' bash tests/check/coverage.sh

weight:         ## what swa.h costs: seconds to compile, text, lines, by part (ARGS='0041486 -r 3': beside it)
	@python3 tests/check/weight.py $(ARGS)

switches:       ## each SWA_NO_...: it compiles, leaves nothing behind, the rest works (ARGS=-m: what it saves)
	@JOBS='$(JOBS)' python3 tests/check/switches.py $(ARGS)

benches:        ## every program of bench/ runs, on its smallest case (ARGS=word: those with it in the name)
	@CC='$(CC)' JOBS='$(JOBS)' bash tests/check/benches.sh $(ARGS)

registers:      ## does every kernel leave the vector registers clean, at every level? (ARGS='-c gcc -o=-O1')
	@JOBS='$(JOBS)' python3 tests/check/registers.py $(ARGS)

mutate:         ## break swa.h in 240 places, one by one: do the tests notice? (ARGS='-n 40 -t 300': a sample)
	@python3 tests/check/mutate.py -j '$(JOBS)' $(ARGS)

asan:           ## the tests under ASan and UBSan, every buffer of exactly the size asked for
	@rm -f $(ASANLOG)
	+-@$(again) -k $(ASANLOG)
	@sh tests/total.sh $(ASANLOG)

lint:           ## length of functions and lines, table of contents, every public function in some test
	@sh tests/lint.sh

examples: $(EXAMPLES)  ## build the two long ones: generate and mla (make test builds and runs the others)

bench: build/bench  ## measure the library beside this machine's limits (ARGS=--full: all cases)
	./build/bench $(ARGS)

bench-beside: build/bench  ## this library beside a commit's, in turn, five processes (ARGS='0041486 --threads 1')
	@CC='$(CC)' python3 bench/beside.py $(ARGS)

bench-mla: build/bench_mla  ## the whole block of DeepSeek-V3's sizes: products, paths, the choice between them
	./build/bench_mla $(ARGS)

bench-rewind: build/bench_rewind  ## tokens taken back: a ring with max_rollback beside checkpoints
	./build/bench_rewind

bench-lists: build/bench_lists  ## lists of keys beside a window of as many, and beside a mask (ARGS='-q word')
	./build/bench_lists $(ARGS)

bench-trees: build/bench_trees  ## a tree of drafts beside a chain of as many tokens (ARGS='-q word')
	./build/bench_trees $(ARGS)

mca:            ## the kernels' inner loops on CPUs that are not here: Neoverse, Apple, Intel (llvm-mca; ARGS='-o arm')
	@python3 bench/mca.py $(ARGS)

count:          ## instructions of whole calls on AArch64, under qemu (ARGS=word: those with it in the name)
	@sh bench/count.sh $(ARGS)

bench-generate: build/generate  ## tokens per second of generate.c on made models of a gigabyte (ARGS='q4_k f16')
	sh bench/generate.sh $(ARGS)

bench-peers:    ## the same beside other libraries, which are fetched from the registries
	sh bench/peers.sh $(ARGS)

figures:        ## pictures and the table of README, from bench/results
	python3 bench/plot.py
	python3 bench/table.py

same:           ## one text in every way there is: chunks, threads, instruction sets, AArch64; the sums are equal
	@CC='$(CC)' sh examples/same.sh

packaging:      ## install, dist, CMake, vcpkg and Conan, each tried from local files
	@bash tests/check/packaging.sh

VERSION := $(shell sed -n 's/^\#define SWA_VERSION_STRING *"\(.*\)".*/\1/p' swa.h)
PREFIX  ?= /usr/local
install:        ## the header and swa.pc (PREFIX=/usr/local, DESTDIR)
	mkdir -p $(DESTDIR)$(PREFIX)/include $(DESTDIR)$(PREFIX)/share/pkgconfig
	cp swa.h $(DESTDIR)$(PREFIX)/include/swa.h
	printf 'prefix=%s\nincludedir=$${prefix}/include\n\nName: swa\nDescription: sliding-window attention on CPU, one header\nVersion: %s\nCflags: -I$${includedir}\nLibs: -lm\n' \
	    '$(PREFIX)' '$(VERSION)' > $(DESTDIR)$(PREFIX)/share/pkgconfig/swa.pc

dist:           ## build/dist: the one file and its SHA-256
	mkdir -p build/dist
	cp swa.h build/dist/swa.h
	cd build/dist && sha256sum swa.h > swa.h.sha256 && cat swa.h.sha256

clean:          ## remove build/
	rm -rf build

# The library as all tests link it: with OpenMP, if there is one, for test_omp's sake. The others run on one thread.
build/swa.o: swa.h tests/library.h build/flags
	$(CC) -std=c99 $(CFLAGS) $(WARN) $(FRAMES) $(OPENMP) -DSWA_IMPLEMENTATION -x c -c tests/library.h -o $@
build/swa.asan.o: swa.h tests/library.h build/flags
	$(CC) -std=c99 -O1 -g $(SAN) -DSWA_IMPLEMENTATION -x c -c tests/library.h -o $@

# Apart from the linking, so that one core compiles tests while the other compiles the library.
build/test_%.o: tests/test_%.c $(HEADERS) build/flags
	$(CC) $(TFLAGS) -DSWA__IMPLEMENTED -c $< -o $@
build/test_%: build/swa.o build/test_%.o
	$(CC) build/test_$*.o build/swa.o -o $@ $(LIBS)
build/test_%.asan: tests/test_%.c build/swa.asan.o $(HEADERS)
	$(CC) $(TFLAGS) -g $(SAN) -DSWA__IMPLEMENTED $< build/swa.asan.o -o $@ $(LIBS)
# These run as long at most without -O1 as it takes: three seconds for the example's products, half a one for a test.
CALM    := quants families mla trees layers checksums misuse step masks bias vocab window helpers
$(CALM:%=build/test_%.o): TFLAGS += -O0
# The library's own threads: the bits again, and the latent block.
RUN     := OMP_NUM_THREADS=1
WORDS   :=
build/test_omp.o: tests/test_mla.c tests/test_bits.c $(HEADERS) build/flags
	$(CC) $(TFLAGS) -O0 $(OPENMP) -DSWA__IMPLEMENTED -include tests/test_mla.c -c tests/test_bits.c -o $@
build/test_omp.log: RUN = OMP_NUM_THREADS=3 OMP_WAIT_POLICY=passive
build/test_omp.log: WORDS = ragged bits_chunks bits_stateless bits_put_first

# SWA_BF16_TILE again, its tile kernels on a model of Intel's instructions (which wants a CPU with bf16 pairs).
build/test_tiles: tests/test_tile.c $(HEADERS) build/flags
	$(CC) $(TFLAGS) -DSWA_TILE_MODEL -DSWA_NO_AVX2 -DSWA_NO_MLA -DSWA_NO_INDEX -DSWA_NO_LISTS -DSWA_NO_MASKS \
	    -DSWA_NO_BLOB -DSWA_SMALL $< -o $@ $(LIBS)

# The fuzz targets over their corpus. The one that makes blobs with a right checksum looks inside.
FUZZ    := $(patsubst tests/fuzz/%.c,build/%,$(wildcard tests/fuzz/fuzz_*.c))
build/fuzz_%: tests/fuzz/fuzz_%.c $(wildcard tests/fuzz/*.h) build/swa.o $(HEADERS)
	$(CC) $(TFLAGS) -DSWA__IMPLEMENTED $< build/swa.o -o $@ $(LIBS)
# The example's products take four times as long to compile as they run here.
build/fuzz_gguf: TFLAGS += -O0
build/fuzz_blob: tests/fuzz/fuzz_blob.c tests/fuzz/fuzz.h $(HEADERS) build/flags
	$(CC) $(TFLAGS) -O0 -DSWA_NO_SIMD $< -o $@ $(LIBS)
build/fuzz.log: $(FUZZ) FORCE
	@$(RUN) sh tests/fuzz/replay.sh $(FUZZ) > $@ 2>&1 || echo "exit code $$?" >> $@

# A run that is stopped leaves what the tests have said until then.
.PRECIOUS: build/%.log build/%.asan.log
# A log is always written anew and never fails: tests/total.sh judges them all at the end.
build/%.log: build/% FORCE
	@$(RUN) ./build/$* $(WORDS) > $@ 2>&1 || echo "exit code $$?" >> $@
build/%.asan.log: build/%.asan FORCE
	@./build/$*.asan > $@ 2>&1 || echo "exit code $$?" >> $@
build/compile.log: build/swa.o tests/compile.sh FORCE
	@sh tests/compile.sh '$(CC)' '$(CXX)' build/swa.o > $@ 2>&1 || echo "exit code $$?" >> $@

build/manual.log: swa.h README.md FORCE
	@sh tests/manual.sh '$(CC)' > $@ 2>&1 || echo "exit code $$?" >> $@
build/readme.log: swa.h README.md FORCE
	@sh tests/readme.sh '$(CC)' > $@ 2>&1 || echo "exit code $$?" >> $@
build/examples.log: build/swa.o $(HEADERS) FORCE
	@$(RUN) sh tests/examples.sh '$(CC)' '$(CXX)' build/swa.o $(OPENMP) > $@ 2>&1 || echo "exit code $$?" >> $@

build/bench_mla: bench/mla.c $(wildcard bench/*.h) swa.h build/flags
	$(CC) -O2 bench/mla.c -o $@ -pthread -lm
build/bench_rewind: bench/rewind.c bench/common.h swa.h build/flags
	$(CC) -O2 bench/rewind.c -o $@ -pthread -lm
build/bench_lists: bench/lists.c $(wildcard bench/*.h) swa.h build/flags
	$(CC) -O2 bench/lists.c -o $@ -pthread -lm
build/bench_trees: bench/trees.c bench/common.h swa.h build/flags
	$(CC) -O2 bench/trees.c -o $@ -pthread -lm
build/bench: bench/bench.c $(wildcard bench/*.h) swa.h build/flags
	$(CC) -O2 bench/bench.c -o $@ -pthread -ldl -lm
build/%: examples/%.c $(HEADERS) build/flags
	$(CC) $(CFLAGS) $(OPENMP) $< -o $@ -lm

FORCE:
.PHONY: figures same packaging install dist help run test check matrix sanitize emulate fuzz soak coverage
.PHONY: mutate asan lint examples bench bench-beside bench-mla bench-rewind bench-lists bench-trees bench-generate bench-peers
.PHONY: registers benches weight switches mca count clean FORCE total
.SECONDARY:

# ---- beyond one process: what needs MPI, and the browser ----

RANKS   ?= 4
MPIRUN  ?= mpirun --oversubscribe
mpi:            ## one long context over RANKS=4 processes of Open MPI, bits compared with one (ARGS='--split 1')
	mpicc -std=c99 $(CFLAGS) examples/mpi_split.c -o build/mpi_split -lm
	$(MPIRUN) -n $(RANKS) build/mpi_split $(ARGS)
web:            ## examples/web as one page: build/web/index.html, to be opened in a browser (clang, lld, wasi-libc)
	@sh examples/web/build.sh build/web
	@echo "build/web/index.html holds everything: open it in a browser, no server is needed"
.PHONY: mpi web
