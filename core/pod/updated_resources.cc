// SPDX-License-Identifier: Apache-2.0
#include "core/pod/updated_resources.h"

#include <cstdint>
#include <map>
#include <vector>

#include <gantry/toolkit/oci/json.h>
#include <gantry/toolkit/proto/proto_message.h>

namespace gantry::task {
namespace {

struct HugepageLimit {
  std::string page_size;
  uint64_t limit = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.page_size);
    field(2, self.limit);
  }
};

struct MapEntry {
  std::string key;
  std::string value;

  void Each(this auto& self, auto&& field) {
    field(1, self.key);
    field(2, self.value);
  }
};

/// Source: k8s.io/cri-api 1.34, api.proto. Without what is no limit of a pod (oom_score_adj).
struct LinuxContainerResources {
  int64_t cpu_period = 0;
  int64_t cpu_quota = 0;
  int64_t cpu_shares = 0;
  int64_t memory_limit_in_bytes = 0;
  std::string cpuset_cpus;
  std::string cpuset_mems;
  std::vector<HugepageLimit> hugepage_limits;
  std::vector<MapEntry> unified;
  int64_t memory_swap_limit_in_bytes = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.cpu_period);
    field(2, self.cpu_quota);
    field(3, self.cpu_shares);
    field(4, self.memory_limit_in_bytes);
    field(6, self.cpuset_cpus);
    field(7, self.cpuset_mems);
    field(8, self.hugepage_limits);
    field(9, self.unified);
    field(10, self.memory_swap_limit_in_bytes);
  }
};

}  // namespace

Result<std::string> ReadUpdatedResources(std::string_view json) {
  GANTRY_TRY(const oci::Json root, oci::Json::Parse(json, kUpdatedResources));
  GANTRY_CHECK_OK(root.CheckObject());
  const oci::Json from = root["Resources"];
  GANTRY_CHECK_OK(from.CheckObject());
  if (from.absent()) {
    return std::string();
  }
  LinuxContainerResources to;
  GANTRY_CHECK_OK(from["cpu_period"].Read(to.cpu_period));
  GANTRY_CHECK_OK(from["cpu_quota"].Read(to.cpu_quota));
  GANTRY_CHECK_OK(from["cpu_shares"].Read(to.cpu_shares));
  GANTRY_CHECK_OK(from["memory_limit_in_bytes"].Read(to.memory_limit_in_bytes));
  GANTRY_CHECK_OK(from["memory_swap_limit_in_bytes"].Read(to.memory_swap_limit_in_bytes));
  GANTRY_CHECK_OK(from["cpuset_cpus"].Read(to.cpuset_cpus));
  GANTRY_CHECK_OK(from["cpuset_mems"].Read(to.cpuset_mems));
  GANTRY_TRY(const std::vector<oci::Json> pages, from["hugepage_limits"].Items());
  for (const oci::Json& page : pages) {
    HugepageLimit& limit = to.hugepage_limits.emplace_back();
    GANTRY_CHECK_OK(page["page_size"].Read(limit.page_size));
    GANTRY_CHECK_OK(page["limit"].Read(limit.limit));
  }
  std::map<std::string, std::string> unified;
  GANTRY_CHECK_OK(from["unified"].Read(unified));
  for (auto& [key, value] : unified) {
    to.unified.push_back({key, value});
  }
  return EncodeProto(to);
}

}  // namespace gantry::task
