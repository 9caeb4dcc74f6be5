// SPDX-License-Identifier: Apache-2.0
#pragma once

// The engine that runs WebAssembly, as the program of a container sees it: a static
// library in Rust (plugins/wasm/engine/run), of which a program may link only one.
// All is for one thread and for one run in a process; nothing starts a further thread.

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// NOLINTBEGIN(readability-identifier-naming): names as C has them.

enum gantry_wasm_kind {
  GANTRY_WASM_MODULE = 0,   // a core module with WASI preview 1
  GANTRY_WASM_COMMAND = 1,  // a component that exports wasi:cli/run
  GANTRY_WASM_PROXY = 2     // a component that exports wasi:http/incoming-handler
};

// A directory that the guest may see. All strings end with a zero byte.
struct gantry_wasm_preopen {
  const char* path;   // in this process's view
  const char* guest;  // what the guest knows it by
  uint8_t writable;   // 0: all below it can only be read
};

// What is to be run. Borrowed until gantry_wasm_prepare returns.
struct gantry_wasm_request {
  // A file that gantry_wasm_compile wrote and that never changes again: a sealed memfd.
  // It is machine code that is trusted, whoever hands it over has checked where it is from.
  int artifact;
  uint32_t kind;  // gantry_wasm_kind, of what the artifact is
  // Of a module: the exported function that is run, without parameters, and with no result
  // or with one i32, which is the exit code. Null: _start. Before any other one
  // `_initialize` is run where there is one. Of components: null.
  const char* entry;
  const char* const* args;  // with the program's name
  size_t arg_count;
  // NAME=value; what has no = is left out. The guest sees these and no others. Bytes that
  // are not UTF-8 reach modules as they are, and components as U+FFFD.
  const char* const* env;
  size_t env_count;
  const struct gantry_wasm_preopen* preopens;
  size_t preopen_count;
  uint64_t memory_bytes;  // at most, of one linear memory; 0: no limit but the guest's own
  uint8_t network;        // 0: the guest has no sockets
  int listener;           // of a proxy: a listening TCP socket, which it takes; else -1
};

enum gantry_wasm_error {
  GANTRY_WASM_OK = 0,
  GANTRY_WASM_INVALID = 1,  // the artifact, or the request
  GANTRY_WASM_MISSING = 2,  // an import that nothing here provides, or the entry
  GANTRY_WASM_SYSTEM = 3    // a directory, the socket or the kernel
};

// `struct` is to be written with it in C++, too: there is a function of that name.
struct gantry_wasm_run;

// Does all that can be done before the guest's first instruction: loads the artifact, finds
// its imports, makes its context and opens the directories. Returns a gantry_wasm_error;
// `why` then is a sentence, cut to its size, that ends with a zero byte. The guest reads
// descriptor 0 and writes 1 and 2 as they are when it runs.
int gantry_wasm_prepare(const struct gantry_wasm_request* request, struct gantry_wasm_run** run,
                        char* why, size_t why_size);

enum gantry_wasm_end {
  GANTRY_WASM_EXITED = 0,   // by itself, with `code`
  GANTRY_WASM_TRAPPED = 1,  // `why`: the trap and where it was, of at most 8 KiB
  GANTRY_WASM_FAILED = 2    // it could not be brought up: `why`
};

// Runs what was prepared to its end, in this thread, and may be called once. Returns a
// gantry_wasm_end; `code` is 0 to 255. A proxy ends only where its socket fails. The
// process is to end after this: nothing that the guest had is given back.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
int gantry_wasm_run(struct gantry_wasm_run* run, uint32_t* code, char* why, size_t why_size);
#pragma GCC diagnostic pop

// Name and version: "wasmtime 48.0.8". Static.
const char* gantry_wasm_engine(void);

// NOLINTEND(readability-identifier-naming)

#ifdef __cplusplus
}
#endif
