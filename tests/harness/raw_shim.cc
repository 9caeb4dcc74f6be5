// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/raw_shim.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <filesystem>

#include <gantry/protowire.h>

namespace gantry::e2e {
namespace {

constexpr const char* kTaskService = "containerd.task.v2.Task";

}  // namespace

std::string WorkingSpec(const std::string& cgroup) {
  return R"({"ociVersion":"1.0.2","process":{"cwd":"/","args":["/bin/true"],"user":{"uid":0,"gid":0}},)"
         R"("root":{"path":"rootfs"},"linux":{"cgroupsPath":")" +
         cgroup + R"(","namespaces":[{"type":"pid"},{"type":"mount"}]}})";
}

RawShim::RawShim(const Node& node, const std::string& id, const std::string& handler)
    : node_(node),
      id_(id),
      bundle_(node.settings().root + "/raw/" + id),
      program_(node.settings().gantry_bin + "/containerd-shim-gantry-v1") {
  if (!handler.empty()) {
    // The name by which it is called chooses the handler.
    const std::string link = node.settings().root + "/containerd-shim-gantry-" + handler + "-v1";
    std::error_code exists;
    std::filesystem::create_symlink(program_, link, exists);
    program_ = link;
  }
  std::filesystem::create_directories(bundle_ + "/rootfs");
  WriteText(bundle_ + "/config.json", WorkingSpec("/" + node.settings().ns + "/" + id));
}

RawShim::~RawShim() {
  std::error_code error;
  std::filesystem::remove_all(bundle_, error);
}

Output RawShim::Execute(const std::string& id, const std::string& action,
                        const std::string& input) {
  Program::Options options;
  options.input = true;
  options.env = {{"GANTRY_RUN_DIR", node_.settings().run_dir},
                 {"GANTRY_CONFIG", node_.settings().root + "/gantry.yaml"},
                 {"MAX_SHIM_VERSION", "2"},
                 {"NAMESPACE", node_.settings().ns},
                 {"GRPC_ADDRESS", node_.address()},
                 {"TTRPC_ADDRESS", node_.address() + ".ttrpc"}};
  // The bundle is the working directory, as with containerd.
  std::vector<std::string> words{"env",
                                 "-C",
                                 bundle_,
                                 program_,
                                 "-namespace",
                                 node_.settings().ns,
                                 "-address",
                                 node_.address(),
                                 "-publish-binary",
                                 "/bin/false",
                                 "-id",
                                 id};
  if (action == "delete") {
    words.insert(words.end(), {"-bundle", bundle_});
  }
  words.push_back(action);
  Program program(words, options);
  program.Write(input);
  program.CloseInput();
  return program.Finish();
}

Output RawShim::Start() {
  Output output = Execute(id_, "start");
  const size_t at = output.out.find("unix://");
  if (output.status == 0 && at != std::string::npos) {
    socket_ = output.out.substr(at + 7, output.out.find_first_of("\"\n", at) - at - 7);
  }
  return output;
}

Output RawShim::Delete() { return Execute(id_, "delete"); }

UniqueFd RawShim::Dial() const {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_.size() >= sizeof(address.sun_path)) {
    return {};
  }
  std::memcpy(address.sun_path, socket_.data(), socket_.size());
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return {};
  }
  return fd;
}

Status RawShim::Call(const std::string& method, const std::string& payload, Duration timeout) {
  return CallService(kTaskService, method, payload, timeout);
}

Result<std::string> RawShim::Ask(const std::string& method, const std::string& payload,
                                 Duration timeout) {
  GANTRY_TRY(auto client, rpc::BlockingClient::Connect(socket_));
  return client.Call(kTaskService, method, payload, timeout);
}

Status RawShim::CallService(const std::string& service, const std::string& method,
                            const std::string& payload, Duration timeout) {
  GANTRY_TRY(auto client, rpc::BlockingClient::Connect(socket_));
  GANTRY_CHECK_OK(client.Call(service, method, payload, timeout));
  return {};
}

std::string RawShim::IdRequest() const {
  ProtoWriter request;
  request.Text(1, id_);
  return request.Take();
}

std::string RawShim::CreateRequest(const std::string& bundle) const {
  ProtoWriter request;
  request.Text(1, id_);
  request.Text(2, bundle);
  return request.Take();
}

}  // namespace gantry::e2e
