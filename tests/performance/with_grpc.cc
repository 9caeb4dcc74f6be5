// SPDX-License-Identifier: Apache-2.0
#include "tests/performance/with_grpc.h"

#include <gantry/toolkit/descriptors/unix_socket.h>

#include "tests/harness/host.h"

namespace gantry::bench {

WithGrpc::WithGrpc(Lab& lab) : lab_(lab), config_(e2e::ReadText(File())) {
  e2e::WriteText(File(), config_ + "grpc:\n  address: " + lab_.settings().grpc_address() +
                             "\n  containerd: " + lab_.settings().address() + "\n");
  lab_.EndGantry(lab_.Gantry("crun"));
}

WithGrpc::~WithGrpc() {
  instance_.reset();
  e2e::WriteText(File(), config_);
  lab_.EndGantry(lab_.Gantry("crun"));
}

Status WithGrpc::Start() {
  instance_ = std::make_unique<Instance>(lab_, lab_.Gantry("crun"));
  GANTRY_CHECK_OK(instance_->Run({"sleep", "100000"}));
  const std::string address = lab_.settings().grpc_address();
  if (!e2e::Eventually([&address] { return ConnectUnix(address).has_value(); })) {
    return Fail(Code::kUnavailable, "nobody listens at '{}': see grpc.log and gantry.log", address);
  }
  return {};
}

}  // namespace gantry::bench
