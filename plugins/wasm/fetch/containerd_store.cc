// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/fetch/containerd_store.h"

#include <utility>

#include <grpcpp/grpcpp.h>

#include <gantry/format.h>

#include "plugins/wasm/fetch/channel.h"
#include "proto/containerd/containers.grpc.pb.h"
#include "proto/containerd/content.grpc.pb.h"
#include "proto/containerd/images.grpc.pb.h"

namespace gantry::wasm::fetch {
namespace {

namespace containers = containerd::services::containers::v1;
namespace content = containerd::services::content::v1;
namespace images = containerd::services::images::v1;

class ContainerdStore : public Store {
 public:
  ContainerdStore(const std::string& address, std::string ns, std::chrono::milliseconds limit)
      : address_(address),
        ns_(std::move(ns)),
        deadline_(std::chrono::system_clock::now() + limit),
        channel_(ChannelTo(address)),
        containers_(channel_),
        images_(channel_),
        content_(channel_) {}

  Result<std::string> ImageOf(const std::string& container) override {
    containers::GetContainerRequest request;
    request.set_id(container);
    containers::GetContainerResponse response;
    grpc::ClientContext context;
    Prepare(context);
    GANTRY_CHECK_OK(Check(containers_.Get(&context, request, &response),
                          Format("find container '{}'", container)));
    return std::move(*response.mutable_container()->mutable_image());
  }

  Result<Blob> TargetOf(const std::string& image) override {
    images::GetImageRequest request;
    request.set_name(image);
    images::GetImageResponse response;
    grpc::ClientContext context;
    Prepare(context);
    GANTRY_CHECK_OK(Check(images_.Get(&context, request, &response),
                          Format("find image '{}'", image.substr(0, 200))));
    const content::Descriptor& target = response.image().target();
    if (target.size() < 0) {
      return Fail(Code::kInvalidArgument, "find image '{}': its target has a size of {}",
                  image.substr(0, 200), target.size());
    }
    return Blob{target.media_type(), target.digest(), static_cast<uint64_t>(target.size())};
  }

  Status Read(const std::string& digest, uint64_t most, const Sink& sink) override {
    content::ReadContentRequest request;
    request.set_digest(digest);
    request.set_size(static_cast<int64_t>(most));
    grpc::ClientContext context;
    Prepare(context);
    const auto reader = content_.Read(&context, request);
    content::ReadContentResponse part;
    while (reader->Read(&part)) {
      if (Status taken = sink(part.data()); !taken) {
        context.TryCancel();
        static_cast<void>(reader->Finish());  // It says that it was cancelled.
        return taken;
      }
    }
    return Check(reader->Finish(), Format("read blob '{}'", digest));
  }

 private:
  void Prepare(grpc::ClientContext& context) const {
    context.set_deadline(deadline_);
    context.AddMetadata("containerd-namespace", ns_);
  }

  Status Check(const grpc::Status& status, const std::string& what) const {
    return StatusOf(status, address_, ns_, what);
  }

  const std::string address_;
  const std::string ns_;
  const std::chrono::system_clock::time_point deadline_;
  const std::shared_ptr<grpc::Channel> channel_;
  containers::Containers::Stub containers_;
  images::Images::Stub images_;
  content::Content::Stub content_;
};

}  // namespace

std::unique_ptr<Store> OpenContainerdStore(const std::string& address, const std::string& ns,
                                           std::chrono::milliseconds limit) {
  return std::make_unique<ContainerdStore>(address, ns, limit);
}

}  // namespace gantry::wasm::fetch
