// SPDX-License-Identifier: Apache-2.0
#include "core/door/reflection.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <gantry/format.h>

#include "core/rpc/typed.h"
#include "proto/grpc/reflection.pb.h"

namespace gantry::door {
namespace {

namespace pb = ::grpc::reflection::v1;

constexpr const char* kServices[] = {"grpc.reflection.v1.ServerReflection",
                                     "grpc.reflection.v1alpha.ServerReflection"};
constexpr char kMethod[] = "ServerReflectionInfo";

void Refuse(pb::ServerReflectionResponse& response, Code code, std::string message) {
  pb::ErrorResponse& error = *response.mutable_error_response();
  error.set_error_code(static_cast<int>(code));
  error.set_error_message(std::move(message));
}

/// `name` empty: there is no such file.
void Tell(pb::ServerReflectionResponse& response, const Descriptors& descriptors,
          const std::string& name, const std::string& what) {
  std::vector<std::string> files = descriptors.File(name);
  if (files.empty()) {
    Refuse(response, Code::kNotFound, Format("no file of '{}'", what.substr(0, 200)));
    return;
  }
  for (std::string& file : files) {
    response.mutable_file_descriptor_response()->add_file_descriptor_proto(std::move(file));
  }
}

}  // namespace

Reflection::Reflection(Descriptors descriptors, std::vector<std::string> services)
    : descriptors_(std::move(descriptors)), services_(std::move(services)) {
  services_.insert(services_.end(), std::begin(kServices), std::end(kServices));
  std::ranges::sort(services_);
}

void Reflection::Register(StreamTable& streams) {
  for (const char* service : kServices) {
    streams[Format("/{}/{}", service, kMethod)] = [this](std::shared_ptr<Stream> stream) {
      return Serve(std::move(stream));
    };
  }
}

async::Task<Status> Reflection::Serve(std::shared_ptr<Stream> stream) const {
  for (;;) {
    GANTRY_CO_TRY(const std::optional<std::string> request, co_await stream->Read());
    if (!request) {
      co_return Status();
    }
    GANTRY_CO_TRY(std::string answer, Answer(*request));
    GANTRY_CO_CHECK_OK(co_await stream->Write(std::move(answer)));
  }
}

Result<std::string> Reflection::Answer(const std::string& bytes) const {
  pb::ServerReflectionRequest request;
  GANTRY_CHECK_OK(rpc::ParseMessage(bytes, request));
  pb::ServerReflectionResponse response;
  response.set_valid_host(request.host());
  switch (request.message_request_case()) {
    case pb::ServerReflectionRequest::kListServices:
      for (const std::string& service : services_) {
        response.mutable_list_services_response()->add_service()->set_name(service);
      }
      break;
    case pb::ServerReflectionRequest::kFileByFilename:
      Tell(response, descriptors_, request.file_by_filename(), request.file_by_filename());
      break;
    case pb::ServerReflectionRequest::kFileContainingSymbol:
      Tell(response, descriptors_, descriptors_.FileOf(request.file_containing_symbol()),
           request.file_containing_symbol());
      break;
    case pb::ServerReflectionRequest::kFileContainingExtension:
    case pb::ServerReflectionRequest::kAllExtensionNumbersOfType:
      Refuse(response, Code::kNotFound, "there are no extensions");
      break;
    case pb::ServerReflectionRequest::MESSAGE_REQUEST_NOT_SET:
      Refuse(response, Code::kInvalidArgument, "nothing is asked for");
      break;
  }
  response.mutable_original_request()->Swap(&request);
  return rpc::SerializeMessage(response);
}

}  // namespace gantry::door
