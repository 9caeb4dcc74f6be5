// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/cache/listing.h"

#include <algorithm>
#include <ranges>

#include <nlohmann/json.hpp>

#include <gantry/format.h>

namespace gantry::wasm {
namespace {

/// Enough to tell them apart.
constexpr size_t kShownDigits = 16;

/// "5s", "12m", "3h", "8d".
std::string AgeOf(int64_t then, int64_t now) {
  constexpr int64_t kMinute = 60;
  constexpr int64_t kHour = kMinute * 60;
  constexpr int64_t kDay = kHour * 24;
  const int64_t age = std::max<int64_t>(0, now - then);
  if (age < 2 * kMinute) {
    return Format("{}s", age);
  }
  if (age < 2 * kHour) {
    return Format("{}m", age / kMinute);
  }
  return age < 2 * kDay ? Format("{}h", age / kHour) : Format("{}d", age / kDay);
}

/// What it is, or why there is no artifact.
std::string WordOf(const EntryHeader& header) {
  return std::string(header.failure == Code::kOk ? KindName(header.kind)
                                                 : CodeName(header.failure));
}

/// Those used last first.
std::vector<const ArtifactStore::Listed*> Sorted(const std::vector<ArtifactStore::Listed>& all) {
  std::vector<const ArtifactStore::Listed*> sorted;
  sorted.reserve(all.size());
  for (const ArtifactStore::Listed& one : all) {
    sorted.push_back(&one);
  }
  std::ranges::stable_sort(sorted, std::ranges::greater(), &ArtifactStore::Listed::used_at);
  return sorted;
}

}  // namespace

std::string ListingText(const std::vector<ArtifactStore::Listed>& all, int64_t now) {
  std::string text = Format("{:<18}{:<20}{:>12}  {:>6}  {:>6}  {}\n", "MODULE", "IS", "BYTES",
                            "AGE", "USED", "KEY");
  for (const ArtifactStore::Listed* one : Sorted(all)) {
    text += Format("{:<18}{:<20}{:>12}  {:>6}  {:>6}  {}\n",
                   HexOf(one->header.id.module).substr(0, kShownDigits), WordOf(one->header),
                   one->bytes, AgeOf(one->header.made_at, now), AgeOf(one->used_at, now),
                   one->key.substr(0, kShownDigits));
  }
  return text;
}

std::string ListingJson(const std::vector<ArtifactStore::Listed>& all) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ArtifactStore::Listed* one : Sorted(all)) {
    nlohmann::ordered_json item = {{"key", one->key},
                                   {"module", "sha256:" + HexOf(one->header.id.module)}};
    if (one->header.failure == Code::kOk) {
      item["kind"] = KindName(one->header.kind);
    } else {
      item["error"] = CodeName(one->header.failure);
    }
    item["bytes"] = one->bytes;
    item["made_at"] = one->header.made_at;
    item["used_at"] = one->used_at;
    if (one->header.kept_until != EntryHeader::kForEver) {
      item["kept_until"] = one->header.kept_until;
    }
    list.push_back(std::move(item));
  }
  return list.dump(2) + "\n";
}

}  // namespace gantry::wasm
