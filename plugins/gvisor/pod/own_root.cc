// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/pod/own_root.h"

#include <fcntl.h>
#include <linux/capability.h>

#include <array>
#include <cerrno>
#include <utility>

#include <gantry/format.h>

namespace gantry::gvisor {

PauseSpecRequest OwnRootOf(const SandboxRequest& request, const PodConfig& config) {
  PauseSpecRequest asked;
  asked.hostname = config.hostname;
  if (config.network == NamespaceMode::kNode) {
    asked.network.reset();
  } else {
    asked.network = request.netns_path;
  }
  asked.sysctls = config.sysctls;
  if (config.user == NamespaceMode::kPod) {
    asked.uids = config.uids;
    asked.gids = config.gids;
  }
  asked.annotations = request.annotations;
  for (const auto& [key, value] : config.annotations) {
    if (IsOfVolumes(key)) {
      asked.annotations[key] = value;
      asked.annotations[kPodUid] = config.uid;
    }
  }
  return asked;
}

Result<Spec> MakeOwnRootSpec(PauseSpecRequest asked, const std::string& bundle,
                             const Overlay& overlay) {
  asked.root = bundle;
  return MakeSpec({.json = PauseSpec(asked),
                   .rootfs = bundle,
                   .bundle = bundle,
                   .kind = ContainerKind::kOwnRoot},
                  overlay);
}

Status SetHostname(Pod& pod, const std::string& name, Deadline deadline) {
  const std::string what = Format("name the sandbox '{}'", name);
  const UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null) {
    return FailErrno(errno, "open '/dev/null'");
  }
  const std::string root = pod.RootId();
  ExecArgs args;
  args.container = root;
  args.argv = {"/pause", name};
  args.cwd = "/";
  oci::Capabilities admin;
  admin.bounding = uint64_t{1} << CAP_SYS_ADMIN;
  admin.effective = admin.bounding;
  admin.permitted = admin.bounding;
  args.capabilities = std::move(admin);
  const auto sentry = pod.sentry();
  if (!sentry) {
    return Fail(Code::kUnavailable, "{}: its sentry has ended", what);
  }
  const std::array<int, 3> fds = {null.get(), null.get(), null.get()};
  auto executed = sentry->Execute(args, fds, deadline);
  if (!executed) {
    return std::unexpected(ToError(executed.error(), what));
  }
  urpc::Connection& call = executed->connection;
  const std::string whose = WaitPidArg(root, executed->pid);
  if (const auto asked = call.Send({.method = kWaitPid, .arg = whose}, deadline); !asked) {
    return std::unexpected(ToError(asked.error(), what));
  }
  const auto word = ContainerManager::PeekWait(call, deadline);
  if (!word) {
    return std::unexpected(ToError(word.error(), what));
  }
  if (word->status() != 0) {
    return Fail(Code::kInternal, "{}: its program ended with {}", what, word->status());
  }
  return {};
}

}  // namespace gantry::gvisor
