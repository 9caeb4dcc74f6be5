// SPDX-License-Identifier: Apache-2.0
#include "core/toolkit/cgroup/parse.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <ranges>
#include <utility>

#include <gantry/toolkit/cgroup/counters.h>
#include <gantry/toolkit/files/files.h>

namespace gantry::cgroup {
namespace {

constexpr size_t kMaxStatFile = 4 << 20;
constexpr size_t kMaxNames = 4096;

thread_local CgroupReadWatch* newest = nullptr;

uint32_t RdmaNumber(std::string_view text) {
  return static_cast<uint32_t>(
      std::min<uint64_t>(ParseCgroupNumber(text), std::numeric_limits<uint32_t>::max()));
}

}  // namespace

CgroupReadWatch::CgroupReadWatch() : outer_(std::exchange(newest, this)) {}

CgroupReadWatch::~CgroupReadWatch() { newest = outer_; }

void CgroupReadWatch::Note(const Error& error) {
  const int why = error.sys_errno;
  if (newest != nullptr && !newest->failed_ && (why == EMFILE || why == ENFILE || why == ENOMEM)) {
    newest->failed_ = error;
  }
}

std::optional<std::string> ReadCgroupText(const std::string& file) {
  Result<std::string> text = ReadFile(file, kMaxStatFile);
  if (!text) {
    CgroupReadWatch::Note(text.error());
    return std::nullopt;
  }
  return *std::move(text);
}

uint64_t ParseCgroupNumber(std::string_view text) {
  if (text.starts_with("max")) {
    return std::numeric_limits<uint64_t>::max();
  }
  return NumberAlone(text).value_or(0);
}

uint64_t ReadCgroupNumber(const std::string& file) {
  const auto text = ReadCgroupText(file);
  return text ? ParseCgroupNumber(*text) : 0;
}

std::vector<std::string_view> CgroupWords(std::string_view line) {
  std::vector<std::string_view> words;
  for (size_t start = 0; (start = line.find_first_not_of(" \t\n", start)) != line.npos;) {
    const size_t end = std::min(line.find_first_of(" \t\n", start), line.size());
    words.push_back(line.substr(start, end - start));
    start = end;
  }
  return words;
}

bool ParseDeviceNumbers(std::string_view word, uint64_t& major, uint64_t& minor) {
  const size_t colon = word.find(':');
  if (colon == word.npos || colon == 0 || word[0] < '0' || word[0] > '9') {
    return false;
  }
  major = ParseCgroupNumber(word.substr(0, colon));
  minor = ParseCgroupNumber(word.substr(colon + 1));
  return true;
}

std::vector<CgroupRdma> ParseCgroupRdma(std::string_view text) {
  std::vector<CgroupRdma> out;
  for (const auto part : std::views::split(text, '\n')) {
    const auto words = CgroupWords(std::string_view(part));
    if (words.size() < 2) {
      continue;
    }
    CgroupRdma entry{.device = std::string(words[0])};
    for (const std::string_view word : words) {
      if (word.starts_with("hca_handle=")) {
        entry.hca_handles = RdmaNumber(word.substr(11));
      } else if (word.starts_with("hca_object=")) {
        entry.hca_objects = RdmaNumber(word.substr(11));
      }
    }
    out.push_back(std::move(entry));
  }
  return out;
}

std::vector<std::string> HugetlbSizes(const std::string& dir, std::string_view suffix) {
  std::vector<std::string> sizes;
  const Result<std::vector<std::string>> names = ListDirectory(dir, kMaxNames);
  if (!names) {
    return sizes;
  }
  constexpr std::string_view kPrefix = "hugetlb.";
  for (const std::string_view name : *names) {
    if (name.size() > kPrefix.size() + suffix.size() && name.starts_with(kPrefix) &&
        name.ends_with(suffix)) {
      const std::string_view size =
          name.substr(kPrefix.size(), name.size() - kPrefix.size() - suffix.size());
      if (!size.contains('.')) {
        sizes.emplace_back(size);
      }
    }
  }
  std::ranges::sort(sizes);
  return sizes;
}

CgroupCounters ParseCgroupCounters(std::string_view text) {
  CgroupCounters counters;
  for (const auto part : std::views::split(text, '\n')) {
    const auto words = CgroupWords(std::string_view(part));
    if (words.size() == 2 && words[1][0] >= '0' && words[1][0] <= '9') {
      counters.emplace(words[0], ParseCgroupNumber(words[1]));
    }
  }
  return counters;
}

}  // namespace gantry::cgroup
