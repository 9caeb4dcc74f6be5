// SPDX-License-Identifier: Apache-2.0
//
// A guest whose module the node has never seen: gantry compiles it while Create is under way, the
// peer interprets it.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/harness/host.h"
#include "tests/performance/figures.h"
#include "tests/performance/instance.h"
#include "tests/performance/output.h"
#include "tests/performance/wasm_lab.h"
#include "tests/performance/wasm_rows.h"

namespace gantry::bench {
namespace {

/// `words.wasm` with one custom section more, which has that name and nothing in it: the same
/// program with a digest of its own. The name and its length are shorter than 128 bytes.
std::string Unseen(const std::string& module, const std::string& name) {
  const std::string section = static_cast<char>(name.size()) + name;
  return module + '\0' + static_cast<char>(section.size()) + section;
}

/// A file of the lab's root while it is needed.
class UnseenModule {
 public:
  UnseenModule(const Lab& lab, const std::string& module, const std::string& name)
      : in_root_("/" + name + ".wasm"), path_(lab.rootfs() + in_root_) {
    const std::string bytes = Unseen(module, name);
    size_ = static_cast<double>(bytes.size());
    e2e::WriteText(path_, bytes);
    // crun looks whether it may be executed.
    std::filesystem::permissions(path_, std::filesystem::perms(0755));
  }

  UnseenModule(const UnseenModule&) = delete;
  UnseenModule& operator=(const UnseenModule&) = delete;

  ~UnseenModule() { unlink(path_.c_str()); }

  const std::string& in_root() const { return in_root_; }

  double megabytes() const { return size_ / 1e6; }

 private:
  const std::string in_root_;
  const std::string path_;
  double size_ = 0;
};

struct First {
  Phases start;
  /// Of what ended during Create, which with gantry is the compiler. Seconds for each MB.
  double compile_cpu = 0;
};

Result<First> OneFirst(Lab& lab, const Side& side, const std::string& module) {
  Instance instance(lab, side);
  const UnseenModule unseen(lab, module, instance.id());
  GANTRY_CHECK_OK(instance.Prepare({unseen.in_root()}));
  GANTRY_CHECK_OK(instance.StartShim());
  GANTRY_CHECK_OK(instance.Connect());
  const std::vector<pid_t> pids = Processes(lab, side);
  First first;
  const double cpu_before = EndedChildrenMilliseconds(pids);
  const auto begin = Clock::now();
  GANTRY_CHECK_OK(instance.Create());
  const double create = MillisecondsSince(begin);
  // The guest's own process has not ended.
  const double cpu = EndedChildrenMilliseconds(pids) - cpu_before;
  const auto middle = Clock::now();
  GANTRY_CHECK_OK(instance.SendStart());
  GANTRY_CHECK_OK(AwaitOutput(instance.stdio(), instance.id()));
  first.start.Add("Create", create);
  first.start.Add("Start to the first byte", MillisecondsSince(middle));
  first.compile_cpu = cpu / 1000 / unseen.megabytes();
  GANTRY_CHECK_OK(instance.Receive());
  GANTRY_CHECK_OK(instance.Wait(0));
  GANTRY_CHECK_OK(instance.Delete());
  GANTRY_CHECK_OK(instance.Shutdown());
  GANTRY_CHECK_OK(instance.DeleteShim());
  return first;
}

}  // namespace

Status WasmFirstRows(Lab& lab, const Extent& extent, Report& report) {
  const std::string module = e2e::ReadText(lab.settings().guests + "/words.wasm");
  const Side ours = WasmSide(lab);
  const Side peer = WasmPeer(lab);
  std::vector<double> compile_cpu;
  const auto our_start = [&]() -> Result<Phases> {
    GANTRY_TRY(First first, OneFirst(lab, ours, module));
    compile_cpu.push_back(first.compile_cpu);
    return std::move(first.start);
  };
  const auto peer_start = [&]() -> Result<Phases> {
    GANTRY_TRY(First first, OneFirst(lab, peer, module));
    return std::move(first.start);
  };
  GANTRY_TRY(const Pair pair, Alternate(1, std::max(1, extent.rounds / 3), our_start, peer_start));
  const std::string size = std::to_string(module.size() / 1000) + " KB";
  report.Add(Row{.id = "wasm-first",
                 .what = "Create to the first byte of a module of " + size +
                         " that the node has never seen; the peer interprets it",
                 .unit = "ms",
                 .ours = pair.ours.MedianTotal(),
                 .peer = pair.peer.MedianTotal(),
                 .target = "",
                 .met = {}});
  report.AddPhases("wasm-first", pair);
  report.Add(Row{
      .id = "wasm-compile",
      .what = "processor time of its compile for each MB of it",
      .unit = "s/MB",
      .ours = Median(compile_cpu),
      .peer = {},
      .target = "",
      .met = {}}.AtMost(2.5));
  return {};
}

}  // namespace gantry::bench
