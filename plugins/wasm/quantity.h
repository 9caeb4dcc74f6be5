// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include <gantry/error.h>

namespace gantry::wasm {

/// Bytes as Kubernetes writes them: digits, and behind them nothing, Ki, Mi, Gi, Ti, k, M, G or T.
/// Source: Kubernetes, resource quantities. Errors: kInvalidArgument: it is none, it is 0, or
/// more than INT64_MAX. Thread: any. Blocks: never.
Result<uint64_t> ParseQuantity(std::string_view text);

}  // namespace gantry::wasm
