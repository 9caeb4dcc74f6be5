// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/machine/canary_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include <gantry/format.h>
#include <gantry/toolkit/files/file_identity.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/proto/proto_message.h>

namespace gantry::vmm {
namespace {

constexpr size_t kMaxKept = size_t{64} << 10;
constexpr size_t kMaxWords = 1024;
constexpr size_t kMostOutcomes = 32;

struct Outcome {
  /// Of what it was found out.
  std::string of{};
  bool kvm = false;
  std::string words{};
  int64_t at_ns = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.of);
    field(2, self.kvm);
    field(3, self.words);
    field(4, self.at_ns);
  }
};

/// The oldest first.
struct Outcomes {
  std::vector<Outcome> all{};

  void Each(this auto& self, auto&& field) { field(5, self.all); }
};

std::string Which(const std::string& path) {
  const auto file = FileIdentity::Of(path);
  return file ? Format("{} {} {} {}", file->device, file->inode, file->size, file->changed_ns)
              : std::string("none");
}

std::string FileIn(const std::string& keep_dir) { return keep_dir + "/kvm"; }

std::vector<Outcome> ReadAll(const std::string& keep_dir) {
  const auto text = ReadFile(FileIn(keep_dir), kMaxKept);
  auto kept = text ? DecodeProto<Outcomes>(*text) : Result<Outcomes>(std::unexpected(text.error()));
  return kept ? std::move(kept->all) : std::vector<Outcome>();
}

}  // namespace

// The times of a device change as it is used.
std::string KvmKeyOf(const KvmQuestion& question) {
  struct stat kvm{};
  const bool there = stat("/dev/kvm", &kvm) == 0;
  return Format("{}; {}; {}", Which(question.qemu), Which(question.kernel),
                there ? kvm.st_rdev : 0);
}

std::optional<Found> ReadFound(const std::string& keep_dir, const std::string& key) {
  const std::vector<Outcome> all = ReadAll(keep_dir);
  const auto kept = std::ranges::find(all, key, &Outcome::of);
  if (kept == all.end()) {
    return std::nullopt;
  }
  return Found{.what = {.accelerator = kept->kvm ? Accelerator::kKvm : Accelerator::kTcg,
                        .words = kept->words},
               .at = std::chrono::steady_clock::time_point(std::chrono::nanoseconds(kept->at_ns))};
}

void KeepFound(const std::string& keep_dir, const std::string& key, const Found& found) {
  constexpr mode_t kPassage = 0711;
  constexpr mode_t kMode = 0600;
  std::error_code failed;
  std::filesystem::create_directories(std::filesystem::path(keep_dir).parent_path(), failed);
  if (mkdir(keep_dir.c_str(), kPassage) != 0 && errno != EEXIST) {
    return;
  }
  Outcomes outcomes{.all = ReadAll(keep_dir)};
  std::erase_if(outcomes.all, [&](const Outcome& one) { return one.of == key; });
  if (outcomes.all.size() >= kMostOutcomes) {
    outcomes.all.erase(outcomes.all.begin());
  }
  outcomes.all.push_back({.of = key,
                          .kvm = found.what.accelerator == Accelerator::kKvm,
                          .words = found.what.words.substr(0, kMaxWords),
                          .at_ns = std::chrono::nanoseconds(found.at.time_since_epoch()).count()});
  IgnoreError(ReplaceFile(FileIn(keep_dir), EncodeProto(outcomes), kMode),
              "the next engine finds it out again");
}

}  // namespace gantry::vmm
