// SPDX-License-Identifier: Apache-2.0
//
// Reads stdin of `start` first as BootstrapParams and, if id and namespace are not those of the
// flags, as an Any. Neither is no error: then there are no options, and the flags say the rest.
#include "core/shim/bootstrap.h"

#include <gantry/protowire.h>

namespace gantry::shim {
namespace {

struct Any {
  std::string type_url;
  std::string value;
};

/// False for malformed bytes and for what has fields that an Any has not.
bool ParseAny(std::string_view input, Any& any) {
  ProtoReader in(input);
  while (in.Next()) {
    if (!in.is_bytes() || in.field() > 2) {
      return false;
    }
    (in.field() == 1 ? any.type_url : any.value) = in.text();
  }
  return in.ok() && !any.type_url.empty();
}

/// The types that carry runtime options; other extensions are not for us.
bool IsOptions(std::string_view type_url) {
  const std::string_view type = type_url.substr(type_url.rfind('/') + 1);
  return type == "runtimeoptions.v1.Options" || type == "containerd.runc.v1.Options" ||
         type.starts_with("gantry.");
}

void TakeExtension(std::string_view extension, Bootstrap& out) {
  ProtoReader in(extension);
  while (in.Next()) {
    Any any;
    if (in.field() == 1 && in.is_bytes() && ParseAny(in.bytes(), any) && IsOptions(any.type_url)) {
      out.options_type_url = std::move(any.type_url);
      out.options = std::move(any.value);
    }
  }
}

struct Ids {
  std::string id;
  std::string ns;
};

bool ParseParams(std::string_view input, Ids& ids, Bootstrap& out) {
  ProtoReader in(input);
  while (in.Next()) {
    switch (in.field()) {
      case 1:
        ids.id = in.text();
        break;
      case 2:
        ids.ns = in.text();
        break;
      case 3:
        // DEBUG is -4, TRACE -8.
        out.debug = in.integer() < 0;
        break;
      case 4:
        out.containerd_version = in.text();
        break;
      case 5:
        out.ttrpc_address = in.text();
        break;
      case 6:
        out.grpc_address = in.text();
        break;
      case 7:
        out.containerd_binary = in.text();
        break;
      case 8:
        TakeExtension(in.bytes(), out);
        break;
      default:
        break;
    }
  }
  out.version = 3;
  return in.ok();
}

}  // namespace

Bootstrap ParseBootstrap(std::string_view input, std::string_view id, std::string_view ns) {
  Ids ids;
  Bootstrap params;
  if (ParseParams(input, ids, params) && ids.id == id && ids.ns == ns) {
    return params;
  }
  Bootstrap plain;
  Any any;
  if (ParseAny(input, any)) {
    plain.options_type_url = std::move(any.type_url);
    plain.options = std::move(any.value);
  }
  return plain;
}

}  // namespace gantry::shim
