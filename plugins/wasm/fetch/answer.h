// SPDX-License-Identifier: Apache-2.0
//
// What gantry-wasm-fetch answers: one line of JSON,
//   {"platform":{"os":"wasip1","architecture":"wasm"},
//    "layers":[{"mediaType":"application/wasm","digest":"sha256:...","size":1234}],
//    "module":{"mediaType":"application/wasm","digest":"sha256:...","size":1234}}
// without "module" where the program is a file; of what the store has, how many digests were
// written,
//   {"digests":1234};
// or
//   {"error":{"code":"NOT_FOUND","message":"..."}}.
// Thread: any. Blocks: never.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <gantry/error.h>

#include "plugins/wasm/fetch/module_of.h"

namespace gantry::wasm::fetch {

/// With `kMaxLayers` layers of long media types there is room left.
inline constexpr size_t kMaxAnswerBytes = size_t{1} << 20;

/// With its newline. Media types and messages are cut.
std::string AnswerText(const Result<ImageAnswer>& answer);

std::string ErrorText(const Error& error);

/// The answer, or the error that it is. Errors: kInternal: it is none.
Result<ImageAnswer> ReadAnswer(std::string_view line);
Result<size_t> ReadDigestsAnswer(std::string_view line);

}  // namespace gantry::wasm::fetch
