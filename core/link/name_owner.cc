// SPDX-License-Identifier: Apache-2.0
//
// Names are kept by keepers and records that are older than this program: what is read here must
// go on to be read, and written, as it is.
#include "core/link/name_owner.h"

#include <gantry/format.h>
#include <gantry/number.h>

namespace gantry::link {
namespace {

constexpr std::string_view kStreams = "io";
constexpr std::string_view kSandbox = "sandbox";
constexpr std::string_view kOwn = "own";

/// Takes what stands before the next '/', and that too.
std::string_view TakePart(std::string_view& rest) {
  const size_t slash = rest.find('/');
  const std::string_view part = rest.substr(0, slash);
  rest = slash == std::string_view::npos ? std::string_view() : rest.substr(slash + 1);
  return part;
}

}  // namespace

NameOwner NameOwner::Process(uint64_t instance, std::string_view exec) {
  return {.kind = Kind::kProcess, .instance = instance, .id = std::string(exec)};
}

NameOwner NameOwner::Sandbox(uint64_t instance) {
  return {.kind = Kind::kSandbox, .instance = instance};
}

NameOwner NameOwner::Backend(std::string_view backend) {
  return {.kind = Kind::kBackend, .id = std::string(backend)};
}

NameOwner NameOwner::Read(std::string_view name) {
  std::string_view rest = name;
  const std::string_view share = TakePart(rest);
  const std::string_view second = TakePart(rest);
  if (share.starts_with(kBackendNames)) {
    return second == kOwn ? Backend(share.substr(kBackendNames.size())) : NameOwner();
  }
  const uint64_t instance = InstanceOfShare(share);
  if (instance == 0) {
    return {};
  }
  if (TakePart(rest) == kStreams) {
    return Process(instance, second);
  }
  return second == kSandbox ? Sandbox(instance) : NameOwner();
}

std::string NameOwner::Text() const {
  switch (kind) {
    case Kind::kProcess:
      return Format("{}/{}/{}", instance, id, kStreams);
    case Kind::kSandbox:
      return Format("{}/{}", instance, kSandbox);
    case Kind::kBackend:
      return Format("{}{}/{}", kBackendNames, id, kOwn);
    case Kind::kUnknown:
      break;
  }
  return {};
}

std::string NameOwner::Prefix() const {
  return kind == Kind::kUnknown ? std::string() : Text() + "/";
}

std::string NameOwner::Name(std::string_view own) const { return Prefix() + std::string(own); }

std::string_view ShareOf(std::string_view name) { return name.substr(0, name.find('/')); }

uint64_t InstanceOfShare(std::string_view share) {
  const auto number = ParseNumber(share);
  return number ? static_cast<uint64_t>(*number) : 0;
}

}  // namespace gantry::link
