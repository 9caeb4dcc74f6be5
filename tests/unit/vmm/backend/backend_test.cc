// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/backend.h"

#include <fcntl.h>

#include <algorithm>
#include <future>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <gantry/format.h>
#include <gantry/json.h>
#include <gantry/testing/sandbox_context.h>
#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"

namespace gantry::vmm {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class NoSandbox : public Sandbox {
 public:
  Result<std::unique_ptr<Container>> CreateContainer(const ContainerRequest&,
                                                     ContainerContext&) override {
    return Fail(Code::kUnimplemented, "none");
  }

  Result<std::unique_ptr<Container>> RecoverContainer(const ContainerRequest&, ContainerContext&,
                                                      const std::string&) override {
    return Fail(Code::kUnimplemented, "none");
  }
};

class VmmBackendTest : public testing::Test {
 protected:
  struct Made {
    VmmOptions options;
    const MachineMeans* means = nullptr;
    std::optional<std::string> blob{};
  };

  std::unique_ptr<SandboxBackend> Backend(const std::string& options = "{}") {
    Parts parts;
    parts.open_program = [](std::string_view) -> Result<UniqueFd> {
      return UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC));
    };
    parts.make_sandbox = [this](const SandboxRequest&, SandboxContext&, const VmmOptions& wanted,
                                const MachineMeans& means, const std::string* blob) {
      made_ = {.options = wanted, .means = &means};
      if (blob != nullptr) {
        made_.blob = *blob;
      }
      return Result<std::unique_ptr<Sandbox>>(std::make_unique<NoSandbox>());
    };
    parts.images = folder_.path();
    parts.keep_dir = folder_.path() + "/keep";
    parts.choose_accelerator = [this](const KvmQuestion& question, const AskFunction& ask) {
      return choose_ ? choose_(question, ask) : shown_;
    };
    auto made = MakeBackend(options, std::move(parts));
    EXPECT_TRUE(made) << made.error().message;
    return std::move(*made);
  }

  void InstallImage() {
    ASSERT_TRUE(WriteFile(folder_.path() + "/kernel", "k", 0644));
    ASSERT_TRUE(WriteFile(folder_.path() + "/initrd", "i", 0644));
  }

  static NodeNeed NeedWith(const std::vector<NodeNeed>& needs, std::string_view word) {
    const auto found = std::ranges::find_if(
        needs, [word](const NodeNeed& need) { return need.what.contains(word); });
    EXPECT_NE(found, needs.end()) << word;
    return found == needs.end() ? NodeNeed() : *found;
  }

  Deadline Soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(30); }

  os::TempDir folder_ = os::TempDir::Create().value();
  Acceleration shown_ = {.words = "KVM is not used: open /dev/kvm (errno 2)"};
  /// Null: `shown_`.
  decltype(Parts::choose_accelerator) choose_;
  FakeSandboxContext context_;
  Made made_;
};

TEST_F(VmmBackendTest, SaysWhatTheNodeLacks) {
  const auto backend = Backend(R"({"vmm_path":"/no/such/qemu","virtiofsd":"/no/such/virtiofsd"})");
  const BackendInfo info = backend->Describe();
  EXPECT_EQ(info.name, "vmm");
  EXPECT_TRUE(info.pauseless_pods);
  const NodeNeed vmm = NeedWith(info.needs, "QEMU, the VMM");
  EXPECT_FALSE(vmm.met);
  EXPECT_FALSE(vmm.optional);
  EXPECT_THAT(vmm.detail, AllOf(HasSubstr("/no/such/qemu"), HasSubstr("'vmm_path'")));
  const NodeNeed kvm = NeedWith(info.needs, "KVM");
  EXPECT_FALSE(kvm.met);
  EXPECT_TRUE(kvm.optional) << "QEMU does without, and slowly";
  EXPECT_THAT(kvm.detail, HasSubstr("open /dev/kvm"));
  const NodeNeed image = NeedWith(info.needs, "guest image");
  EXPECT_FALSE(image.met);
  EXPECT_THAT(image.detail, HasSubstr(folder_.path() + "/kernel"));
  EXPECT_THAT(NeedWith(info.needs, "virtiofsd").detail, HasSubstr("/no/such/virtiofsd"));
}

TEST_F(VmmBackendTest, KvmIsNeededByVmmsThatHaveNothingElse) {
  const auto backend = Backend(R"({"vmm":"firecracker"})");
  EXPECT_FALSE(NeedWith(backend->Describe().needs, "KVM").optional);
}

TEST_F(VmmBackendTest, TellsTheCanarysOutcomeAndTheImage) {
  InstallImage();
  shown_ = {.accelerator = Accelerator::kKvm, .words = "KVM works (API version 12)"};
  const auto needs = Backend()->Describe().needs;
  EXPECT_TRUE(NeedWith(needs, "KVM").met);
  EXPECT_EQ(NeedWith(needs, "KVM").detail, "KVM works (API version 12)");
  EXPECT_TRUE(NeedWith(needs, "guest image").met);
}

TEST_F(VmmBackendTest, SaysWhetherTheVmmCanDoTemplates) {
  const std::string qemu = folder_.path() + "/qemu";
  const auto backend = Backend(R"({"vmm_path":")" + qemu + "\"}");
  ASSERT_TRUE(WriteFile(qemu, "#!/bin/sh\necho QEMU emulator version 8.2.4\n", 0755));
  for (const NodeNeed& need : backend->Describe().needs) {
    EXPECT_THAT(need.what, testing::Not(HasSubstr("template"))) << "nobody wants one";
  }
  ASSERT_TRUE(backend->CheckOptions(R"({"template":2})"));
  const NodeNeed old = NeedWith(backend->Describe().needs, "template");
  EXPECT_FALSE(old.met);
  EXPECT_TRUE(old.optional) << "pods are booted";
  EXPECT_THAT(old.detail, HasSubstr("8.2.4"));
  ASSERT_TRUE(WriteFile(qemu, "#!/bin/sh\necho QEMU emulator version 10.0.13\n", 0755));
  EXPECT_TRUE(NeedWith(backend->Describe().needs, "template").met);
}

TEST_F(VmmBackendTest, ChecksOptionsOfHandlersAndThenThoseOfRequests) {
  const auto backend = Backend();
  EXPECT_TRUE(backend->CheckOptions(""));
  const Status unknown = backend->CheckOptions(R"({"kernle":"/x"})");
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, HasSubstr("'kernle'"));
  const Status missing = backend->CheckOptions(R"({"kernel":"/no/kernel","initrd":"/no/initrd"})");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(missing.error().message, HasSubstr("/no/kernel"));
  backend->Attach(context_, {});
  EXPECT_TRUE(backend->CheckOptions(R"({"kernle":"/x"})")) << "of a newer containerd";
}

TEST_F(VmmBackendTest, RefusesADefaultThatCannotBe) {
  const auto made = MakeBackend(R"({"vmm":"bochs"})", Parts());
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kInvalidArgument);
}

TEST_F(VmmBackendTest, MakesASandboxOfTheRequestsOptions) {
  InstallImage();
  const auto backend = Backend(R"({"cpus":2,"memory_mib":512})");
  backend->Attach(context_, {});
  SandboxRequest request;
  request.options_json = R"({"memory_mib":128})";
  ASSERT_TRUE(backend->CreateSandbox(request, context_));
  EXPECT_EQ(made_.options.cpus, 2U);
  EXPECT_EQ(made_.options.memory_mib, 128U);
  EXPECT_EQ(made_.blob, std::nullopt);
  EXPECT_EQ(made_.means->accelerator(made_.options, Soon()), Accelerator::kTcg);
  const auto kvm = made_.means->accelerator({.accelerator = AcceleratorChoice::kKvm}, Soon());
  ASSERT_FALSE(kvm);
  EXPECT_EQ(kvm.error().code, Code::kFailedPrecondition);
  ASSERT_TRUE(backend->RecoverSandbox(request, context_, "saved"));
  EXPECT_EQ(made_.blob, "saved");
}

// What a handler alone names counts: there the installed kernel works, and that one does not.
TEST_F(VmmBackendTest, KvmIsFoundOutWithWhatEachHandlerNames) {
  InstallImage();
  const std::string kernel = folder_.path() + "/of-handler";
  ASSERT_TRUE(WriteFile(kernel, "k", 0644));
  choose_ = [&](const KvmQuestion& question, const AskFunction&) {
    EXPECT_THAT(question.canary, HasSubstr("/proc/self/fd/"));
    return question.kernel == kernel
               ? Acceleration{.words = "KVM is not used: a kernel did not boot in it"}
               : Acceleration{.accelerator = Accelerator::kKvm, .words = "KVM works"};
  };
  const auto backend = Backend(R"({"vmm_path":"/bin/true"})");
  const std::string named = Format(R"({{"kernel":"{}"}})", kernel);
  backend->Attach(context_, {{"vmm", "{}"}, {"other", named}});
  SandboxRequest request;
  ASSERT_TRUE(backend->CreateSandbox(request, context_));
  EXPECT_EQ(made_.means->accelerator(made_.options, Soon()), Accelerator::kKvm);
  request.options_json = named;
  ASSERT_TRUE(backend->CreateSandbox(request, context_));
  EXPECT_EQ(made_.means->accelerator(made_.options, Soon()), Accelerator::kTcg);
}

TEST_F(VmmBackendTest, TheCanaryAsksTheKeeperAndEndsWithTheEngine) {
  std::promise<void> begun;
  choose_ = [&](const KvmQuestion&, const AskFunction& ask) {
    begun.set_value();
    const auto said =
        ask({.program = "/bin/sleep", .arguments = {"1000"}, .limit = std::chrono::hours(1)});
    EXPECT_EQ(said.error().code, Code::kUnavailable);
    return Acceleration{.words = "KVM is not used"};
  };
  auto backend = Backend();
  backend->Attach(context_, {{"vmm", "{}"}});
  begun.get_future().wait();
  backend->Leave();
  backend.reset();
  for (const std::string& tag : context_.Tags()) {
    EXPECT_EQ(tag, "kvm-canary");
  }
  for (const auto& process : context_.spawned) {
    EXPECT_TRUE(process->Wait(std::chrono::seconds(60)));
  }
}

TEST_F(VmmBackendTest, NothingIsFoundOutForHandlersThatWantTcg) {
  choose_ = [](const KvmQuestion&, const AskFunction&) -> Acceleration {
    ADD_FAILURE() << "nobody wants to know";
    return {};
  };
  const auto backend = Backend();
  backend->Attach(context_, {{"vmm", R"({"accelerator":"tcg"})"}});
}

TEST_F(VmmBackendTest, ItsFeaturesAreADocument) {
  const auto features = Backend()->Features({});
  ASSERT_TRUE(features);
  const nlohmann::json document = ReadJson(*features);
  EXPECT_TRUE(document["linux"]["seccomp"]["enabled"]);
  EXPECT_FALSE(document["linux"].contains("mountExtensions"))
      << "ids are mapped by the node's kernel, which a guest has not";
}

}  // namespace
}  // namespace gantry::vmm
