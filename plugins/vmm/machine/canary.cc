// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/machine/canary.h"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/files/file_identity.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/proto/proto_message.h>
#include <gantry/toolkit/sync/mutex.h>

namespace gantry::vmm {
namespace {

constexpr size_t kMaxKept = 4096;
constexpr size_t kMaxWords = 1024;

struct Kept {
  /// Of what it was found out.
  std::string of{};
  bool kvm = false;
  std::string words{};
  /// Of the steady clock, which begins with the node.
  int64_t at_ns = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.of);
    field(2, self.kvm);
    field(3, self.words);
    field(4, self.at_ns);
  }
};

std::string Which(const std::string& path) {
  const auto file = FileIdentity::Of(path);
  return file ? Format("{} {} {} {}", file->device, file->inode, file->size, file->changed_ns)
              : std::string("none");
}

/// Another VMM, kernel or device makes another text. The times of a device change as it is used.
std::string KeyOf(const KvmQuestion& question) {
  struct stat kvm{};
  const bool there = stat("/dev/kvm", &kvm) == 0;
  return Format("{}; {}; {}", Which(question.qemu), Which(question.kernel),
                there ? kvm.st_rdev : 0);
}

std::string FileIn(const std::string& keep_dir) { return keep_dir + "/kvm"; }

struct Found {
  Acceleration what;
  std::chrono::steady_clock::time_point at;
};

std::optional<Found> ReadKept(const std::string& keep_dir, const KvmQuestion& question) {
  const auto text = ReadFile(FileIn(keep_dir), kMaxKept);
  const auto kept = text ? DecodeProto<Kept>(*text) : Result<Kept>(std::unexpected(text.error()));
  if (!kept || kept->of != KeyOf(question)) {
    return std::nullopt;
  }
  return Found{.what = {.accelerator = kept->kvm ? Accelerator::kKvm : Accelerator::kTcg,
                        .words = kept->words},
               .at = std::chrono::steady_clock::time_point(std::chrono::nanoseconds(kept->at_ns))};
}

/// Where it cannot be kept the next engine finds it out again.
void WriteKept(const std::string& keep_dir, const KvmQuestion& question, const Found& found) {
  constexpr mode_t kPassage = 0711;
  constexpr mode_t kMode = 0600;
  std::error_code failed;
  std::filesystem::create_directories(std::filesystem::path(keep_dir).parent_path(), failed);
  if (mkdir(keep_dir.c_str(), kPassage) != 0 && errno != EEXIST) {
    return;
  }
  const Kept kept = {.of = KeyOf(question),
                     .kvm = found.what.accelerator == Accelerator::kKvm,
                     .words = found.what.words.substr(0, kMaxWords),
                     .at_ns = std::chrono::nanoseconds(found.at.time_since_epoch()).count()};
  IgnoreError(ReplaceFile(FileIn(keep_dir), EncodeProto(kept), kMode),
              "the next engine finds it out again");
}

bool IsBelieved(const Found& found, std::chrono::steady_clock::time_point now) {
  return found.what.accelerator == Accelerator::kKvm || now < found.at + kNextCanary;
}

}  // namespace

struct CanaryRuns::State {
  /// Kept by an engine before, or shown now. Blocks: for the canary.
  Found FindOut(const KvmQuestion& asked) const {
    if (auto kept = ReadKept(keep_dir, asked); kept && IsBelieved(*kept, clock())) {
      return *std::move(kept);
    }
    Found shown{.what = choose(asked), .at = clock()};
    WriteKept(keep_dir, asked, shown);
    return shown;
  }

  State(std::string keep_dir_in, Choose choose_in, Clock clock_in)
      : keep_dir(std::move(keep_dir_in)),
        choose(std::move(choose_in)),
        clock(std::move(clock_in)) {}

  const std::string keep_dir;
  const Choose choose;
  const Clock clock;

  Mutex mutex;
  std::condition_variable ended;
  std::function<Result<CanaryQuestion>()> question GANTRY_GUARDED_BY(mutex);
  bool running GANTRY_GUARDED_BY(mutex) = false;
  std::optional<Found> found GANTRY_GUARDED_BY(mutex);
};

CanaryRuns::CanaryRuns(std::string keep_dir, Choose choose, Clock clock)
    : state_(std::make_shared<State>(std::move(keep_dir), std::move(choose), std::move(clock))) {}

void CanaryRuns::Begin(std::function<Result<CanaryQuestion>()> question) {
  {
    const MutexLock lock(state_->mutex);
    state_->question = std::move(question);
    if (state_->running || state_->found) {
      return;
    }
    state_->running = true;
  }
  Run(state_);
}

// Nobody waits for its end: an engine that ends does not wait for a KVM that hangs.
void CanaryRuns::Run(const std::shared_ptr<State>& state) {
  std::thread([state] {
    std::function<Result<CanaryQuestion>()> ask;
    {
      const MutexLock lock(state->mutex);
      ask = state->question;
    }
    Found found;
    if (const auto question = ask(); question) {
      found = state->FindOut(question->question);
    } else {
      found = {.what = {.words = "KVM is not used: " + question.error().message},
               .at = state->clock()};
    }
    const MutexLock lock(state->mutex);
    state->found = std::move(found);
    state->running = false;
    state->ended.notify_all();
  }).detach();
}

Result<Acceleration> CanaryRuns::Await(Deadline deadline) {
  MutexLock lock(state_->mutex);
  if (!state_->question) {
    return Fail(Code::kFailedPrecondition, "find out whether KVM works: nobody has begun to");
  }
  std::optional<Found> found = state_->found;
  while (!found) {
    const bool late = state_->ended.wait_until(lock.native(), deadline) == std::cv_status::timeout;
    found = state_->found;
    if (late && !found) {
      return Fail(Code::kDeadlineExceeded, "find out whether KVM works: the canary still runs");
    }
  }
  if (!state_->running && !IsBelieved(*found, state_->clock())) {
    state_->running = true;
    lock.Unlock();
    Run(state_);
  }
  return std::move(found->what);
}

Acceleration CanaryRuns::Look(const KvmQuestion& question) const {
  if (const auto kept = ReadKept(state_->keep_dir, question)) {
    return kept->what;
  }
  KvmQuestion tiny = question;
  tiny.qemu.clear();
  return state_->choose(tiny);
}

Result<Accelerator> Decide(const VmmOptions& options, const Acceleration& found) {
  if (options.accelerator == AcceleratorChoice::kTcg) {
    return Accelerator::kTcg;
  }
  if (found.accelerator == Accelerator::kKvm) {
    return Accelerator::kKvm;
  }
  if (options.accelerator == AcceleratorChoice::kKvm || options.vmm != Vmm::kQemu) {
    return Fail(Code::kFailedPrecondition, "choose an accelerator for {}: {}: mend it, or use {}",
                VmmName(options.vmm), found.words,
                options.vmm == Vmm::kQemu ? "the option 'accelerator: auto'"
                                          : "the options 'vmm: qemu' and 'accelerator: auto'");
  }
  return Accelerator::kTcg;
}

}  // namespace gantry::vmm
