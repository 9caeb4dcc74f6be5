// SPDX-License-Identifier: Apache-2.0
//
// How gantry-wasm-compile is asked.
//
//   gantry-wasm-compile describe   writes the line of gantry_wasm_compiler to its standard output
//   gantry-wasm-compile compile    compiles what is in kModule, a sealed file in memory, writes
//                                  the artifact to kArtifact and one line of JSON to kAnswer:
//                                  {"kind":"module"}, or
//                                  {"error":{"code":"INVALID_ARGUMENT","message":"..."}}
//
// It ends with 0 where it has answered, and with 1 where it could not.
#pragma once

namespace gantry::wasm::compile {

inline constexpr int kModule = 3;
inline constexpr int kArtifact = 4;
inline constexpr int kAnswer = 5;
/// The answer has no more bytes.
inline constexpr unsigned kMaxAnswer = 16384;

}  // namespace gantry::wasm::compile
