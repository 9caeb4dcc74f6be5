// SPDX-License-Identifier: Apache-2.0
//
// gRPC to a containerd of this node. For gantry-wasm-fetch alone, which has gRPC's libraries.
#pragma once

#include <memory>
#include <string>

#include <grpcpp/grpcpp.h>

#include <gantry/error.h>

namespace gantry::wasm::fetch {

/// `address`: the absolute path of a UNIX socket. Blocks: never; nothing is connected yet.
std::shared_ptr<grpc::Channel> ChannelTo(const std::string& address);

/// What containerd said to `what`, as one of our errors that names its socket. `ns`: the namespace
/// that was asked in; empty: none.
Status StatusOf(const grpc::Status& status, const std::string& address, const std::string& ns,
                const std::string& what);

}  // namespace gantry::wasm::fetch
