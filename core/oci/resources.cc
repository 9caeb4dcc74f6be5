// SPDX-License-Identifier: Apache-2.0
#include "core/oci/resources.h"

#include <string>
#include <utility>

namespace gantry::oci {
namespace {

Status ReadMemory(const Json& memory, cgroup::CgroupResources& out) {
  GANTRY_CHECK_OK(memory.CheckObject());
  GANTRY_CHECK_OK(memory["limit"].Read(out.memory.limit_bytes));
  GANTRY_CHECK_OK(memory["reservation"].Read(out.memory.reservation_bytes));
  GANTRY_CHECK_OK(memory["checkBeforeUpdate"].Read(out.memory.check_before_update));
  return memory["swap"].Read(out.memory.swap_bytes);
}

Status ReadCpu(const Json& cpu, cgroup::CgroupResources& out) {
  GANTRY_CHECK_OK(cpu.CheckObject());
  GANTRY_CHECK_OK(cpu["shares"].Read(out.cpu.shares));
  GANTRY_CHECK_OK(cpu["quota"].Read(out.cpu.quota_us));
  GANTRY_CHECK_OK(cpu["period"].Read(out.cpu.period_us));
  GANTRY_CHECK_OK(cpu["burst"].Read(out.cpu.burst_us));
  GANTRY_CHECK_OK(cpu["idle"].Read(out.cpu.idle));
  GANTRY_CHECK_OK(cpu["cpus"].Read(out.cpu.cpus));
  return cpu["mems"].Read(out.cpu.mems);
}

Status ReadHugepages(const Json& list, cgroup::CgroupResources& out) {
  GANTRY_TRY(const auto items, list.Items());
  for (const Json& item : items) {
    std::pair<std::string, uint64_t> limit;
    GANTRY_CHECK_OK(item.CheckObject());
    GANTRY_CHECK_OK(item["pageSize"].Read(limit.first));
    GANTRY_CHECK_OK(item["limit"].Read(limit.second));
    // It becomes part of a file name.
    if (limit.first.empty() || limit.first.contains('/')) {
      return item["pageSize"].Wrong("not a page size");
    }
    out.hugetlb_bytes.push_back(std::move(limit));
  }
  return {};
}

Status ReadUnified(const Json& unified, cgroup::CgroupResources& out) {
  GANTRY_CHECK_OK(unified.Read(out.unified));
  for (const auto& [file, value] : out.unified) {
    if (file.empty() || file.contains('/') || !file.contains('.') || file.starts_with('.')) {
      return unified[file].Wrong("not a file name of a cgroup");
    }
  }
  return {};
}

}  // namespace

Result<cgroup::CgroupResources> ReadResources(const Json& object) {
  cgroup::CgroupResources out;
  GANTRY_CHECK_OK(object.CheckObject());
  GANTRY_CHECK_OK(ReadMemory(object["memory"], out));
  GANTRY_CHECK_OK(ReadCpu(object["cpu"], out));
  GANTRY_CHECK_OK(object["pids"].CheckObject());
  GANTRY_CHECK_OK(object["pids"]["limit"].Read(out.pids_limit));
  GANTRY_CHECK_OK(object["blockIO"].CheckObject());
  GANTRY_CHECK_OK(object["blockIO"]["weight"].Read(out.blkio_weight));
  GANTRY_CHECK_OK(ReadHugepages(object["hugepageLimits"], out));
  GANTRY_CHECK_OK(ReadUnified(object["unified"], out));
  return out;
}

Result<cgroup::CgroupResources> ParseResources(std::string_view text, std::string_view what) {
  GANTRY_TRY(const Json object, Json::Parse(text, what));
  if (object.absent()) {
    return object.Wrong("expected an object, found null");
  }
  return ReadResources(object);
}

}  // namespace gantry::oci
