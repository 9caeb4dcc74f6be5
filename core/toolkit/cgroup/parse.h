// SPDX-License-Identifier: Apache-2.0
//
// The few formats that statistics files have on both hierarchies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/cgroup/statistics.h>

namespace gantry::cgroup {

/// Notes that a file could not be read for want of descriptors or memory: what is left
/// out then is not absent, and what is 0 not known. Of the calls of this thread, while it
/// is the newest.
class CgroupReadWatch {
 public:
  CgroupReadWatch();
  CgroupReadWatch(const CgroupReadWatch&) = delete;
  CgroupReadWatch& operator=(const CgroupReadWatch&) = delete;
  ~CgroupReadWatch();

  /// The first such error.
  Status status() const { return failed_ ? Status(std::unexpected(*failed_)) : Status(); }

  static void Note(const Error& error);

 private:
  CgroupReadWatch* outer_;
  std::optional<Error> failed_;
};

/// The text of a cgroup's file, nothing where it is absent or unreadable.
std::optional<std::string> ReadCgroupText(const std::string& file);

/// The text as a number; UINT64_MAX for "max", 0 for what is none.
uint64_t ParseCgroupNumber(std::string_view text);

/// `ParseCgroupNumber` of a file, 0 where it is absent.
uint64_t ReadCgroupNumber(const std::string& file);

/// The words of a line, split at blanks.
std::vector<std::string_view> CgroupWords(std::string_view line);

/// "8:16" taken apart. False where it is not of that form.
bool ParseDeviceNumbers(std::string_view word, uint64_t& major, uint64_t& minor);

/// The text of a flat-keyed file taken apart; a line that has no number is left out.
CgroupCounters ParseCgroupCounters(std::string_view text);

/// rdma.current and rdma.max: "mlx4_0 hca_handle=2 hca_object=2000".
std::vector<CgroupRdma> ParseCgroupRdma(std::string_view text);

/// The page sizes that `dir` has files for: `hugetlb.<size><suffix>`.
std::vector<std::string> HugetlbSizes(const std::string& dir, std::string_view suffix);

}  // namespace gantry::cgroup
