// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/wasm/program/guest_fixture.h"

#include <fcntl.h>
#include <unistd.h>

#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/memfd.h>

namespace gantry::wasm {

GuestProcess::GuestProcess(FakeSandboxContext& sandbox, const std::string& exec)
    : context_("c1", exec),
      gated_(sandbox, context_, exec.empty() ? "init/c1" : "exec/c1/" + exec) {}

Status GuestProcess::Make(GatedRequest request, const std::string& script,
                          std::vector<std::string> words) {
  if (!request.terminal) {
    GANTRY_TRY(client_, context_.OpenStreams());
  }
  const UniqueFd program(open(GANTRY_WASM_PROGRAM, O_RDONLY | O_CLOEXEC));
  request.name = "gantry-wasm";
  request.words = std::move(words);
  GANTRY_TRY(UniqueFd artifact, SealedMemfd("artifact", script, MemfdUse::kRead));
  request.fds.emplace_back("artifact", std::move(artifact));
  return gated_.Make(program, std::move(request));
}

std::string GuestProcess::Rest() {
  const uint32_t code = End();
  return ReadStream(client_.out) + ReadStream(client_.err) + Format("exit {}", code);
}

void GuestProcess::Say(const std::string& text) {
  EXPECT_EQ(write(client_.in.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

std::string GuestProcess::Output(const std::string& wanted) const {
  return ReadStream(client_.out, wanted);
}

void GuestProcess::Signal(int number) const {
  const Status sent = host()->Signal(number);
  EXPECT_TRUE(sent) << sent.error().message;
}

void GuestTest::SetUp() {
  if (geteuid() != 0) {
    GTEST_SKIP() << "makes containers, which needs root";
  }
}

GatedRequest GuestTest::RequestOf(const container::Config& config) const {
  GatedRequest request;
  request.id = "c1";
  request.bundle = bundle_.path();
  request.spec_json = container::Bundle::TextOf(config);
  return request;
}

std::string GuestTest::Run(const std::string& script, const container::Config& config,
                           std::vector<std::string> words) {
  GuestProcess guest(sandbox_);
  Status status = guest.Make(RequestOf(config), script, std::move(words));
  if (status) {
    status = guest.Open();
  }
  return status ? guest.Rest()
                : Format("{}: {}", CodeName(status.error().code), status.error().message);
}

std::unique_ptr<GuestProcess> GuestTest::Made(const std::string& script,
                                              const container::Config& config) {
  auto guest = std::make_unique<GuestProcess>(sandbox_);
  const Status made = guest->Make(RequestOf(config), script, {"--kind=module"});
  EXPECT_TRUE(made) << made.error().message;
  return guest;
}

}  // namespace gantry::wasm
