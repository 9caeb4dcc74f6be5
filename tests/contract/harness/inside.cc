// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/harness/inside.h"

#include <charconv>
#include <sstream>
#include <system_error>
#include <utility>

#include "tests/contract/harness/fifo_reader.h"

namespace gantry::contract {
namespace {

constexpr const char* kLastWord = "-- that is all --";

/// With a last word, so that a stream that is held open by somebody fails no rule but the
/// one about that.
std::vector<std::string> WithLastWord(const std::string& script) {
  return {"sh", "-c", "exec 2>&1; " + script + "\necho '" + kLastWord + "'"};
}

std::string UpToLastWord(const std::string& text) { return text.substr(0, text.find(kLastWord)); }

}  // namespace

/// A backend of anybody's may lack what it says that it lacks; one of the tree's only what the
/// table of rows says.
template <class T>
bool InsideTest::IsRefused(const Result<T>& result) {
  const bool said = !result && (result.error().code == Code::kUnimplemented ||
                                result.error().message.ends_with(": not implemented"));
  if (said && (TheSetup().anybodys || !IsSupported(backend(), kConfinement))) {
    refusal_ = "not supported: " + result.error().message;
    return true;
  }
  return false;
}

std::optional<std::string> InsideTest::Says(const std::string& script, const Json& spec) {
  std::optional<std::string> text = SaysTo(WithLastWord(script), spec);
  if (text) {
    EXPECT_TRUE(text->contains(kLastWord)) << "the container's program said only: " << *text;
    text = UpToLastWord(*text);
  }
  return text;
}

std::optional<std::string> InsideTest::SaysTo(const std::vector<std::string>& args,
                                              const Json& spec) {
  FifoReader out(node().root() + "/" + Id() + ".out");
  Box& box = Announced({.args = args, .out = out.path(), .spec = spec}, "-says");
  const auto created = box.Create();
  if (IsRefused(created)) {
    return std::nullopt;
  }
  EXPECT_OK(created);
  const auto started = created ? box.Start() : Result<pb::StartResponse>(pb::StartResponse());
  if (IsRefused(started)) {
    return std::nullopt;
  }
  EXPECT_OK(started);
  if (created && started) {
    args.back().contains(kLastWord) ? out.ReadUntil(kLastWord) : out.ReadToEnd();
    EXPECT_OK(box.Wait());
  }
  Finish(box);
  return out.text();
}

Box* InsideTest::Resident(const Json& spec, const std::string& script) {
  constexpr const char* kReady = "ready";
  FifoReader out(node().root() + "/" + Id() + ".ready");
  const std::string all = script + "\necho " + kReady + "; exec sleep 1000";
  Box& box = Announced({.args = {"sh", "-c", all}, .out = out.path(), .spec = spec}, "-resident");
  const auto created = box.Create();
  if (IsRefused(created)) {
    return nullptr;
  }
  EXPECT_OK(created);
  const auto started = created ? box.Start() : Result<pb::StartResponse>(pb::StartResponse());
  if (IsRefused(started)) {
    return nullptr;
  }
  EXPECT_OK(started);
  EXPECT_TRUE(!created || !started || out.ReadUntil(kReady))
      << "the container's program said only: " << out.text();
  return &box;
}

std::optional<std::string> InsideTest::ExecSays(const Box& box, const std::string& script,
                                                const Json& process) {
  const std::string exec = "x" + std::to_string(++execs_);
  FifoReader out(node().root() + "/" + Id() + "." + exec);
  Json whole = MakeProcess(WithLastWord(script));
  whole.merge_patch(process);
  const Status prepared = box.ExecProcess(exec, whole, out.path());
  if (IsRefused(prepared)) {
    return std::nullopt;
  }
  EXPECT_OK(prepared);
  const auto started = prepared ? box.Start(exec) : Result<pb::StartResponse>(pb::StartResponse());
  if (IsRefused(started)) {
    return std::nullopt;
  }
  EXPECT_OK(started);
  if (prepared && started) {
    EXPECT_TRUE(out.ReadUntil(kLastWord)) << "the exec's program said only: " << out.text();
    EXPECT_OK(box.Wait(exec));
  }
  if (prepared) {
    EXPECT_OK(box.Delete(exec));
  }
  return UpToLastWord(out.text());
}

Json InsideTest::MountsWith(std::vector<Json> more) {
  Json mounts = MakeSpec(node(), "any", {})["mounts"];
  for (Json& one : more) {
    mounts.push_back(std::move(one));
  }
  return mounts;
}

std::map<std::string, std::string> Fields(const std::string& text) {
  std::map<std::string, std::string> fields;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(':');
    if (colon != std::string::npos) {
      const size_t value = line.find_first_not_of(" \t", colon + 1);
      fields[line.substr(0, colon)] = value == std::string::npos ? "" : line.substr(value);
    }
  }
  return fields;
}

std::set<std::string> Words(const std::string& text) {
  std::istringstream stream(text);
  std::set<std::string> words;
  for (std::string word; stream >> word;) {
    words.insert(word);
  }
  return words;
}

uint64_t MaskOf(const std::string& shown) {
  uint64_t mask = ~uint64_t{0};
  const char* const end = shown.data() + shown.size();
  return std::from_chars(shown.data(), end, mask, 16).ec == std::errc() ? mask : ~uint64_t{0};
}

uint64_t CapabilityMask(const std::vector<int>& numbers) {
  uint64_t mask = 0;
  for (const int number : numbers) {
    mask |= uint64_t{1} << static_cast<unsigned>(number);
  }
  return mask;
}

}  // namespace gantry::contract
