// SPDX-License-Identifier: Apache-2.0
//
// How long a client waits when the engine dies, when it is replaced, and when the keeper
// becomes another program, with so many idle containers there: one that asks for a State
// every millisecond, one that executes a process after the other, one that reads a
// container's output. And what each container adds to the time until all are taken up.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gantry/protowire.h>

#include "tests/performance/disturbance.h"
#include "tests/performance/instance.h"
#include "tests/performance/prober.h"
#include "tests/performance/rows.h"

namespace gantry::bench {
namespace {

constexpr std::chrono::milliseconds kBefore{100};
/// Longer than an engine must last for the next one to be started at once.
constexpr std::chrono::milliseconds kAfter{1500};
constexpr std::chrono::milliseconds kTick{1};
constexpr size_t kStride = 37;
/// Containers for the rows that have one number of them, and a limit.
constexpr size_t kUsual = 100;
constexpr double kSlopeLimit = 0.3;
/// A reader that is woken beside an engine that works may wait for a processor.
constexpr double kStreamLimit = 10;
constexpr int kSilenceMs = 20000;

struct Kind {
  Disturbance what;
  const char* name;
  const char* words;
  double limit;
};

constexpr std::array kKinds = {
    Kind{Disturbance::kCrash, "crash", "kill -9 of the engine", 150},
    Kind{Disturbance::kUpgrade, "upgrade", "an upgrade of the engine", 50},
    Kind{Disturbance::kKeeper, "keeper", "an upgrade of the keeper", 10}};

using Instances = std::vector<std::unique_ptr<Instance>>;

/// One wait of the client of this round.
using Once = std::function<Status()>;
using Client = std::function<Result<Once>(size_t round)>;

Status GrowTo(Lab& lab, Instances& instances, size_t count) {
  while (instances.size() < count) {
    instances.push_back(std::make_unique<Instance>(lab, lab.Gantry("crun")));
    GANTRY_CHECK_OK(instances.back()->Run({"sleep", "100000"}));
  }
  // The client shall not measure what making them has left to do.
  std::this_thread::sleep_for(kAfter);
  return {};
}

Status SendState(Instance& instance) {
  ProtoWriter request;
  request.Text(1, instance.id());
  return instance.Send("State", request.Take());
}

Status AskState(Instance& instance) {
  GANTRY_CHECK_OK(SendState(instance));
  GANTRY_TRY([[maybe_unused]] const std::string state, instance.Receive());
  return {};
}

/// Every round asks another container: they are taken up one after the other, and it
/// shall not always be the first.
Client StateClient(const Instances& instances) {
  return [&instances](size_t round) -> Result<Once> {
    Instance& asked = *instances[round * kStride % instances.size()];
    return [&asked] { return AskState(asked); };
  };
}

Client ExecClient(Lab& lab, const Instances& instances) {
  const auto count = std::make_shared<int>(0);
  return [&lab, &instances, count](size_t round) -> Result<Once> {
    Instance& asked = *instances[round * kStride % instances.size()];
    GANTRY_TRY(const std::string spec, ProcessSpec(lab.default_spec(), {"true"}));
    return [&lab, &asked, spec, count]() -> Status {
      const std::string exec = "x" + std::to_string((*count)++);
      Stdio stdio;
      GANTRY_CHECK_OK(stdio.Make(lab.bundles() + "/io-" + asked.id() + exec));
      Phases phases;
      return asked.Exec(exec, spec, stdio, phases);
    };
  };
}

/// Of a container that writes all the time.
Client StreamClient(const Instance& writer) {
  return [&writer](size_t) -> Result<Once> {
    return [fd = writer.stdio().out().get()]() -> Status {
      std::array<char, 4096> bytes;
      pollfd polled{fd, POLLIN, 0};
      if (poll(&polled, 1, kSilenceMs) != 1 || read(fd, bytes.data(), bytes.size()) <= 0) {
        return Fail(Code::kDeadlineExceeded, "read the container's stdout: nothing comes");
      }
      return {};
    };
  };
}

/// The longest wait of each round.
Result<std::vector<double>> Gaps(const Lab& lab, const Client& client,
                                 std::chrono::microseconds pace, Disturbance what, int rounds) {
  std::vector<double> gaps;
  for (int round = 0; round < rounds; ++round) {
    GANTRY_TRY(Once once, client(static_cast<size_t>(round)));
    Prober prober(pace, std::move(once));
    std::this_thread::sleep_for(kBefore);
    GANTRY_CHECK_OK(Disturb(lab, what));
    std::this_thread::sleep_for(kAfter);
    GANTRY_TRY(const double gap, prober.Stop());
    gaps.push_back(gap);
  }
  return gaps;
}

/// A row for each kind. `prefix`: "gap-"; `words`: what the client waits for.
Status AddRows(const Lab& lab, const Client& client, std::chrono::microseconds pace, int rounds,
               size_t count, const std::string& prefix, const std::string& words,
               const std::function<std::optional<double>(const Kind&)>& limit, Report& report) {
  GANTRY_TRY(const auto quiet, Gaps(lab, client, pace, Disturbance::kNone, rounds));
  for (const Kind& kind : kKinds) {
    GANTRY_TRY(const auto gaps, Gaps(lab, client, pace, kind.what, rounds));
    const std::string id = prefix + kind.name + "-" + std::to_string(count);
    Row row{.id = id,
            .what = "longest wait for " + words + ", the worst of " + std::to_string(rounds) +
                    " times " + kind.words + ", " + std::to_string(count) +
                    (count == 1 ? " container" : " containers") + "; undisturbed (as peer)",
            .unit = "ms",
            .ours = std::ranges::max(gaps),
            .peer = std::ranges::max(quiet),
            .target = "",
            .met = {}};
    const std::optional<double> most = limit(kind);
    report.Add(most ? std::move(row).AtMost(*most) : std::move(row));
    report.AddPart(id, "median of the rounds", Median(gaps), Median(quiet));
  }
  return {};
}

std::optional<double> NoLimit(const Kind& /*kind*/) { return std::nullopt; }

/// The time until each has answered a State, all asked when `what` happened.
Result<double> UntilAllAnswer(const Lab& lab, const Instances& instances, Disturbance what,
                              int rounds) {
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    const auto begin = Clock::now();
    GANTRY_CHECK_OK(Disturb(lab, what));
    for (const auto& instance : instances) {
      GANTRY_CHECK_OK(SendState(*instance));
    }
    for (const auto& instance : instances) {
      GANTRY_TRY([[maybe_unused]] const std::string state, instance->Receive());
    }
    times.push_back(MillisecondsSince(begin));
    std::this_thread::sleep_for(kAfter);
  }
  return Median(times);
}

/// Least squares. Units: ms for each container.
double Slope(const std::map<size_t, double>& points) {
  double x = 0;
  double y = 0;
  for (const auto& [count, time] : points) {
    x += static_cast<double>(count) / static_cast<double>(points.size());
    y += time / static_cast<double>(points.size());
  }
  double both = 0;
  double square = 0;
  for (const auto& [count, time] : points) {
    const double away = static_cast<double>(count) - x;
    both += away * (time - y);
    square += away * away;
  }
  return square == 0 ? 0 : both / square;
}

Status StreamRows(Lab& lab, int rounds, Report& report) {
  Instance writer(lab, lab.Gantry("crun"));
  GANTRY_CHECK_OK(writer.Run({"/bin/bench", "--tick"}));
  GANTRY_CHECK_OK(AddRows(
      lab, StreamClient(writer), std::chrono::microseconds(0), rounds, kUsual, "gap-stream-",
      "the next byte of a container that writes every millisecond",
      [](const Kind&) { return kStreamLimit; }, report));
  return writer.End();
}

}  // namespace

Status GapRows(Lab& lab, const Extent& extent, Report& report) {
  const int rounds = std::clamp(extent.rounds / 3, 1, 10);
  std::map<size_t, double> crashes;
  std::map<size_t, double> quiet;
  Instances instances;
  for (const size_t count : {size_t{1}, kUsual, size_t{500}}) {
    GANTRY_CHECK_OK(GrowTo(lab, instances, count));
    GANTRY_CHECK_OK(AddRows(
        lab, StateClient(instances), kTick, rounds, count, "gap-", "a State",
        [count](const Kind& kind) {
          return count == kUsual ? std::optional(kind.limit) : std::nullopt;
        },
        report));
    GANTRY_TRY(crashes[count], UntilAllAnswer(lab, instances, Disturbance::kCrash, rounds));
    GANTRY_TRY(quiet[count], UntilAllAnswer(lab, instances, Disturbance::kNone, rounds));
    if (count == kUsual) {
      GANTRY_CHECK_OK(AddRows(lab, ExecClient(lab, instances), std::chrono::microseconds(0), rounds,
                              count, "gap-exec-", "an exec of 'true'", NoLimit, report));
      GANTRY_CHECK_OK(StreamRows(lab, rounds, report));
    }
  }
  for (const auto& instance : instances) {
    GANTRY_CHECK_OK(instance->End());
  }
  report.Add(Row{
      .id = "recovery-slope",
      .what = "what each container adds to the time from kill -9 until all have answered a "
              "State, of 1, 100 and 500; undisturbed (as peer)",
      .unit = "ms",
      .ours = Slope(crashes),
      .peer = Slope(quiet),
      .target = "",
      .met = {}}.AtMost(kSlopeLimit));
  for (const auto& [count, time] : crashes) {
    report.AddPart("recovery-slope", std::to_string(count) + ": until all have answered", time,
                   quiet.at(count));
  }
  return {};
}

int WriteTicks() {
  for (;;) {
    if (write(STDOUT_FILENO, "x", 1) != 1) {
      return 1;
    }
    std::this_thread::sleep_for(kTick);
  }
}

}  // namespace gantry::bench
