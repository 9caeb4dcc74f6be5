// SPDX-License-Identifier: Apache-2.0
//
// What all namespaces of a containerd have in their content stores, over gRPC.
// Source: containerd 2.3, api/services/{namespaces,content}/v1.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include <gantry/error.h>

namespace gantry::wasm::fetch {

/// Gives each digest to `take`, one of several namespaces several times; an error of it ends the
/// call with it. Errors: kUnavailable: nobody listens at `address`; kDeadlineExceeded.
/// Thread: one. Blocks: up to `limit`.
Status ListContent(const std::string& address, std::chrono::milliseconds limit,
                   const std::function<Status(std::string_view digest)>& take);

}  // namespace gantry::wasm::fetch
