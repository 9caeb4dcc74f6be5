// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/typed.h"

#include <limits>

namespace gantry::rpc {

Status ParseMessage(std::string_view bytes, google::protobuf::MessageLite& message) {
  if (bytes.size() > std::numeric_limits<int>::max() ||
      !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Fail(Code::kInvalidArgument, "decode '{}': malformed message", message.GetTypeName());
  }
  return {};
}

Result<std::string> SerializeMessage(const google::protobuf::MessageLite& message) {
  std::string out;
  if (!message.SerializeToString(&out)) {
    return Fail(Code::kInternal, "encode '{}': message is not complete or too large",
                message.GetTypeName());
  }
  return out;
}

}  // namespace gantry::rpc
