// SPDX-License-Identifier: Apache-2.0
#include "core/engine/takeover.h"

#include <chrono>
#include <map>
#include <utility>
#include <vector>

#include <gantry/format.h>

#include "core/link/messages.h"
#include "core/log/log.h"
#include "core/store/record.h"

namespace gantry::engine {
namespace {

constexpr std::chrono::seconds kKeeperLimit{5};

Result<std::vector<std::string>> AskForBundles(link::BlockingChannel& keeper) {
  const auto deadline = std::chrono::steady_clock::now() + kKeeperLimit;
  GANTRY_TRY(link::Inventory part, keeper.Ask<link::Inventory>(link::Inquire(), deadline));
  std::vector<std::string> bundles = std::move(part.bundles);
  while (part.more) {
    GANTRY_TRY(const link::Message next, keeper.Receive(deadline));
    GANTRY_TRY(part, next.As<link::Inventory>());
    bundles.insert(bundles.end(), part.bundles.begin(), part.bundles.end());
  }
  return bundles;
}

}  // namespace

Status CheckTakeover(link::BlockingChannel& keeper, backend::Backends& backends) {
  GANTRY_TRY(const std::vector<std::string> bundles, AskForBundles(keeper));
  /// One of those that need it, by backend.
  std::map<std::string, std::string> needed;
  for (const std::string& bundle : bundles) {
    auto record = store::Read(bundle);
    if (record) {
      needed.try_emplace(record->backend, record->id);
    } else if (record.error().code == Code::kFailedPrecondition) {
      return std::unexpected(std::move(record).error());
    } else if (record.error().code != Code::kNotFound) {
      LogWarning("{}", record.error().message);
    }
  }
  for (const auto& [name, id] : needed) {
    if (auto found = backends.Find(name); !found) {
      return Fail(Code::kFailedPrecondition, "backend '{}', which '{}' runs with: {}", name, id,
                  found.error().message);
    }
  }
  return {};
}

}  // namespace gantry::engine
