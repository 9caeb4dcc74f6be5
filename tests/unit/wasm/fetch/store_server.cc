// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/wasm/fetch/store_server.h"

#include <mutex>

#include <grpcpp/grpcpp.h>

#include "proto/containerd/containers.grpc.pb.h"
#include "proto/containerd/content.grpc.pb.h"
#include "proto/containerd/images.grpc.pb.h"
#include "proto/containerd/namespaces.grpc.pb.h"

namespace gantry::wasm::fetch {
namespace {

namespace containers = containerd::services::containers::v1;
namespace content = containerd::services::content::v1;
namespace images = containerd::services::images::v1;
namespace namespaces = containerd::services::namespaces::v1;

grpc::Status ToStatus(const Error& error) {
  return {static_cast<grpc::StatusCode>(error.code), error.message};
}

/// What the services have in common. gRPC calls them on threads of its own.
struct Shared {
  FakeStore& store;
  const std::string ns;
  std::mutex mutex;

  /// An error for calls of another namespace.
  grpc::Status Check(const grpc::ServerContext& context) const {
    const auto found = context.client_metadata().find("containerd-namespace");
    return found != context.client_metadata().end() && found->second == ns
               ? grpc::Status::OK
               : grpc::Status(grpc::StatusCode::NOT_FOUND, "nothing in this namespace");
  }
};

class Containers : public containers::Containers::Service {
 public:
  explicit Containers(Shared& shared) : shared_(shared) {}

  grpc::Status Get(grpc::ServerContext* context, const containers::GetContainerRequest* request,
                   containers::GetContainerResponse* response) override {
    const std::lock_guard lock(shared_.mutex);
    if (grpc::Status checked = shared_.Check(*context); !checked.ok()) {
      return checked;
    }
    const auto image = shared_.store.ImageOf(request->id());
    if (!image) {
      return ToStatus(image.error());
    }
    response->mutable_container()->set_image(*image);
    return grpc::Status::OK;
  }

 private:
  Shared& shared_;
};

class Images : public images::Images::Service {
 public:
  explicit Images(Shared& shared) : shared_(shared) {}

  grpc::Status Get(grpc::ServerContext* context, const images::GetImageRequest* request,
                   images::GetImageResponse* response) override {
    const std::lock_guard lock(shared_.mutex);
    if (grpc::Status checked = shared_.Check(*context); !checked.ok()) {
      return checked;
    }
    const auto target = shared_.store.TargetOf(request->name());
    if (!target) {
      return ToStatus(target.error());
    }
    auto& told = *response->mutable_image()->mutable_target();
    told.set_media_type(target->media_type);
    told.set_digest(target->digest);
    told.set_size(static_cast<int64_t>(target->size));
    return grpc::Status::OK;
  }

 private:
  Shared& shared_;
};

class Content : public content::Content::Service {
 public:
  explicit Content(Shared& shared) : shared_(shared) {}

  grpc::Status Read(grpc::ServerContext* context, const content::ReadContentRequest* request,
                    grpc::ServerWriter<content::ReadContentResponse>* writer) override {
    const std::lock_guard lock(shared_.mutex);
    if (grpc::Status checked = shared_.Check(*context); !checked.ok()) {
      return checked;
    }
    const Status read = shared_.store.Read(
        request->digest(), static_cast<uint64_t>(request->size()),
        [&](std::string_view bytes) -> Status {
          content::ReadContentResponse part;
          part.set_data(std::string(bytes));
          return writer->Write(part) ? Status() : Fail(Code::kCanceled, "nobody reads on");
        });
    return read ? grpc::Status::OK : ToStatus(read.error());
  }

  /// In messages of two.
  grpc::Status List(grpc::ServerContext* context, const content::ListContentRequest* /*request*/,
                    grpc::ServerWriter<content::ListContentResponse>* writer) override {
    const std::lock_guard lock(shared_.mutex);
    if (grpc::Status checked = shared_.Check(*context); !checked.ok()) {
      return checked;
    }
    content::ListContentResponse part;
    for (const auto& [digest, bytes] : shared_.store.blobs) {
      part.add_info()->set_digest(digest);
      if (part.info_size() == 2) {
        writer->Write(part);
        part.Clear();
      }
    }
    writer->Write(part);
    return grpc::Status::OK;
  }

 private:
  Shared& shared_;
};

class Namespaces : public namespaces::Namespaces::Service {
 public:
  explicit Namespaces(Shared& shared) : shared_(shared) {}

  grpc::Status List(grpc::ServerContext* /*context*/,
                    const namespaces::ListNamespacesRequest* /*request*/,
                    namespaces::ListNamespacesResponse* response) override {
    response->add_namespaces()->set_name(shared_.ns);
    return grpc::Status::OK;
  }

 private:
  Shared& shared_;
};

}  // namespace

struct StoreServer::Services {
  Services(FakeStore& store, const std::string& ns) : shared{store, ns, {}} {}

  Shared shared;
  Containers containers{shared};
  Images images{shared};
  Content content{shared};
  Namespaces namespaces{shared};
  std::unique_ptr<grpc::Server> server;
};

StoreServer::StoreServer(FakeStore& store, const std::string& address, const std::string& ns)
    : services_(std::make_unique<Services>(store, ns)) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix://" + address, grpc::InsecureServerCredentials());
  builder.RegisterService(&services_->containers);
  builder.RegisterService(&services_->images);
  builder.RegisterService(&services_->content);
  builder.RegisterService(&services_->namespaces);
  services_->server = builder.BuildAndStart();
}

StoreServer::~StoreServer() { services_->server->Shutdown(); }

}  // namespace gantry::wasm::fetch
