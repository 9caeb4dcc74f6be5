// SPDX-License-Identifier: Apache-2.0
#include "tests/performance/bundle.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <nlohmann/json.hpp>

#include "tests/harness/host.h"

namespace gantry::bench {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

Result<Json> Parse(const std::string& text) {
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.is_object()) {
    return Fail(Code::kInternal, "read 'ctr oci spec': not JSON");
  }
  return json;
}

Result<UniqueFd> Fifo(const std::string& path, int flags) {
  if (mkfifo(path.c_str(), 0700) != 0) {
    return FailErrno(errno, "make fifo '{}'", path);
  }
  UniqueFd fd(open(path.c_str(), flags | O_NONBLOCK | O_CLOEXEC));
  if (!fd) {
    return FailErrno(errno, "open fifo '{}'", path);
  }
  return fd;
}

void SetProcess(Json& process, const std::vector<std::string>& argv) {
  process["args"] = argv;
  process["env"] = {"PATH=/bin"};
}

}  // namespace

Result<std::string> ContainerSpec(const std::string& default_spec, const std::string& cgroup,
                                  const std::vector<std::string>& argv) {
  GANTRY_TRY(Json spec, Parse(default_spec));
  SetProcess(spec["process"], argv);
  spec["root"] = {{"path", "rootfs"}};
  spec["linux"]["cgroupsPath"] = cgroup;
  if (argv.front().ends_with(".wasm")) {
    // By which crun knows a module; gantry looks at the file, too.
    spec["annotations"]["run.oci.handler"] = "wasm";
  }
  return spec.dump();
}

Result<std::string> ProcessSpec(const std::string& default_spec,
                                const std::vector<std::string>& argv, bool terminal) {
  GANTRY_TRY(Json spec, Parse(default_spec));
  SetProcess(spec["process"], argv);
  spec["process"]["terminal"] = terminal;
  return spec["process"].dump();
}

Status Stdio::Make(const std::string& prefix) {
  out_path_ = prefix + "-stdout";
  err_path_ = prefix + "-stderr";
  GANTRY_TRY(out_, Fifo(out_path_, O_RDONLY));
  GANTRY_TRY(err_, Fifo(err_path_, O_RDONLY));
  return {};
}

Stdio::~Stdio() {
  unlink(out_path_.c_str());
  unlink(err_path_.c_str());
}

Status Bundle::Make(const std::string& parent, const std::string& disk, const std::string& id,
                    const std::string& spec) {
  path_ = parent + "/" + id;
  layers_ = disk + "/" + id;
  std::error_code error;
  for (const std::string& folder : {path_ + "/rootfs", layers_ + "/upper", layers_ + "/work"}) {
    fs::create_directories(folder, error);
    if (error) {
      return FailErrno(error.value(), "make folder '{}'", folder);
    }
  }
  e2e::WriteText(path_ + "/config.json", spec);
  GANTRY_TRY(log_, Fifo(path_ + "/log", O_RDWR));
  return {};
}

std::vector<std::string> Bundle::MountOptions(const std::string& lower) const {
  return {"workdir=" + layers_ + "/work", "upperdir=" + layers_ + "/upper", "lowerdir=" + lower};
}

Bundle::~Bundle() {
  if (path_.empty()) {
    return;
  }
  umount2((path_ + "/rootfs").c_str(), MNT_DETACH);
  std::error_code error;
  fs::remove_all(path_, error);
  fs::remove_all(layers_, error);
}

}  // namespace gantry::bench
