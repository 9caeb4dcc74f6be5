// SPDX-License-Identifier: Apache-2.0
#pragma once

// The compiler for what gantry_wasm_engine.h runs: a static library in Rust
// (plugins/wasm/engine/compile), never in one program with the engine's. It works in the
// calling thread and starts none.

#include <stddef.h>
#include <stdint.h>

#include "gantry_wasm_engine.h"

#ifdef __cplusplus
extern "C" {
#endif

// NOLINTBEGIN(readability-identifier-naming): names as C has them.

// What an artifact made here needs of who loads it, as one line without spaces: engine and
// exact version, format, a hash of configuration and of this processor's features. Nodes or
// builds whose lines differ share no artifact. Static.
const char* gantry_wasm_compiler(void);

// Compiles the module or component `bytes`, which may come from anybody, and writes the
// artifact to the descriptor `output`. `kind` is set to a gantry_wasm_kind. Returns
// GANTRY_WASM_OK, GANTRY_WASM_INVALID where it is nothing that could be run, or
// GANTRY_WASM_SYSTEM where the artifact cannot be written; `why` then is a sentence, cut to
// its size, that ends with a zero byte. Memory is about 20 MB and 40 times `size`; where
// there is none the process aborts.
int gantry_wasm_compile(const uint8_t* bytes, size_t size, int output, uint32_t* kind, char* why,
                        size_t why_size);

// NOLINTEND(readability-identifier-naming)

#ifdef __cplusplus
}
#endif
