// SPDX-License-Identifier: Apache-2.0
//
// What the annotations of a container say: whether it is a WebAssembly program, and how it is run.
#pragma once

#include <cstdint>
#include <string>

#include <gantry/error.h>
#include <gantry/toolkit/oci/spec.h>

#include "plugins/wasm/options.h"

namespace gantry::wasm {

/// What annotations say of the program.
enum class Claim {
  /// Nothing: its first bytes tell.
  kNone,
  /// It is one: `run.oci.handler` (wasm, wasmtime, wasmedge) or `module.wasm.image/variant:
  /// compat`.
  kWasm,
  /// It is one where its name ends in .wasm: wasm-smart, compat-smart.
  kSmart,
  /// It is a sandbox's own process, which is none.
  kNative,
};

/// Errors: kInvalidArgument, kUnimplemented: a handler that is another one, with its annotation.
/// Source: crun 1.21, src/libcrun/custom-handler.c and handlers/handler-utils.c.
Result<Claim> ClaimOf(const oci::Spec& spec);

/// How it is run.
struct Settings {
  /// Most bytes of a linear memory; 0: as many as the engine gives.
  uint64_t memory = 0;
  bool network = true;
  /// ADDRESS:PORT of a proxy; empty: the engine's own.
  std::string listen;
  /// The exported function to call; empty: none is named.
  std::string entry;
};

/// Of `process`, the container's or an exec's: what its variable GANTRY_WASM_LISTEN says, then the
/// annotations `io.gantry.wasm/...`, then the limit of the container's memory, then `options`.
/// Errors: kInvalidArgument with the annotation and its value, also of one that there is not.
Result<Settings> SettingsOf(const oci::Spec& spec, const oci::ProcessSpec& process,
                            const Options& options);

/// `1.2.3.4:80` or `[::]:80`. Errors: kInvalidArgument.
Status CheckListen(const std::string& text);

}  // namespace gantry::wasm
