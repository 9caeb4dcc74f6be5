// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/wasm/backend/fixture.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/helper.h>
#include <gantry/toolkit/files/files.h>

namespace gantry::wasm {
namespace {

/// Called as gantry-wasm is: it writes its words into the bundle, says its pid, waits at its gate
/// and ends with 42; where nobody opens that, with 1. It answers when its parent has ended, who
/// could collect it else, and nobody would see its end. Asked what it is, it says that.
constexpr const char* kStandIn = R"(#!/bin/sh
[ "$1" != describe ] || exec echo wasmedge stand-in
for word in "$@"; do
  case "$word" in
    --bundle=*) bundle=${word#--bundle=} ;;
    --gate=*) gate=${word#--gate=} ;;
  esac
done
printf '%s\n' "$@" >"$bundle/words"
rm -f "$bundle/parent"
mkfifo "$bundle/parent"
(
  {
    read -r pid
    read -r end
  } <"$bundle/parent"
  echo '{"made":{"pid":'"$pid"'}}' >&"$gate"
  byte=$(head -c 1 <&"$gate")
  [ -n "$byte" ] || exit 1
  echo '{"started":{}}' >&"$gate"
  exit 42
) &
exec 9>"$bundle/parent"
echo $! >&9
)";

}  // namespace

Result<CompiledModule> FakeArtifacts::Get(const ModuleBytes& module, const Asker& who,
                                          std::chrono::milliseconds allowed) {
  ++asked;
  functions = module.functions;
  asker = who;
  limit = allowed;
  GANTRY_CHECK_OK(answer);
  GANTRY_TRY(UniqueFd file, module.file.Duplicate());
  return CompiledModule{.file = std::move(file), .kind = kind};
}

std::vector<BackendCount> FakeArtifacts::Counts() const {
  return {{.handler = "", .name = "compiles", .value = 1}};
}

void WasmBackendTest::SetUp() {
  ASSERT_EQ(geteuid(), 0U) << "needs root";
  for (const char* folder : {"proc", "dev", "bin"}) {
    std::filesystem::create_directories(root_.rootfs() + "/" + folder);
  }
  for (const char* path : {"/bin/busybox", "/usr/bin/busybox", "/usr/local/bin/busybox"}) {
    if (std::filesystem::exists(path)) {
      std::filesystem::copy_file(path, root_.rootfs() + "/bin/busybox",
                                 std::filesystem::copy_options::overwrite_existing);
    }
  }
  std::filesystem::create_symlink("busybox", root_.rootfs() + "/bin/sh");
  ASSERT_TRUE(WriteFile(root_.bundle() + "/gantry-wasm", kStandIn, 0755));
  MakeBackendWith("");
}

void WasmBackendTest::MakeBackendWith(const std::string& options, bool with_engine) {
  sandbox_.reset();
  Parts parts;
  parts.open_program = [path = root_.bundle() + "/gantry-wasm",
                        edge = wasmedge_](std::string_view name) -> Result<UniqueFd> {
    if (name == kWasmEdgeProgram && !edge.empty()) {
      // A script is opened again by who interprets it.
      return UniqueFd(open(edge.c_str(), O_RDONLY));  // NOLINT(android-cloexec-open)
    }
    if (name != "gantry-wasm") {
      return OpenHelper(name);
    }
    return UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  };
  parts.make_artifacts = [this, with_engine](SandboxContext&, const Options&) {
    auto made = with_engine ? std::make_unique<FakeArtifacts>() : nullptr;
    artifacts_ = made.get();
    return made;
  };
  if (images_) {
    parts.find_in_image = [this](SandboxContext&, const ImageModule& wanted) {
      asked_image_ = wanted;
      return images_();
    };
  }
  backend_ = MakeBackend(options, std::move(parts)).value();
  backend_->Attach(own_, {});
  SandboxRequest request;
  request.ns = Namespace::Parse("k8s.io").value();
  request.containerd_address = containerd_address_;
  sandbox_ = backend_->CreateSandbox(request, context_).value();
}

void WasmBackendTest::RestartEngine() {
  sandbox_.reset();
  context_.RestartEngine();
  container_.RestartEngine();
  sandbox_ = backend_->RecoverSandbox({}, context_, context_.blob).value();
}

std::string WasmBackendTest::ProcessOf(const std::string& args) {
  return Format(
      R"({{"args": {}, "cwd": "/", "env": ["PATH=/bin"], "user": {{"uid": 0, "gid": 0}}}})", args);
}

ContainerRequest WasmBackendTest::Request(const std::string& args, const std::string& more) const {
  ContainerRequest request;
  request.id = ContainerId::Parse("c1").value();
  request.bundle = root_.bundle();
  request.rootfs = root_.rootfs();
  request.spec_json = R"({"ociVersion": "1.0.2", "root": {"path": "rootfs"}, "hostname": "made",
    "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"},
               {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"}],
    "linux": {"namespaces": [{"type": "pid"}, {"type": "mount"}, {"type": "uts"}]},
    "process": )" + ProcessOf(args) +
                      more + "}";
  return request;
}

Result<std::unique_ptr<Container>> WasmBackendTest::Create(const std::string& args,
                                                           const std::string& more) {
  request_ = Request(args, more);
  return sandbox_->CreateContainer(request_, container_);
}

std::vector<std::string> WasmBackendTest::Words() const {
  std::ifstream file(root_.bundle() + "/words");
  std::vector<std::string> words;
  for (std::string line; std::getline(file, line);) {
    words.push_back(line);
  }
  return words;
}

}  // namespace gantry::wasm
