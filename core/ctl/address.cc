// SPDX-License-Identifier: Apache-2.0
#include "core/ctl/address.h"

#include <string_view>

namespace gantry::ctl {
namespace {

struct Scheme {
  std::string_view name;
  Address::Protocol protocol;
};

constexpr Scheme kSchemes[] = {{"ttrpc+unix://", Address::Protocol::kTtrpc},
                               {"grpc+unix://", Address::Protocol::kGrpc},
                               {"unix://", Address::Protocol::kGrpc}};

}  // namespace

Result<Address> ParseAddress(const std::string& text) {
  for (const Scheme& scheme : kSchemes) {
    if (text.starts_with(scheme.name)) {
      const std::string path = text.substr(scheme.name.size());
      if (!path.starts_with('/')) {
        return Fail(Code::kInvalidArgument,
                    "--address '{}': no absolute path of a socket follows '{}'", text, scheme.name);
      }
      return Address{scheme.protocol, path};
    }
  }
  if (text.contains("://")) {
    return Fail(Code::kInvalidArgument,
                "--address '{}': it is a path, ttrpc+unix://PATH, or for gRPC unix://PATH", text);
  }
  return Address{Address::Protocol::kTtrpc, text};
}

}  // namespace gantry::ctl
