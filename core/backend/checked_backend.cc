// SPDX-License-Identifier: Apache-2.0
#include "core/backend/checked_backend.h"

#include <utility>

#include <nlohmann/json.hpp>

#include <gantry/json.h>

#include "core/backend/guard.h"

namespace gantry::backend {
namespace {

/// Options that are the same have the same text, in whatever order they came.
std::string Normal(const std::string& options_json) {
  const nlohmann::json options = ReadJson(options_json);
  return options.is_object() ? options.dump() : options_json;
}

}  // namespace

void CheckedBackend::AddHandler(const std::string& options_json, const Status& checked) {
  const MutexLock lock(mutex_);
  if (checked) {
    good_.insert(Normal(options_json));
  } else if (checked.error().code != Code::kFailedPrecondition) {
    refused_.try_emplace(Normal(options_json), checked.error());
  }
}

Status CheckedBackend::Check(const std::string& options_json) {
  const std::string normal = Normal(options_json);
  {
    const MutexLock lock(mutex_);
    if (good_.contains(normal)) {
      return {};
    }
    if (const auto refused = refused_.find(normal); refused != refused_.end()) {
      return std::unexpected(refused->second);
    }
  }
  // Not under the lock: it may look at the node for a while.
  GANTRY_CHECK_OK(GuardedCall(name_, [&] { return backend_.CheckOptions(options_json); }));
  const MutexLock lock(mutex_);
  if (good_.size() >= kMostKnown) {
    good_.clear();
  }
  good_.insert(normal);
  return {};
}

Result<std::unique_ptr<Sandbox>> CheckedBackend::CreateSandbox(const SandboxRequest& request,
                                                               SandboxContext& context) {
  GANTRY_CHECK_OK(Check(request.options_json));
  return backend_.CreateSandbox(request, context);
}

}  // namespace gantry::backend
