// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/fetch/containerd_digests.h"

#include <memory>
#include <utility>

#include <gantry/format.h>

#include "plugins/wasm/fetch/channel.h"
#include "proto/containerd/content.grpc.pb.h"
#include "proto/containerd/namespaces.grpc.pb.h"

namespace gantry::wasm::fetch {
namespace {

namespace content = containerd::services::content::v1;
namespace namespaces = containerd::services::namespaces::v1;

using SystemTime = std::chrono::system_clock::time_point;

Status ListOne(content::Content::Stub& stub, const std::string& address, const std::string& ns,
               SystemTime deadline, const std::function<Status(std::string_view digest)>& take) {
  grpc::ClientContext context;
  context.set_deadline(deadline);
  context.AddMetadata("containerd-namespace", ns);
  const auto reader = stub.List(&context, content::ListContentRequest());
  content::ListContentResponse part;
  while (reader->Read(&part)) {
    for (const content::Info& blob : part.info()) {
      if (Status taken = take(blob.digest()); !taken) {
        context.TryCancel();
        static_cast<void>(reader->Finish());  // It says that it was cancelled.
        return taken;
      }
    }
  }
  return StatusOf(reader->Finish(), address, ns, "list its content");
}

}  // namespace

Status ListContent(const std::string& address, std::chrono::milliseconds limit,
                   const std::function<Status(std::string_view digest)>& take) {
  const SystemTime deadline = std::chrono::system_clock::now() + limit;
  const auto channel = ChannelTo(address);
  namespaces::Namespaces::Stub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(deadline);
  namespaces::ListNamespacesResponse all;
  GANTRY_CHECK_OK(StatusOf(stub.List(&context, namespaces::ListNamespacesRequest(), &all), address,
                           "", "list its namespaces"));
  content::Content::Stub contents(channel);
  for (const namespaces::Namespace& one : all.namespaces()) {
    GANTRY_CHECK_OK(ListOne(contents, address, one.name(), deadline, take));
  }
  return {};
}

}  // namespace gantry::wasm::fetch
