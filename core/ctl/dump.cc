// SPDX-License-Identifier: Apache-2.0
//
// Each part is collected by itself, and none is needed for another: where the engine hangs there is
// what the keeper says, where that is dead what files say. Waiting is bounded.
#include "core/ctl/dump.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string_view>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "core/config/config.h"
#include "core/ctl/client.h"
#include "core/ctl/doctor.h"
#include "core/ctl/dump_state.h"
#include "core/ctl/node.h"
#include "core/ctl/output.h"
#include "core/ctl/redact.h"
#include "core/ctl/run_tool.h"
#include "core/ctl/scrape.h"
#include "core/ctl/show.h"
#include "core/ctl/trace.h"
#include "core/os/fs.h"
#include "core/trace/ring.h"

namespace gantry::ctl {
namespace {

constexpr size_t kLogTail = size_t{2} << 20;
constexpr size_t kMostConfig = size_t{1} << 20;
constexpr size_t kMostArchive = size_t{512} << 20;
constexpr auto kPackLimit = std::chrono::minutes(2);

/// One collection.
class Collector {
 public:
  explicit Collector(const Arguments& arguments)
      : arguments_(arguments), run_dir_(RunDirOf(arguments.address)) {}

  std::vector<DumpFile> Run() {
    Add("node.txt", "kernel, distribution, memory, load", NodeText());
    Configuration();
    Programs();
    Add("processes.txt", "gantry's own processes: threads, descriptors, limits", ProcessesText());
    Keeper();
    Engine();
    Metrics();
    Logs();
    Trace();
    Records();
    Add("doctor.txt", "what gantryctl doctor finds", FindingsTable(Examine(node_, config_)));
    return std::move(files_);
  }

 private:
  void Add(std::string name, std::string about, std::string_view text) {
    files_.push_back({std::move(name), std::move(about), RedactText(text)});
  }

  /// Or why there is none.
  void AddOrWhy(std::string name, std::string about, const Result<std::string>& text) {
    Add(std::move(name), std::move(about),
        std::string_view(text ? *text : "not to be had: " + text.error().message + "\n"));
  }

  void Configuration() {
    auto config = config::Load(arguments_.config);
    error_ = config ? std::string() : config.error().message;
    config_ = config ? std::move(*config) : config::Defaults();
    node_ = Node::Here(config_);
    const auto text = ReadFile(arguments_.config, kMostConfig);
    AddOrWhy("gantry.yaml", "the configuration, as it is read",
             text ? RedactYaml(*text) : Result<std::string>(std::unexpected(text.error())));
    if (!error_.empty()) {
      Add("configuration-error.txt", "why the configuration is not used", error_ + "\n");
    }
  }

  void Programs() {
    std::string text = "gantryctl " GANTRY_VERSION "\n";
    for (const std::string program : {"gantryd", "gantry-grpc"}) {
      const std::string path = Format("{}/{}", node_.libexec_dir, program);
      const auto line = Exists(path) ? FirstLineOf({path, "--version"})
                                     : Result<std::string>(Fail(Code::kNotFound, "absent"));
      text += Format("{}: {}\n", path, line ? *line : line.error().message);
    }
    for (const std::string program : {"containerd", "crun", "runc", "runsc"}) {
      if (const std::string path = node_.Find(program); !path.empty()) {
        const auto line = FirstLineOf({path, "--version"});
        text += Format("{}: {}\n", path, line ? *line : line.error().message);
      }
    }
    Add("versions.txt", "versions of gantry's programs and those beside it", text);
  }

  void Keeper() {
    auto keeper = QueryKeeper(arguments_.address);
    if (!keeper) {
      AddOrWhy("keeper.txt", "what the keeper says",
               Result<std::string>(std::unexpected(keeper.error())));
      return;
    }
    keeper_ = std::move(*keeper);
    std::string text = Format(
        "pid {}, started {}\nengine: {} pid {}, state {}, {} started, {} hung, {} gaps of {} ms in "
        "all\ninstances {}, sockets {}, connections {}, requests waiting {} ({} bytes), refused "
        "{}, "
        "replayed {}, dropped {}\nprocesses watched {}, exits kept {}, descriptors stored {}, "
        "deletes remembered {}\n",
        keeper_->keeper_pid, TimeText(keeper_->started_at_ns), keeper_->engine_path,
        keeper_->engine_pid, keeper_->engine_state, keeper_->engine_starts, keeper_->engine_hangs,
        keeper_->engine_gaps, keeper_->engine_gap_ns / 1'000'000, keeper_->instances.size(),
        keeper_->sockets, keeper_->connections, keeper_->requests_waiting, keeper_->request_bytes,
        keeper_->requests_refused, keeper_->requests_replayed, keeper_->requests_dropped,
        keeper_->processes_watched, keeper_->exits_kept, keeper_->descriptors_stored,
        keeper_->tombstones);
    for (const link::InstanceAdded& instance : keeper_->instances) {
      text +=
          Format("instance {} {}/{} of '{}' bundle {}{}{}\n", instance.number, instance.announce.ns,
                 instance.announce.id, instance.announce.group, instance.announce.bundle,
                 instance.forgotten ? ", forgotten" : "", instance.left_out ? ", left out" : "");
    }
    Add("keeper.txt", "what the keeper says", text);
  }

  void Engine() {
    auto client = OperatorClient::Connect(arguments_.address);
    auto status = client ? client->EngineStatus()
                         : Result<v1::StatusResponse>(std::unexpected(client.error()));
    if (!status) {
      AddOrWhy("status.txt", "what the engine says",
               Result<std::string>(std::unexpected(status.error())));
      return;
    }
    const link::KeeperStatus keeper = keeper_.value_or(link::KeeperStatus());
    Add("status.txt", "what the engine says", StatusText(*status, keeper, NowNs()));
    Add("status.json", "the same, all of it", StatusJson(*status, keeper));
    auto again = OperatorClient::Connect(arguments_.address);
    const auto list =
        again ? again->List("") : Result<v1::ListResponse>(std::unexpected(again.error()));
    AddOrWhy("ps.json", "sandboxes and containers",
             list ? Result<std::string>(ListJson(*list)) : std::unexpected(list.error()));
  }

  void Metrics() {
    if (!config_.metrics.address.empty()) {
      AddOrWhy("metrics.txt", "the page for Prometheus", ScrapeMetrics(config_.metrics.address));
    }
  }

  void Logs() {
    for (const std::string name :
         {"gantry.log", "gantry.log.1", "keeper.log", "keeper.log.1", "gantry-grpc.log"}) {
      if (const std::string path = Format("{}/{}", run_dir_, name); Exists(path)) {
        AddOrWhy("logs/" + name, "its last 2 MiB", ReadTail(path, kLogTail));
      }
    }
  }

  void Trace() {
    const auto steps = trace::ReadRing(run_dir_);
    if (!steps) {
      AddOrWhy("trace.txt", "the flight recorder",
               Result<std::string>(std::unexpected(steps.error())));
      return;
    }
    Add("trace.txt", "the flight recorder, as gantryctl trace --all shows it",
        TraceTable(*steps, *steps, false));
    Add("trace.json", "the same, all of it", TraceJson(*steps, *steps));
  }

  void Records() {
    const std::string& socket = config_.grpc.containerd;
    const std::vector<std::string> bundles =
        BundlesOf(keeper_ ? &*keeper_ : nullptr,
                  {socket.substr(0, std::max<size_t>(socket.rfind('/'), 1)), "/run/containerd",
                   "/run/k3s/containerd", "/run/docker/containerd"});
    for (const std::string& bundle : bundles) {
      std::string name = bundle;
      std::ranges::replace(name, '/', '_');
      name = name.substr(name.size() > 200 ? name.size() - 200 : 0);
      AddOrWhy("records/" + name + ".json", "record of a container or sandbox", RecordText(bundle));
    }
  }

  const Arguments& arguments_;
  const std::string run_dir_;
  config::Config config_;
  std::string error_;
  Node node_;
  std::optional<link::KeeperStatus> keeper_;
  std::vector<DumpFile> files_;
};

std::string Contents(const std::vector<DumpFile>& files) {
  Table table({"FILE", "BYTES", "WHAT"});
  size_t records = 0;
  for (const DumpFile& file : files) {
    if (file.name.starts_with("records/")) {
      ++records;
    } else {
      table.Add({file.name, std::to_string(file.text.size()), file.about});
    }
  }
  table.Add({"records/", "", Format("{} records of containers and sandboxes", records)});
  return table.str();
}

std::string Readme(const std::vector<DumpFile>& files) {
  return Format(
      "What gantryctl {} found on a node at {}.\n\n{}\n"
      "Left out: environments and commands of containers and execs, options and saved states of "
      "backends in\nrecords, values of annotations, and whatever stands behind a name such as "
      "token, "
      "password, secret or key,\nalso in the logs. Names of containers, paths, addresses and "
      "messages "
      "of errors are in it: look through\nit before you give it to others.\n",
      GANTRY_VERSION, TimeText(NowNs()), Contents(files));
}

Status WriteAll(const std::string& dir, const std::vector<DumpFile>& files) {
  for (const DumpFile& file : files) {
    if (const size_t slash = file.name.find('/'); slash != std::string::npos) {
      GANTRY_CHECK_OK(os::MakeDirs(Format("{}/{}", dir, file.name.substr(0, slash)), 0700));
    }
    GANTRY_CHECK_OK(WriteFile(Format("{}/{}", dir, file.name), file.text, 0600));
  }
  return WriteFile(dir + "/README.txt", Readme(files), 0600);
}

std::string DefaultArchive() {
  const std::chrono::sys_time<std::chrono::nanoseconds> now{std::chrono::nanoseconds(NowNs())};
  return Format("gantry-debug-{:%Y%m%dT%H%M%S}Z.tar.gz",
                std::chrono::floor<std::chrono::seconds>(now));
}

}  // namespace

std::vector<DumpFile> CollectDump(const Arguments& arguments) { return Collector(arguments).Run(); }

Status PackDump(const std::vector<DumpFile>& files, const std::string& archive) {
  if (Exists(archive)) {
    return Fail(Code::kAlreadyExists, "write '{}': it exists; name another file", archive);
  }
  GANTRY_TRY(const os::TempDir dir, os::TempDir::Create());
  const std::string content = dir.path() + "/gantry-debug";
  GANTRY_CHECK_OK(os::MakeDirs(content, 0700));
  GANTRY_CHECK_OK(WriteAll(content, files));
  const std::string path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  const auto tar = FindInPath(path, "tar");
  if (!tar) {
    return Fail(Code::kNotFound, "write '{}': tar, which packs it, is not installed", archive);
  }
  // Nobody else may read it, from its first byte on.
  GANTRY_CHECK_OK(WriteFile(archive, "", 0600));
  const auto packed =
      OutputOf({*tar, "-C", dir.path(), "-czf", archive, "gantry-debug"}, kPackLimit, kMostArchive);
  if (!packed) {
    IgnoreError(RemoveFile(archive), "the error below is the one to tell");
    return std::unexpected(Error(packed.error()).Within(Format("write '{}'", archive)));
  }
  return {};
}

Result<std::string> Debug(const Arguments& arguments) {
  if (arguments.operands.front() != "dump") {
    return Fail(Code::kInvalidArgument, "debug: there is 'debug dump [FILE]' and nothing else");
  }
  const std::string archive =
      arguments.operands.size() > 1 ? arguments.operands[1] : DefaultArchive();
  if (Exists(archive)) {
    return Fail(Code::kAlreadyExists, "debug dump: '{}' exists; name another file", archive);
  }
  const std::vector<DumpFile> files = CollectDump(arguments);
  GANTRY_CHECK_OK(PackDump(files, archive));
  return Format(
      "{} holds what follows; secrets are left out as far as they can be told, so look through it "
      "before you\ngive it to others.\n\n{}",
      archive, Contents(files));
}

}  // namespace gantry::ctl
