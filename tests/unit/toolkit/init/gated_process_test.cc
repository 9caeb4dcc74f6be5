// SPDX-License-Identifier: Apache-2.0
//
// A process that gantry-init makes, over restarts of the engine; and what stands for gantry-init
// and does what that one never does.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/testing/process_context.h>
#include <gantry/testing/sandbox_context.h>
#include <gantry/toolkit/descriptors/memfd.h>
#include <gantry/toolkit/init/gated_process.h>

#include "tests/unit/toolkit/container/bundle.h"

namespace gantry::container {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::chrono::seconds kGatedLimit{20};
constexpr const char* kTag = "init/c1";

class GatedProcessTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "needs root to make containers";
    }
    program_.reset(open(GANTRY_INIT, O_RDONLY | O_CLOEXEC));
    ASSERT_TRUE(program_);
  }

  /// A program in place of gantry-init.
  void Script(const std::string& body) {
    const std::string path = bundle_.path() + "/script";
    std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
    chmod(path.c_str(), 0755);
    program_.reset(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  }

  GatedRequest Wanted(const std::string& script) const {
    GatedRequest wanted;
    wanted.id = "c1";
    wanted.bundle = bundle_.path();
    wanted.spec_json = Bundle::TextOf({.script = script});
    return wanted;
  }

  Status Make(const std::string& script) { return made_->Make(program_, Wanted(script)); }

  /// The engine is killed, and the next one has an object of its own.
  void Restart() {
    made_.reset();
    context_.RestartEngine();
    process_.RestartEngine();
    made_ = std::make_unique<GatedProcess>(context_, process_, kTag);
  }

  uint32_t End() const { return process_.bound->Wait(kGatedLimit).value().code(); }

  Bundle bundle_;
  UniqueFd program_;
  FakeSandboxContext context_{Orphans::kAdopted};
  FakeProcessContext process_{"c1"};
  std::unique_ptr<GatedProcess> made_ = std::make_unique<GatedProcess>(context_, process_, kTag);
};

TEST_F(GatedProcessTest, WaitsUntilItIsOpened) {
  const ClientStreams client = process_.OpenStreams().value();
  const Status made = Make("echo there; exit 7");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(process_.bound, made_->host());
  EXPECT_FALSE(made_->IsOpen().value());
  EXPECT_FALSE(process_.bound->Ended());
  ASSERT_TRUE(made_->Open());
  EXPECT_TRUE(made_->IsOpen().value());
  EXPECT_TRUE(made_->Open()) << "again";
  EXPECT_EQ(End(), 7U);
  EXPECT_EQ(ReadStream(client.out), "there\n");
  EXPECT_THAT(context_.stored, IsEmpty());
}

/// The keeper is asked for nothing between the start and the gate.
TEST_F(GatedProcessTest, IsOpenedByWhoHasMadeItWithoutTheStore) {
  ASSERT_TRUE(Make("exit 7"));
  context_.Drop(context_.StoredNames().at(0));
  ASSERT_TRUE(made_->Open());
  EXPECT_EQ(End(), 7U);
}

TEST_F(GatedProcessTest, IsOpenedByTheNextEngine) {
  ASSERT_TRUE(Make("exit 7"));
  Restart();
  ASSERT_TRUE(made_->Recover());
  EXPECT_FALSE(made_->IsOpen().value());
  ASSERT_TRUE(made_->Open());
  EXPECT_EQ(End(), 7U);
}

TEST_F(GatedProcessTest, IsStartedOnceWhereAnEngineWasKilledOverIt) {
  const ClientStreams client = process_.OpenStreams().value();
  ASSERT_TRUE(Make("echo there; exec busybox sleep 1000"));
  // As it is when an engine dies between the start and what follows it.
  const std::string name = context_.StoredNames().at(0);
  const UniqueFd gate = context_.Take(name).value();
  ASSERT_TRUE(made_->Open());
  ASSERT_TRUE(context_.Store(name, gate));
  Restart();
  ASSERT_TRUE(made_->Recover());
  EXPECT_TRUE(made_->Open());
  EXPECT_THAT(context_.stored, IsEmpty());
  EXPECT_EQ(ReadStream(client.out, "there\n"), "there\n");
  ASSERT_TRUE(made_->End(kGatedLimit));
  EXPECT_EQ(End(), 137U);
  EXPECT_EQ(ReadStream(client.out), "");
}

/// Stored, and the engine was killed before it had a tag.
TEST_F(GatedProcessTest, IsGivenUpWhereNobodyFindsIt) {
  ASSERT_TRUE(Make("exit 7"));
  const auto host = made_->host();
  Restart();
  ASSERT_EQ(context_.FindSpawned(kTag), host);
  EXPECT_EQ(made_->Recover().error().code, Code::kAborted);
  EXPECT_THAT(context_.stored, IsEmpty());
  ASSERT_TRUE(host->Wait(kGatedLimit));
  EXPECT_NE(host->Ended()->code(), 7U) << "it never ran";
}

TEST_F(GatedProcessTest, EndsBeforeItHasRun) {
  ASSERT_TRUE(Make("exit 7"));
  ASSERT_TRUE(made_->End(kGatedLimit));
  EXPECT_EQ(context_.Alive(), 0U) << "nor has it who makes it";
  EXPECT_EQ(End(), 137U);
  EXPECT_THAT(context_.stored, IsEmpty());
  EXPECT_TRUE(made_->End(kGatedLimit)) << "again";
}

TEST_F(GatedProcessTest, IsAnExecOfAContainer) {
  ASSERT_TRUE(Make("exec busybox sleep 1000"));
  ASSERT_TRUE(made_->Open());
  FakeProcessContext context("c1", "x1");
  const ClientStreams client = context.OpenStreams().value();
  GatedProcess exec(context_, context, "exec/c1/x1");
  GatedRequest wanted = Wanted("exec busybox sleep 1000");
  wanted.init = made_->host();
  wanted.process_json = Bundle::ProcessOf({.script = "echo as $$; exit 3"});
  const Status joined = exec.Make(program_, std::move(wanted));
  ASSERT_TRUE(joined) << joined.error().message;
  ASSERT_TRUE(exec.Open());
  EXPECT_EQ(context.bound->Wait(kGatedLimit).value().code(), 3U);
  EXPECT_THAT(ReadStream(client.out), HasSubstr("as "));
  EXPECT_FALSE(process_.bound->Ended());
}

TEST_F(GatedProcessTest, TellsTheErrorOfGantryInit) {
  GatedRequest wanted = Wanted("exit 0");
  wanted.spec_json = "{}";
  const Status made = made_->Make(program_, std::move(wanted));
  EXPECT_EQ(made.error().code, Code::kInvalidArgument);
  EXPECT_THAT(made.error().message, HasSubstr("ociVersion"));
  EXPECT_EQ(process_.bound, nullptr);
  EXPECT_THAT(context_.stored, IsEmpty());
}

TEST_F(GatedProcessTest, GivesAnotherProgramItsOwnWordsAndDescriptors) {
  Script(R"(for word in "$@"; do case $word in
      --kind=*) kind=$word;; --artifact=*) read -r artifact <&"${word#*=}";; esac; done
      echo '{"error": {"code": "ABORTED", "message": "'"$kind $artifact"'"}}' >&4)");
  GatedRequest wanted = Wanted("exit 0");
  wanted.words = {"--kind=module"};
  wanted.fds.emplace_back("artifact", SealedMemfd("artifact", "of it\n", MemfdUse::kRead).value());
  const Status made = made_->Make(program_, std::move(wanted));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kAborted);
  EXPECT_EQ(made.error().message, "--kind=module of it");
  Script("exit 0");
  wanted = Wanted("exit 0");
  wanted.name = "gantry-other";
  EXPECT_THAT(made_->Make(program_, std::move(wanted)).error().message,
              HasSubstr("gantry-other has ended without an answer"));
}

TEST_F(GatedProcessTest, TellsOfAProgramThatAnswersNothing) {
  for (const char* script : {"exit 0", "echo nonsense >&4", "echo '[]' >&4", "echo '{}' >&4",
                             R"(echo '{"made": 3}' >&4)", R"(echo '{"made": {"pid": "x"}}' >&4)"}) {
    Script(script);
    const Status made = Make("exit 0");
    EXPECT_EQ(made.error().code, Code::kInternal) << script;
    EXPECT_THAT(made.error().message, HasSubstr("without an answer")) << script;
    EXPECT_THAT(context_.stored, IsEmpty()) << script;
  }
}

TEST_F(GatedProcessTest, TakesNoWordOfAnAnswerForWhatItIsNot) {
  Script(R"(echo '{"error": {"code": 7, "errno": "x", "message": []}}' >&4)");
  const Status made = Make("exit 0");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kInternal);
  EXPECT_THAT(made.error().message, HasSubstr("its maker has failed and does not say why"));
}

TEST_F(GatedProcessTest, TellsOfATerminalThatDoesNotCome) {
  Script("echo '{\"made\":{\"pid\":'$$',\"warnings\":[]}}' >&4; echo >&4");
  GatedRequest wanted = Wanted("exit 0");
  wanted.terminal = true;
  EXPECT_THAT(made_->Make(program_, std::move(wanted)).error().message,
              HasSubstr("sends no terminal"));
}

}  // namespace
}  // namespace gantry::container
