// SPDX-License-Identifier: Apache-2.0
#include "core/setup/plan.h"

#include <algorithm>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "core/setup/block.h"
#include "core/setup/config_file.h"
#include "core/setup/file_change.h"
#include "core/setup/places.h"

namespace gantry::setup {
namespace {

/// containerd's own runtime. Source: containerd 1.6.20 and 1.7.24, pkg/cri/config/config_unix.go.
constexpr std::string_view kBuiltIn = "runc";

// Makes one plan for a set-up. Its steps are in the order in which they are called.
class SetUp {
 public:
  SetUp(const Layout& layout, const Wanted& wanted, const std::string& program, const Ask& ask)
      : layout_(layout), wanted_(wanted), program_(program), ask_(ask) {}

  Result<Plan> Run() {
    GANTRY_TRY(release_, ReleaseOf(ask_, program_));
    for (const Runtime& runtime : wanted_.runtimes) {
      GANTRY_CHECK_OK(CheckSandboxer(release_, runtime.sandboxer));
    }
    GANTRY_TRY(places_, ReadPlaces(layout_, release_, program_));
    plan_.place = places_.picked;
    GANTRY_CHECK_OK(CheckFree());
    GANTRY_CHECK_OK(Change());
    GANTRY_CHECK_OK(CheckResult());
    AddNotes();
    return std::move(plan_);
  }

 private:
  /// Nobody else has what is to be ours.
  Status CheckFree() {
    const Place& place = places_.files.at(plan_.place);
    if (places_.drop_in && place.text && !place.block) {
      return Fail(Code::kFailedPrecondition,
                  "'{}' is there and not gantryctl's: give it another name, or remove it",
                  plan_.place);
    }
    // What k3s and rke2 write from our template may have lost its marks.
    if (layout_.generated && places_.HasOurs()) {
      return {};
    }
    for (const Runtime& runtime : wanted_.runtimes) {
      if (const auto there = places_.parsed.runtimes.find(runtime.name);
          there != places_.parsed.runtimes.end()) {
        return Fail(
            Code::kAlreadyExists,
            "'{}' has a runtime '{}' already ('{}'), which gantryctl has not written: remove "
            "its table, or give another name with --handlers {}=NAME",
            layout_.config, runtime.name, there->second, runtime.handler);
      }
    }
    if (LosesBuiltIn() && std::ranges::contains(wanted_.runtimes, kBuiltIn, &Runtime::name)) {
      return Fail(Code::kAlreadyExists,
                  "containerd has a runtime '{}' of its own: give another name with --handlers",
                  kBuiltIn);
    }
    if (wanted_.HasController() && std::ranges::contains(places_.parsed.proxy_plugins, "gantry")) {
      return Fail(
          Code::kAlreadyExists,
          "'{}' has a proxy plugin 'gantry' already, which gantryctl has not written: remove "
          "its table",
          layout_.config);
    }
    return {};
  }

  /// With containerd 1.x the first runtime that a file has takes the place of the built-in one,
  /// which pods without a RuntimeClass have.
  bool LosesBuiltIn() const { return release_.major < 2 && places_.parsed.runtimes.empty(); }

  std::string Tables() const {
    const std::string built_in = Format(
        "[plugins.\"{}\".containerd.runtimes.{}]\n  runtime_type = \"io.containerd.runc.v2\"\n",
        CriPlugin(places_.parsed.version), kBuiltIn);
    return (LosesBuiltIn() ? built_in : "") + TablesOf(wanted_, release_, places_.parsed.version);
  }

  std::string Body(bool whole) const {
    std::string tables = Tables();
    if (!whole) {
      return tables;
    }
    // A template has the distribution's own as `base`.
    return (layout_.generated && !places_.drop_in
                ? std::string("{{ template \"base\" . }}\n\n")
                : Format("version = {}\n", places_.parsed.version)) +
           tables;
  }

  /// Ours first: then no moment is without the runtimes.
  Status Change() {
    const Place& place = places_.files.at(plan_.place);
    const Block made{.made_file = !place.text.has_value(),
                     .made_folder = !place.text && !Exists(FolderOf(plan_.place))};
    const bool whole = place.block ? place.block->made_file : made.made_file;
    Keep({.path = plan_.place,
          .before = place.text,
          .after = WithBlock(place.text ? *place.text : "", place.block, Body(whole), made)});
    for (const auto& [path, other] : places_.files) {
      if (path != plan_.place) {
        Keep(TakenBack(path, other));
      }
    }
    for (const FileChange& change : plan_.changes) {
      GANTRY_CHECK_OK(CheckWritable(change.path));
    }
    return {};
  }

  void Keep(FileChange change) {
    if (change.changes()) {
      plan_.changes.push_back(std::move(change));
    }
  }

  /// containerd takes it, and nothing else has become different by it.
  Status CheckResult() {
    const std::string tables = Tables();
    const std::string body = Format("version = {}\n{}", places_.parsed.version, tables);
    const std::string ends = places_.others.empty() || places_.others.ends_with('\n') ? "" : "\n";
    const std::string text = places_.others.empty() ? body : places_.others + ends + tables;
    if (layout_.generated && places_.parsed.runtimes.contains(wanted_.runtimes.front().name)) {
      // Written of our template, and without marks: only a look at the tables is left.
      GANTRY_TRY(const ConfigFile result, ParseConfig(body, plan_.place));
      return {};
    }
    const auto result = ParseConfig(text, plan_.place);
    if (!result) {
      return Fail(
          Code::kFailedPrecondition,
          "the runtimes cannot follow what is in '{}' ({}): where it has a section in braces, "
          "`x = {{...}}`, write that as a table, `[x]`",
          layout_.config, result.error().message);
    }
    const bool relative = std::ranges::any_of(
        places_.parsed.imports, [](const std::string& import) { return !import.starts_with('/'); });
    if (relative && !places_.drop_in) {
      plan_.notes.push_back(Format(
          "containerd was not asked about the result, since '{}' has imports by relative paths",
          layout_.config));
      return {};
    }
    return AskAbout(text, body);
  }

  Status AskAbout(const std::string& text, const std::string& body) {
    Draft before{.text = places_.others, .version = places_.parsed.version};
    Draft after{.text = text, .version = places_.parsed.version};
    if (places_.others.empty()) {
      before.text = Format("version = {}\n", places_.parsed.version);
    }
    if (places_.drop_in) {
      before = {.imports = {layout_.config}, .version = places_.parsed.version};
      after = {.imports = {layout_.config}, .added = body, .version = places_.parsed.version};
    }
    GANTRY_TRY(const std::string was, DumpOf(ask_, program_, before));
    GANTRY_TRY(const std::string is, DumpOf(ask_, program_, after));
    GANTRY_TRY(const ConfigFile had, ParseConfig(was, "containerd config dump"));
    GANTRY_TRY(const ConfigFile has, ParseConfig(is, "containerd config dump"));
    std::vector<std::string> ours = places_.OurRuntimes();
    for (const Runtime& runtime : wanted_.runtimes) {
      if (had.runtimes.contains(runtime.name) && !std::ranges::contains(ours, runtime.name)) {
        return Fail(
            Code::kAlreadyExists,
            "a file that '{}' imports has a runtime '{}' already: remove its table, or give "
            "another name with --handlers {}=NAME",
            layout_.config, runtime.name, runtime.handler);
      }
      const auto there = has.runtimes.find(runtime.name);
      if (there == has.runtimes.end() || there->second != TypeOf(wanted_, runtime.handler)) {
        return Fail(Code::kFailedPrecondition,
                    "containerd does not see the runtime '{}' in what would be written: is its CRI "
                    "configured elsewhere?",
                    runtime.name);
      }
    }
    for (const Runtime& runtime : wanted_.runtimes) {
      ours.push_back(runtime.name);
    }
    if (LosesBuiltIn()) {
      ours.emplace_back(kBuiltIn);
    }
    return SameBut(was, is, ours);
  }

  void AddNotes() {
    const bool first = release_.major < 2;
    for (const Runtime& runtime : wanted_.runtimes) {
      if (first && runtime.sandboxer == Sandboxer::kShim) {
        plan_.notes.push_back(
            "containerd 1.7 needs ENABLE_CRI_SANDBOXES=1 in its environment for pods that the shim "
            "makes: systemctl edit containerd, [Service] Environment=ENABLE_CRI_SANDBOXES=1");
        break;
      }
    }
  }

  const Layout& layout_;
  const Wanted& wanted_;
  const std::string& program_;
  const Ask& ask_;
  Release release_;
  Places places_;
  Plan plan_;
};

}  // namespace

Result<Plan> PlanSetup(const Layout& layout, const Wanted& wanted, const std::string& program,
                       const Ask& ask) {
  return SetUp(layout, wanted, program, ask).Run();
}

Result<Plan> PlanUndo(const Layout& layout) {
  Plan plan;
  for (const std::string& path : PathsToTakeBack(layout)) {
    if (std::ranges::contains(plan.changes, path, &FileChange::path)) {
      continue;
    }
    GANTRY_TRY(const Place place, ReadPlace(path));
    FileChange change = TakenBack(path, place);
    if (change.changes()) {
      GANTRY_CHECK_OK(CheckWritable(path));
      plan.changes.push_back(std::move(change));
    }
  }
  return plan;
}

Status CarryOut(const Plan& plan) {
  for (size_t i = 0; i < plan.changes.size(); ++i) {
    const Status done = Apply(plan.changes[i]);
    if (done) {
      continue;
    }
    for (size_t made = i; made > 0; --made) {
      FileChange back = plan.changes[made - 1];
      std::swap(back.before, back.after);
      IgnoreError(Apply(back), "the error that is told is the first one");
    }
    return done;
  }
  return {};
}

}  // namespace gantry::setup
