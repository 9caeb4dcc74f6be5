// SPDX-License-Identifier: Apache-2.0
#include "core/setup/plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <ranges>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "core/setup/block.h"
#include "core/setup/config_file.h"
#include "core/setup/file_change.h"

namespace gantry::setup {
namespace {

/// containerd's own runtime. Source: containerd 1.6.20 and 1.7.24, pkg/cri/config/config_unix.go.
constexpr std::string_view kBuiltIn = "runc";

/// A file that has our block, or may get it.
struct Place {
  std::optional<std::string> text;
  std::optional<Block> block;
};

Result<Place> ReadPlace(const std::string& path) {
  Place place;
  GANTRY_TRY(place.text, ReadForChange(path));
  if (place.text) {
    GANTRY_TRY(place.block, FindBlock(*place.text, path));
  }
  return place;
}

FileChange TakenBack(const std::string& path, const Place& place) {
  FileChange change{.path = path, .before = place.text, .after = place.text};
  if (place.text && place.block) {
    change.after = WithoutBlock(*place.text, *place.block);
    if (place.block->made_file && change.after->empty()) {
      change.after.reset();
      change.remove_folder = place.block->made_folder;
    }
  }
  return change;
}

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
    GANTRY_CHECK_OK(ReadMain());
    GANTRY_CHECK_OK(CheckMain());
    GANTRY_CHECK_OK(ReadPlaces());
    PickPlace();
    GANTRY_CHECK_OK(CheckFree());
    GANTRY_CHECK_OK(Change());
    GANTRY_CHECK_OK(CheckResult());
    AddNotes();
    return std::move(plan_);
  }

 private:
  /// What containerd reads, without what is ours.
  Status ReadMain() {
    if (layout_.generated) {
      if (!Exists(layout_.config)) {
        return Fail(Code::kNotFound,
                    "'{}' is not there: {} makes it; start that once, then do this again",
                    layout_.config, layout_.distribution);
      }
      GANTRY_TRY(main_, ReadFile(layout_.config, size_t{4} << 20));
    } else {
      GANTRY_TRY(auto text, ReadForChange(layout_.config));
      main_ = text ? std::move(*text) : "";
    }
    GANTRY_TRY(const auto block, FindBlock(main_, layout_.config));
    others_ = block ? WithoutBlock(main_, *block) : main_;
    return {};
  }

  Status CheckMain() {
    if (others_.empty()) {
      // Version 3 is what every 2.x reads.
      parsed_.version = std::min(release_.LatestConfig(), 3);
      return {};
    }
    GANTRY_TRY(parsed_, ParseConfig(others_, layout_.config));
    if (parsed_.cri_disabled) {
      return Fail(
          Code::kFailedPrecondition,
          "'{}' disables containerd's CRI, so no kubelet uses this containerd: take it out of "
          "`disabled_plugins` first",
          layout_.config);
    }
    if (parsed_.version < 2) {
      return Fail(Code::kFailedPrecondition,
                  "'{}' is a configuration of version 1 (it says no `version`): write "
                  "`version = 2`, if nothing in it is older, or make it anew of `containerd config "
                  "migrate`",
                  layout_.config);
    }
    if (parsed_.version > release_.LatestConfig()) {
      return Fail(
          Code::kFailedPrecondition,
          "'{}' is of version {}, and containerd {} ('{}') reads up to {}: name the one that "
          "this node runs with --containerd",
          layout_.config, parsed_.version, release_.Text(), program_, release_.LatestConfig());
    }
    return {};
  }

  /// Each file that may be ours.
  Status ReadPlaces() {
    std::vector<std::string> paths = layout_.Candidates();
    folders_ = layout_.DropInFolders(parsed_);
    for (const std::string& folder : folders_) {
      paths.push_back(Format("{}/{}", folder, kDropInName));
    }
    for (const std::string& path : paths) {
      if (!places_.contains(path)) {
        GANTRY_TRY(places_[path], ReadPlace(path));
      }
    }
    return {};
  }

  void PickPlace() {
    if (release_.MergesImports() && !folders_.empty()) {
      // Where there are several, that of the distribution.
      const auto usual = layout_.Candidates();
      const auto known = std::ranges::find_if(folders_, [&](const std::string& folder) {
        return std::ranges::contains(usual, Format("{}/{}", folder, kDropInName));
      });
      drop_in_ = true;
      plan_.place =
          Format("{}/{}", known != folders_.end() ? *known : folders_.front(), kDropInName);
    } else {
      plan_.place = layout_.generated ? layout_.TemplateOf(parsed_.version) : layout_.config;
    }
  }

  /// Nobody else has what is to be ours.
  Status CheckFree() {
    const Place& place = places_.at(plan_.place);
    if (drop_in_ && place.text && !place.block) {
      return Fail(Code::kFailedPrecondition,
                  "'{}' is there and not gantryctl's: give it another name, or remove it",
                  plan_.place);
    }
    const bool ours =
        std::ranges::any_of(places_, [](const auto& one) { return one.second.block.has_value(); });
    // What k3s and rke2 write from our template may have lost its marks.
    if (layout_.generated && ours) {
      return {};
    }
    for (const Runtime& runtime : wanted_.runtimes) {
      if (const auto there = parsed_.runtimes.find(runtime.name); there != parsed_.runtimes.end()) {
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
    if (wanted_.HasController() && std::ranges::contains(parsed_.proxy_plugins, "gantry")) {
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
  bool LosesBuiltIn() const { return release_.major < 2 && parsed_.runtimes.empty(); }

  std::string Tables() const {
    const std::string built_in = Format(
        "[plugins.\"{}\".containerd.runtimes.{}]\n  runtime_type = \"io.containerd.runc.v2\"\n",
        CriPlugin(parsed_.version), kBuiltIn);
    return (LosesBuiltIn() ? built_in : "") + TablesOf(wanted_, release_, parsed_.version);
  }

  std::string Body(bool whole) const {
    std::string tables = Tables();
    if (!whole) {
      return tables;
    }
    // A template has the distribution's own as `base`.
    return (layout_.generated && !drop_in_ ? std::string("{{ template \"base\" . }}\n\n")
                                           : Format("version = {}\n", parsed_.version)) +
           tables;
  }

  /// Ours first: then no moment is without the runtimes.
  Status Change() {
    const Place& place = places_.at(plan_.place);
    const Block made{.made_file = !place.text.has_value(),
                     .made_folder = !place.text && !Exists(FolderOf(plan_.place))};
    const bool whole = place.block ? place.block->made_file : made.made_file;
    Keep({.path = plan_.place,
          .before = place.text,
          .after = WithBlock(place.text ? *place.text : "", place.block, Body(whole), made)});
    for (const auto& [path, other] : places_) {
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
    const std::string body = Format("version = {}\n{}", parsed_.version, tables);
    const std::string ends = others_.empty() || others_.ends_with('\n') ? "" : "\n";
    const std::string text = others_.empty() ? body : others_ + ends + tables;
    if (layout_.generated && parsed_.runtimes.contains(wanted_.runtimes.front().name)) {
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
        parsed_.imports, [](const std::string& import) { return !import.starts_with('/'); });
    if (relative && !drop_in_) {
      plan_.notes.push_back(Format(
          "containerd was not asked about the result, since '{}' has imports by relative paths",
          layout_.config));
      return {};
    }
    return AskAbout(text, body);
  }

  Status AskAbout(const std::string& text, const std::string& body) {
    Draft before{.text = others_, .version = parsed_.version};
    Draft after{.text = text, .version = parsed_.version};
    if (others_.empty()) {
      before.text = Format("version = {}\n", parsed_.version);
    }
    if (drop_in_) {
      before = {.imports = {layout_.config}, .version = parsed_.version};
      after = {.imports = {layout_.config}, .added = body, .version = parsed_.version};
    }
    GANTRY_TRY(const std::string was, DumpOf(ask_, program_, before));
    GANTRY_TRY(const std::string is, DumpOf(ask_, program_, after));
    GANTRY_TRY(const ConfigFile had, ParseConfig(was, "containerd config dump"));
    GANTRY_TRY(const ConfigFile has, ParseConfig(is, "containerd config dump"));
    std::vector<std::string> ours = EarlierRuntimes();
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

  /// Names in blocks that are there.
  std::vector<std::string> EarlierRuntimes() const {
    std::vector<std::string> names;
    for (const auto& [path, place] : places_) {
      const auto parsed = place.block ? ParseConfig(place.block->body, path) : ConfigFile();
      if (parsed) {
        std::ranges::copy(parsed->runtimes | std::views::keys, std::back_inserter(names));
      }
    }
    return names;
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
  bool drop_in_ = false;
  std::string main_;
  std::string others_;
  ConfigFile parsed_;
  std::vector<std::string> folders_;
  std::map<std::string, Place> places_;
  Plan plan_;
};

}  // namespace

Result<Plan> PlanSetup(const Layout& layout, const Wanted& wanted, const std::string& program,
                       const Ask& ask) {
  return SetUp(layout, wanted, program, ask).Run();
}

Result<Plan> PlanUndo(const Layout& layout) {
  Plan plan;
  std::vector<std::string> paths = layout.Candidates();
  if (const auto text = ReadFile(layout.config, size_t{4} << 20)) {
    // What does not parse imports nothing; what is ours can be taken back nevertheless.
    if (const auto parsed = ParseConfig(*text, layout.config)) {
      for (const std::string& folder : layout.DropInFolders(*parsed)) {
        paths.push_back(Format("{}/{}", folder, kDropInName));
      }
    }
  }
  for (const std::string& path : paths) {
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
