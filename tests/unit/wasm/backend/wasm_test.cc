// SPDX-License-Identifier: Apache-2.0
//
// Containers of modules: what gantry-wasm is told of them, and what is refused before it is asked.
#include <fstream>

#include <gmock/gmock.h>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/memfd.h>

#include "plugins/wasm/module/sha256.h"
#include "tests/unit/wasm/backend/fixture.h"
#include "tests/unit/wasm/module/module_text.h"

namespace gantry::wasm {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class WasmModuleTest : public WasmBackendTest {
 protected:
  void SetUp() override {
    WasmBackendTest::SetUp();
    root_.Write("app.wasm", SmallModule());
    root_.Write("component.wasm", ComponentHeader());
  }

  /// A container is made; the words that it was made with.
  std::vector<std::string> WordsOf(const std::string& args, const std::string& more = "") {
    const auto made = Create(args, more);
    EXPECT_TRUE(made) << made.error().message;
    if (made) {
      const Status deleted = (*made)->Delete();
      EXPECT_TRUE(deleted) << deleted.error().message;
    }
    container_.RestartEngine();
    return Words();
  }

  Error Refused(const std::string& args, const std::string& more = "") {
    const auto made = Create(args, more);
    EXPECT_FALSE(made);
    EXPECT_TRUE(context_.spawned.empty()) << "nothing was started";
    return made ? Error{} : made.error();
  }
};

/// By which the compiler's time is shared.
TEST_F(WasmModuleTest, IsCompiledForItsTenantAndItsPod) {
  WordsOf(R"(["/app.wasm"])");
  const std::string ns = artifacts_->asker.tenant;
  EXPECT_FALSE(ns.empty());
  EXPECT_EQ(artifacts_->asker.sandbox, Request("[]").id.str());
  EXPECT_FALSE(artifacts_->asker.containerd.empty());
  WordsOf(R"(["/app.wasm"])", R"(,"annotations":{"io.kubernetes.cri.sandbox-id":"p1",)"
                              R"("io.kubernetes.cri.sandbox-namespace":"team"})");
  EXPECT_EQ(artifacts_->asker.tenant, ns + "/team");
  EXPECT_EQ(artifacts_->asker.sandbox, "p1");
}

/// By which its compiler has memory.
TEST_F(WasmModuleTest, IsCompiledWithTheNumberOfItsFunctions) {
  WordsOf(R"(["/app.wasm"])");
  EXPECT_EQ(artifacts_->functions, 1U);
}

TEST_F(WasmModuleTest, WaitsAtItsGateAndEndsAsTheGuestSays) {
  const auto made = Create(R"(["/app.wasm", "an argument"])");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_FALSE(container_.process.bound->Ended());
  EXPECT_FALSE((*made)->HasStarted().value());
  const Status started = (*made)->Start();
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_EQ(End(container_.process), 42U);
  EXPECT_TRUE((*made)->HasStarted().value());
  EXPECT_TRUE((*made)->Delete());
  EXPECT_EQ(artifacts_->asked, 1);
}

TEST_F(WasmModuleTest, IsToldWhatItIs) {
  const auto words = WordsOf(R"(["/app.wasm"])");
  EXPECT_THAT(words, Contains("--kind=module"));
  EXPECT_THAT(words, Contains("--network=pod"));
  EXPECT_THAT(words, Contains(StartsWith("--artifact=")));
  EXPECT_THAT(words, Contains("--id=c1"));
  EXPECT_THAT(words, Contains("--sibling"));
  EXPECT_THAT(words, Not(Contains(StartsWith("--entry="))));
  EXPECT_THAT(words, Not(Contains(StartsWith("--memory="))));
}

TEST_F(WasmModuleTest, IsToldWhatItsAnnotationsSay) {
  const auto words = WordsOf(R"(["/app.wasm#run"])",
                             R"(, "annotations": {"io.gantry.wasm/memory": "1Mi",
                                  "io.gantry.wasm/network": "none",
                                  "io.gantry.wasm/listen": "0.0.0.0:81",
                                  "io.gantry.wasm/entry": "other"})");
  EXPECT_THAT(words, Contains("--memory=1048576"));
  EXPECT_THAT(words, Contains("--network=none"));
  EXPECT_THAT(words, Contains("--entry=run")) << "what args names is the nearer";
  EXPECT_THAT(words, Not(Contains(StartsWith("--listen=")))) << "it is no proxy";
  EXPECT_THAT(WordsOf(R"(["/app.wasm"])", R"(, "annotations": {"io.gantry.wasm/entry": "other"})"),
              Contains("--entry=other"));
}

TEST_F(WasmModuleTest, AProxyIsToldWhereToListen) {
  artifacts_->kind = Kind::kProxy;
  const auto words = WordsOf(R"(["/component.wasm"])",
                             R"(, "annotations": {"io.gantry.wasm/listen": "0.0.0.0:81"})");
  EXPECT_THAT(words, Contains("--kind=proxy"));
  EXPECT_THAT(words, Contains("--listen=0.0.0.0:81"));
}

TEST_F(WasmModuleTest, IsNeverASandbox) {
  const auto made = Create(R"(["/bin/sh", "-c", "exit 5"])",
                           R"(, "annotations": {"io.kubernetes.cri.container-type": "sandbox",
                  "run.oci.handler": "wasm"})");
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_TRUE((*made)->Start());
  EXPECT_EQ(End(container_.process), 5U);
  EXPECT_EQ(artifacts_->asked, 0);
}

TEST_F(WasmModuleTest, IsNamedWhereItCannotBe) {
  root_.Write("bad.wasm", CoreHeader() + SectionOf(10, OversizedLeb()));
  const Error bad = Refused(R"(["/bad.wasm"])");
  EXPECT_EQ(bad.code, Code::kInvalidArgument);
  EXPECT_THAT(bad.message, HasSubstr("'/bad.wasm': section 'code' at offset 8"));
  const Error missing =
      Refused(R"(["/none.wasm"])", R"(, "annotations": {"run.oci.handler": "wasm"})");
  EXPECT_EQ(missing.code, Code::kNotFound);
  EXPECT_THAT(missing.message, HasSubstr("/none.wasm"));
  const Error component =
      Refused(R"(["/component.wasm"])", R"(, "annotations": {"io.gantry.wasm/entry": "run"})");
  EXPECT_EQ(component.code, Code::kInvalidArgument);
  EXPECT_THAT(component.message, HasSubstr("io.gantry.wasm/entry"));
  const Error value =
      Refused(R"(["/app.wasm"])", R"(, "annotations": {"io.gantry.wasm/memory": "much"})");
  EXPECT_EQ(value.code, Code::kInvalidArgument);
  EXPECT_THAT(value.message, HasSubstr("create container 'c1': annotation "
                                       "'io.gantry.wasm/memory', 'much'"));
  EXPECT_EQ(artifacts_->asked, 0) << "no compiler has seen any of it";
  EXPECT_FALSE(container_.made_cgroups);
  EXPECT_TRUE(Create(R"(["/app.wasm"])")) << "the id is free";
}

TEST_F(WasmModuleTest, ACompilersErrorIsTheContainers) {
  artifacts_->answer = Fail(Code::kInvalidArgument, "unknown import 'env::x'");
  const Error error = Refused(R"(["/app.wasm"])");
  EXPECT_EQ(error.code, Code::kInvalidArgument);
  EXPECT_EQ(error.message, "create container 'c1': compile '/app.wasm': unknown import 'env::x'");
}

TEST_F(WasmModuleTest, ACompileHasLessThanTheCall) {
  context_.time_left = std::chrono::seconds(10);
  ASSERT_TRUE(Create(R"(["/app.wasm"])"));
  EXPECT_GT(artifacts_->limit, std::chrono::seconds(4));
  EXPECT_LT(artifacts_->limit, std::chrono::seconds(10));
}

TEST_F(WasmModuleTest, HasNoMoreBytesThanTheHandlerAllows) {
  MakeBackendWith(R"({"max_module_bytes": 10})");
  const Error error = Refused(R"(["/app.wasm"])");
  EXPECT_EQ(error.code, Code::kFailedPrecondition);
  EXPECT_THAT(error.message, HasSubstr("max_module_bytes"));
}

TEST_F(WasmModuleTest, WithoutAnEngineItIsSaid) {
  MakeBackendWith("", false);
  const Error error = Refused(R"(["/app.wasm"])");
  EXPECT_EQ(error.code, Code::kUnimplemented);
  EXPECT_THAT(error.message, HasSubstr("'/app.wasm': this gantry was built without"));
  EXPECT_TRUE(Create(R"(["/bin/sh"])")) << "native ones are made";
  EXPECT_TRUE(backend_->Counts().empty());
}

/// `SmallModule`, as it comes out of an image.
Result<std::optional<ModuleBytes>> ModuleOfAnImage() {
  const std::string text = SmallModule();
  ModuleBytes module;
  GANTRY_TRY(module.file, SealedMemfd("module", text, MemfdUse::kRead));
  module.size = text.size();
  module.digest = Sha256Of(text);
  return std::optional<ModuleBytes>(std::move(module));
}

TEST_F(WasmModuleTest, MayBeALayerOfItsImage) {
  images_ = ModuleOfAnImage;
  MakeBackendWith(R"({"containerd_address": "/c.sock", "max_module_bytes": 999})");
  const auto words = WordsOf(R"(["/layer.wasm#run"])");
  ASSERT_TRUE(asked_image_);
  EXPECT_EQ(asked_image_->address, "/c.sock");
  EXPECT_EQ(asked_image_->ns, "k8s.io");
  EXPECT_EQ(asked_image_->container, "c1");
  EXPECT_EQ(asked_image_->program, "/layer.wasm");
  EXPECT_EQ(asked_image_->max_bytes, 999U);
  EXPECT_THAT(words, Contains("--kind=module"));
  EXPECT_THAT(words, Contains("--entry=run"));
  EXPECT_EQ(artifacts_->asked, 1);
}

TEST_F(WasmModuleTest, ItsImageIsAskedForWhereTheContainerIsFrom) {
  images_ = ModuleOfAnImage;
  containerd_address_ = "/run/k3s/containerd.sock";
  MakeBackendWith("");
  WordsOf(R"(["/layer.wasm"])");
  ASSERT_TRUE(asked_image_);
  EXPECT_EQ(asked_image_->address, containerd_address_);
}

TEST_F(WasmModuleTest, ItsImageIsNotAskedForWhatIsAFile) {
  images_ = ModuleOfAnImage;
  MakeBackendWith("");
  WordsOf(R"(["/app.wasm"])");
  const auto native = Create(R"(["/bin/sh", "-c", "exit 0"])");
  ASSERT_TRUE(native) << native.error().message;
  EXPECT_FALSE(asked_image_);
}

TEST_F(WasmModuleTest, AnImageThatIsWrongIsSaid) {
  images_ = []() -> Result<std::optional<ModuleBytes>> {
    return Fail(Code::kFailedPrecondition, "layer 1: 'application/odd' is not known");
  };
  MakeBackendWith("");
  const Error error = Refused(R"(["/layer.wasm"])");
  EXPECT_EQ(error.code, Code::kFailedPrecondition);
  EXPECT_THAT(error.message, HasSubstr("application/odd"));
}

TEST_F(WasmModuleTest, WithoutContainerdTheFileIsMissing) {
  images_ = []() -> Result<std::optional<ModuleBytes>> {
    return Fail(Code::kUnavailable, "no containerd");
  };
  MakeBackendWith("");
  const auto made = Create(R"(["/layer.wasm"])");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kNotFound);
  EXPECT_THAT(made.error().message, HasSubstr("/layer.wasm"));
  EXPECT_TRUE(context_.WaitForLog("no containerd"));
  const Error claimed = [&] {
    const auto one =
        Create(R"(["/layer.wasm"])", R"(, "annotations": {"run.oci.handler": "wasm"})");
    return one ? Error{} : one.error();
  }();
  EXPECT_EQ(claimed.code, Code::kUnavailable) << "it is one, and where it is cannot be told";
}

TEST_F(WasmModuleTest, StartsInTheNextEngine) {
  auto made = Create(R"(["/app.wasm"])");
  ASSERT_TRUE(made) << made.error().message;
  made->reset();
  RestartEngine();
  const auto found = sandbox_->RecoverContainer(request_, container_, container_.blob);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(artifacts_->asked, 1) << "it has what it needs";
  EXPECT_FALSE((*found)->HasStarted().value());
  ASSERT_TRUE((*found)->Start());
  EXPECT_EQ(End(container_.process), 42U);
}

TEST_F(WasmModuleTest, AnExecIsAModuleOrAProgram) {
  const auto made = Create(R"(["/bin/sh", "-c", "exec busybox sleep 1000"])",
                           R"(, "annotations": {"io.gantry.wasm/entry": "of_the_container"})");
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_TRUE((*made)->Start());
  FakeProcessContext process("c1", "x1");
  ExecRequest request;
  request.id = process.exec();
  request.process_json = ProcessOf(R"(["app.wasm#check"])");
  const auto exec = (*made)->Exec(request, process);
  ASSERT_TRUE(exec);
  const Status started = (*exec)->Start();
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_EQ(End(process), 42U);
  EXPECT_EQ(Words().front(), "exec");
  EXPECT_THAT(Words(), Contains("--entry=check"));
  EXPECT_THAT(Words(), Contains(StartsWith("--init=")));
  EXPECT_TRUE((*exec)->Delete());
  request.process_json = ProcessOf(R"(["app.wasm"])");
  FakeProcessContext second("c1", "x2");
  request.id = second.exec();
  const auto plain = (*made)->Exec(request, second);
  ASSERT_TRUE((*plain)->Start());
  EXPECT_THAT(Words(), Not(Contains(StartsWith("--entry=")))) << "that is the container's";
  EXPECT_TRUE((*plain)->Delete());
  EXPECT_TRUE((*made)->Delete());
}

}  // namespace
}  // namespace gantry::wasm
