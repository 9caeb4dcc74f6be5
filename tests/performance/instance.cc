// SPDX-License-Identifier: Apache-2.0
#include "tests/performance/instance.h"

#include <algorithm>
#include <cctype>

#include <gantry/protowire.h>

namespace gantry::bench {
namespace {

constexpr uint32_t kKilled = 137;

std::string Any(std::string_view type, std::string_view value) {
  ProtoWriter any;
  any.Text(1, type);
  any.Bytes(2, value);
  return any.Take();
}

/// The socket in an answer to `start`: BootstrapResult, JSON or plain.
Result<std::string> SocketOf(const std::string& answer) {
  constexpr std::string_view kScheme = "unix://";
  const size_t begin = answer.find(kScheme);
  if (begin == std::string::npos) {
    return Fail(Code::kInternal, "read the answer of start: no unix address in '{}'", answer);
  }
  // What follows the path in any of the three is outside the letters of ours.
  const size_t path = begin + kScheme.size();
  const auto end = std::find_if(
      answer.begin() + static_cast<ptrdiff_t>(path), answer.end(), [](unsigned char c) {
        return std::isalnum(c) == 0 && c != '/' && c != '-' && c != '.' && c != '_';
      });
  return std::string(answer.begin() + static_cast<ptrdiff_t>(path), end);
}

}  // namespace

Instance::Instance(Lab& lab, const Side& side) : lab_(lab), side_(side), id_(lab.NewId(side)) {}

Instance::~Instance() {
  if (started_) {
    IgnoreError(Kill(), "it may have ended");
    IgnoreError(Delete(), "it may be gone");
    IgnoreError(Shutdown(), "so may the shim");
    IgnoreError(DeleteShim(), "the run's end looks again");
  }
}

Status Instance::Prepare(const std::vector<std::string>& argv, const SpecChange& change) {
  const std::string cgroup =
      side_.systemd_cgroup ? "system.slice:gantry-bench:" + id_ : "/" + lab_.ns() + "/" + id_;
  GANTRY_TRY(std::string spec, ContainerSpec(lab_.default_spec(), cgroup, argv));
  if (change) {
    GANTRY_TRY(spec, change(spec));
  }
  GANTRY_CHECK_OK(bundle_.Make(lab_.bundles(), lab_.disk(), id_, spec));
  bundle_path_ = bundle_.path();
  return stdio_.Make(lab_.bundles() + "/io-" + id_);
}

std::string Instance::RuntimeOptions() const {
  if (side_.oci.empty()) {
    return "";
  }
  ProtoWriter options;
  options.Text(6, side_.oci);
  if (side_.systemd_cgroup) {
    options.Varint(9, 1);
  }
  return Any("containerd.runc.v1.Options", options.str());
}

std::string Instance::BootstrapParams() const {
  ProtoWriter extension;
  extension.Text(1, RuntimeOptions());
  ProtoWriter params;
  params.Text(1, id_);
  params.Text(2, lab_.ns());
  params.Text(4, lab_.release());
  params.Text(5, lab_.address() + ".ttrpc");
  params.Text(6, lab_.address());
  params.Text(7, lab_.containerd_program());
  params.Text(8, extension.str());
  params.Text(9, lab_.socket_dir());
  return params.Take();
}

/// The command line and environment that containerd 2.3 gives a shim.
Command Instance::ShimCommand(const std::vector<std::string>& action) const {
  Command command;
  command.argv = {side_.shim,
                  "-namespace",
                  lab_.ns(),
                  "-address",
                  lab_.address(),
                  "-publish-binary",
                  lab_.containerd_program(),
                  "-id",
                  id_};
  command.argv.insert(command.argv.end(), action.begin(), action.end());
  command.folder = bundle_path_;
  command.env = side_.env;
  command.env.insert({{"GOMAXPROCS", "2"},
                      {"MAX_SHIM_VERSION", "2"},
                      {"TTRPC_ADDRESS", lab_.address() + ".ttrpc"},
                      {"GRPC_ADDRESS", lab_.address()},
                      {"NAMESPACE", lab_.ns()}});
  return command;
}

Result<double> Instance::StartShim() {
  Command command = ShimCommand({"start"});
  command.input = BootstrapParams();
  GANTRY_TRY(const Finished finished, bench::Run(command));
  GANTRY_TRY(socket_, SocketOf(finished.out));
  started_ = true;
  return finished.milliseconds;
}

Result<double> Instance::DeleteShim() {
  started_ = false;
  GANTRY_TRY(const Finished finished, bench::Run(ShimCommand({"-bundle", bundle_path_, "delete"})));
  return finished.milliseconds;
}

Status Instance::Connect() {
  GANTRY_TRY(rpc::BlockingClient client, rpc::BlockingClient::Connect(socket_));
  client_ = std::make_unique<rpc::BlockingClient>(std::move(client));
  return {};
}

Status Instance::ConnectTo(const Instance& other) {
  id_ = other.id_;
  socket_ = other.socket_;
  return Connect();
}

Result<std::string> Instance::Call(const std::string& method, std::string payload,
                                   std::string_view service) {
  GANTRY_CHECK_OK(Send(method, std::move(payload), service));
  return Receive();
}

Status Instance::Send(const std::string& method, std::string payload, std::string_view service) {
  if (client_ == nullptr) {
    return Fail(Code::kUnavailable, "call '{}': not connected", method);
  }
  sent_ = method;
  GANTRY_TRY(stream_, client_->Send(std::string(service), method, std::move(payload), side_.limit,
                                    {{std::string(rpc::kNamespaceKey), lab_.ns()}}));
  return {};
}

Result<std::string> Instance::Receive() {
  auto answer = client_->Receive(stream_, side_.limit);
  if (!answer) {
    return std::unexpected(
        std::move(answer).error().Within((side_.stock ? "stock shim: " : "gantry: ") + sent_));
  }
  return answer;
}

std::string Instance::CreateRequest() const {
  ProtoWriter mount;
  if (!bundle_.path().empty()) {
    mount.Text(1, "overlay");
    mount.Text(2, "overlay");
    for (const std::string& option : bundle_.MountOptions(lab_.rootfs())) {
      mount.Text(4, option);
    }
  }
  ProtoWriter request;
  request.Text(1, id_);
  request.Text(2, bundle_path_);
  request.Text(3, mount.str());
  request.Text(6, out_uri_.empty() ? stdio_.out_path() : out_uri_);
  request.Text(7, out_uri_.empty() ? stdio_.err_path() : "");
  request.Text(10, RuntimeOptions());
  return request.Take();
}

std::string Instance::ProcessRequest(const std::string& exec_id) const {
  ProtoWriter request;
  request.Text(1, id_);
  request.Text(2, exec_id);
  return request.Take();
}

Status Instance::Create() {
  GANTRY_CHECK_OK(Call("Create", CreateRequest()));
  return {};
}

Status Instance::Start() {
  GANTRY_CHECK_OK(SendStart());
  GANTRY_CHECK_OK(Receive());
  return {};
}

Status Instance::SendStart() { return Send("Start", ProcessRequest("")); }

Status Instance::Wait(uint32_t expected) {
  GANTRY_TRY(const std::string answer, Call("Wait", ProcessRequest("")));
  uint64_t status = 0;
  ProtoReader in(answer);
  while (in.Next()) {
    status = in.field() == 1 ? in.number() : status;
  }
  if (status != expected) {
    return Fail(Code::kInternal, "wait for '{}': status {}, not {}", id_, status, expected);
  }
  return {};
}

Status Instance::Kill(uint32_t signal) {
  ProtoWriter request;
  request.Text(1, id_);
  request.Varint(3, signal);
  GANTRY_CHECK_OK(Call("Kill", request.Take()));
  return {};
}

Status Instance::Delete() {
  GANTRY_CHECK_OK(Call("Delete", ProcessRequest("")));
  return {};
}

Status Instance::Shutdown() {
  // The stock shim may be gone before its answer is out.
  IgnoreError(Call("Shutdown", ProcessRequest("")), "closed while answering");
  client_.reset();
  return {};
}

Status Instance::Run(const std::vector<std::string>& argv, const SpecChange& change) {
  GANTRY_CHECK_OK(Prepare(argv, change));
  GANTRY_CHECK_OK(StartShim());
  GANTRY_CHECK_OK(Connect());
  GANTRY_CHECK_OK(Create());
  return Start();
}

Status Instance::End() {
  GANTRY_CHECK_OK(Kill());
  GANTRY_CHECK_OK(Wait(kKilled));
  GANTRY_CHECK_OK(Delete());
  GANTRY_CHECK_OK(Shutdown());
  GANTRY_CHECK_OK(DeleteShim());
  return {};
}

Status Instance::TimedCall(const std::string& method, std::string payload, Phases& phases) {
  const auto begin = Clock::now();
  GANTRY_CHECK_OK(Call(method, std::move(payload)));
  phases.Add(method, MillisecondsSince(begin));
  return {};
}

Status Instance::BeginExec(const std::string& exec_id, const std::string& spec, const Stdio& stdio,
                           bool terminal, Phases& phases) {
  ProtoWriter request;
  request.Text(1, id_);
  request.Text(2, exec_id);
  request.Varint(3, terminal ? 1 : 0);
  request.Text(5, stdio.out_path());
  request.Text(6, terminal ? "" : stdio.err_path());
  request.Bytes(7, Any("types.containerd.io/opencontainers/runtime-spec/1/Process", spec));
  GANTRY_CHECK_OK(TimedCall("Exec", request.Take(), phases));
  return TimedCall("Start", ProcessRequest(exec_id), phases);
}

Status Instance::FinishExec(const std::string& exec_id, Phases& phases) {
  GANTRY_CHECK_OK(TimedCall("Wait", ProcessRequest(exec_id), phases));
  return TimedCall("Delete", ProcessRequest(exec_id), phases);
}

Status Instance::Exec(const std::string& exec_id, const std::string& spec, const Stdio& stdio,
                      Phases& phases) {
  GANTRY_CHECK_OK(BeginExec(exec_id, spec, stdio, false, phases));
  return FinishExec(exec_id, phases);
}

}  // namespace gantry::bench
