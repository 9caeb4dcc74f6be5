// SPDX-License-Identifier: Apache-2.0
//
// A containerd's store, over gRPC on its UNIX socket.
// Source: containerd 2.3, api/services/{containers,images,content}/v1; pkg/namespaces/grpc.go.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <gantry/error.h>

#include "plugins/wasm/fetch/store.h"

namespace gantry::wasm::fetch {

/// `address`: the socket's absolute path. `limit`: until then all calls have to be done. Errors of
/// the store's calls name the socket: kUnavailable: nobody listens there, or containerd has ended.
/// Thread: one. Blocks: never; the store's calls, up to `limit`.
std::unique_ptr<Store> OpenContainerdStore(const std::string& address, const std::string& ns,
                                           std::chrono::milliseconds limit);

}  // namespace gantry::wasm::fetch
