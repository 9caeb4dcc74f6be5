// SPDX-License-Identifier: Apache-2.0
#include "tests/fault/churn/life.h"

#include <signal.h>
#include <sys/mount.h>

#include <filesystem>
#include <random>

#include <gtest/gtest.h>

#include "tests/fault/churn/stream.h"
#include "tests/harness/host.h"

namespace gantry::fault {
namespace {

constexpr int kMostLines = 300;
constexpr const char* kExecId = "x";
constexpr uint32_t kKilledBySignal = 128 + SIGKILL;

std::vector<std::string> Shell(const std::string& script) { return {"sh", "-c", script}; }

std::string LinesOf(const ChurnLife& chosen, const char* end) {
  std::string text;
  for (int i = 0; i < chosen.lines; ++i) {
    text += chosen.id + " " + std::to_string(i) + end;
  }
  return text;
}

/// Writes those lines.
std::string Writes(const ChurnLife& chosen) {
  return "i=0; while [ $i -lt " + std::to_string(chosen.lines) + " ]; do echo " + chosen.id +
         " $i; i=$((i+1)); done; ";
}

std::string ExitsWith(const ChurnLife& chosen) { return "exit " + std::to_string(chosen.code); }

std::vector<std::string> CommandOf(const ChurnLife& chosen) {
  switch (chosen.kind) {
    case ChurnKind::kEnds:
    case ChurnKind::kTerminal:
      return Shell(Writes(chosen) + ExitsWith(chosen));
    case ChurnKind::kReads:
      return Shell("cat; " + ExitsWith(chosen));
    default:
      return {"sleep", "1000"};
  }
}

/// One life on its way. A call that fails ends it.
class Living {
 public:
  Living(const e2e::Node& node, const std::string& rootfs, const ChurnLife& chosen,
         const std::function<void()>& step)
      : chosen_(chosen),
        step_(step),
        folder_(node.fifo_dir() + "/" + chosen.id),
        in_(Path("in")),
        out_(Path("out")),
        err_(Path("err")),
        task_(node, chosen.id, rootfs, CommandOf(chosen), Streams()) {}

  ~Living() { std::filesystem::remove_all(folder_); }

  Living(const Living&) = delete;
  Living& operator=(const Living&) = delete;

  Status Run() {
    GANTRY_CHECK_OK(Step(task_.Announce()));
    GANTRY_CHECK_OK(Step(task_.Create()));
    GANTRY_CHECK_OK(Step(task_.BeginWait()));
    if (chosen_.kind == ChurnKind::kReads) {
      in_.Write(LinesOf(chosen_, "\n"));
    }
    GANTRY_CHECK_OK(Step(task_.Start()));
    GANTRY_CHECK_OK(Middle());
    return chosen_.kind == ChurnKind::kAbandoned ? Abandon() : End();
  }

 private:
  std::string Path(const char* name) const {
    std::filesystem::create_directories(folder_);
    return folder_ + "/" + name;
  }

  TaskStreams Streams() const {
    const bool terminal = chosen_.kind == ChurnKind::kTerminal;
    return {.in = chosen_.kind == ChurnKind::kReads ? in_.path() : "",
            .out = out_.path(),
            .err = terminal ? "" : err_.path(),
            .terminal = terminal};
  }

  Status Step(Status done) {
    step_();
    return done;
  }

  Status Middle() {
    switch (chosen_.kind) {
      case ChurnKind::kPaused:
        GANTRY_CHECK_OK(Step(task_.Pause()));
        GANTRY_CHECK_OK(Step(task_.Resume()));
        return Step(task_.Kill(SIGKILL));
      case ChurnKind::kExec:
        GANTRY_CHECK_OK(Exec());
        return Step(task_.Kill(SIGKILL));
      case ChurnKind::kKilled:
        return Step(task_.Kill(SIGKILL));
      case ChurnKind::kReads:
        in_.Close();
        return Step(CloseInput());
      default:
        return {};
    }
  }

  Status CloseInput() {
    const Status closed = task_.CloseInput();
    // It may have seen the end already.
    return !closed && closed.error().code == Code::kNotFound ? Status() : closed;
  }

  Status Exec() {
    StreamReader out(Path("x-out"));
    GANTRY_CHECK_OK(Step(
        task_.Exec(kExecId, Shell(Writes(chosen_) + ExitsWith(chosen_)), {.out = out.path()})));
    GANTRY_CHECK_OK(Step(task_.Start(kExecId)));
    GANTRY_CHECK_OK(task_.BeginWait(kExecId));
    EXPECT_EQ(out.ReadToEnd(), LinesOf(chosen_, "\n"));
    GANTRY_TRY(const Ended ended, task_.Wait());
    GANTRY_CHECK_OK(Step({}));
    EXPECT_EQ(ended.status, static_cast<uint32_t>(chosen_.code));
    GANTRY_TRY(const Ended deleted, task_.Delete(kExecId));
    EXPECT_EQ(deleted.status, static_cast<uint32_t>(chosen_.code));
    return Step(task_.BeginWait());
  }

  bool ends_by_itself() const {
    return chosen_.kind == ChurnKind::kEnds || chosen_.kind == ChurnKind::kTerminal ||
           chosen_.kind == ChurnKind::kReads;
  }

  Status End() {
    const uint32_t status =
        ends_by_itself() ? static_cast<uint32_t>(chosen_.code) : kKilledBySignal;
    ExpectStreams();
    GANTRY_TRY(const Ended ended, task_.Wait());
    GANTRY_CHECK_OK(Step({}));
    EXPECT_EQ(ended.status, status);
    GANTRY_TRY(const Ended deleted, task_.Delete());
    GANTRY_CHECK_OK(Step({}));
    EXPECT_EQ(deleted.status, status);
    return Forget();
  }

  void ExpectStreams() {
    const bool terminal = chosen_.kind == ChurnKind::kTerminal;
    const std::string wanted =
        ends_by_itself() ? LinesOf(chosen_, terminal ? "\r\n" : "\n") : std::string();
    EXPECT_EQ(out_.ReadToEnd(), wanted);
    if (!terminal) {
      EXPECT_EQ(err_.ReadToEnd(), "");
    }
  }

  Status Abandon() {
    GANTRY_TRY(const Ended deleted, task_.ShimDelete());
    GANTRY_CHECK_OK(Step({}));
    EXPECT_EQ(deleted.status, kKilledBySignal);
    ExpectStreams();
    // Without an engine the keeper kills, and no more: then this is containerd's, as with
    // any shim that has died.
    umount2((task_.bundle() + "/rootfs").c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
    return {};
  }

  Status Forget() {
    GANTRY_CHECK_OK(task_.ShimDelete());
    GANTRY_CHECK_OK(Step({}));
    ExpectUnmounted();
    return {};
  }

  /// The files in it are containerd's to remove: a record may be there where the engine was
  /// killed when it had told the keeper that the container is gone.
  void ExpectUnmounted() const {
    EXPECT_TRUE(e2e::ListFolder(task_.bundle() + "/rootfs").empty()) << "a mount is left";
  }

  const ChurnLife& chosen_;
  const std::function<void()>& step_;
  std::string folder_;
  StreamWriter in_;
  StreamReader out_;
  StreamReader err_;
  ChurnTask task_;
};

}  // namespace

ChurnLife ChooseLife(unsigned seed, int number, const std::string& id) {
  std::mt19937 random(seed + static_cast<unsigned>(number));
  const auto below = [&](int end) {
    return std::uniform_int_distribution<int>(0, end - 1)(random);
  };
  // Each kind as often as the others, whatever the seed.
  const auto kind = static_cast<ChurnKind>(number % kChurnKinds);
  return {id, kind, below(128), below(kMostLines)};
}

std::vector<std::string> TopicsOf(const ChurnLife& chosen) {
  switch (chosen.kind) {
    case ChurnKind::kExec:
      return {"create", "start", "exec-added", "exec-started", "exit(x)", "exit", "delete"};
    case ChurnKind::kPaused:
      return {"create", "start", "paused", "resumed", "exit", "delete"};
    case ChurnKind::kAbandoned:
      return {"create", "start"};
    default:
      return {"create", "start", "exit", "delete"};
  }
}

void Live(const e2e::Node& node, const std::string& rootfs, const ChurnLife& chosen,
          const std::function<void()>& step) {
  SCOPED_TRACE("life of " + chosen.id);
  Living living(node, rootfs, chosen, step);
  const Status done = living.Run();
  EXPECT_TRUE(done) << done.error().message;
}

}  // namespace gantry::fault
