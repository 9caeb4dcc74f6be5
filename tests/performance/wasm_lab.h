// SPDX-License-Identifier: Apache-2.0
//
// Where the rows of WebAssembly are measured: the lab's own gantry, whose handler `wasm` has the
// wasm backend, and the stock shim with crun, which runs the very same modules with WasmEdge. The
// modules are files of the lab's root and of an image.
#pragma once

#include <string>
#include <vector>

#include <gantry/error.h>

#include "tests/performance/lab.h"

namespace gantry::bench {

/// tests/guests: one thing, that its first argument names.
inline constexpr const char* kWasmTool = "/tool.wasm";
/// An image with that alone.
inline constexpr const char* kWasmImage = "docker.io/library/wasm-tool:gantry";
/// crun runs a module as one where the container is annotated. gantry understands the same.
inline constexpr const char* kWasmAnnotation = "run.oci.handler";

/// `tool.wasm` ends at once with 0; says a word and ends; says a word and waits for days.
std::vector<std::string> WasmThatEnds();
std::vector<std::string> WasmThatSpeaks();
std::vector<std::string> WasmThatSleeps();

/// Why the rows cannot be measured; empty = they can.
std::string WithoutWasm(const Lab& lab);

/// What the peer needs and does not have; empty = it has it.
std::string WithoutWasmPeer();

/// The modules, in the lab's root. Again: nothing.
Status AddGuests(const Lab& lab);

/// containerd gets `kWasmImage`, for ctr and for CRI. Starts the lab's containerd.
Status ImportGuests(Lab& lab);

Side WasmSide(const Lab& lab);
Side WasmPeer(const Lab& lab);

}  // namespace gantry::bench
