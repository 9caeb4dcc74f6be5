// SPDX-License-Identifier: Apache-2.0
#include "plugins/runc/criu.h"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <gantry/format.h>
#include <gantry/number.h>
#include <gantry/toolkit/files/files.h>

#include "plugins/runc/documents.h"
#include "plugins/runc/oci_command.h"

namespace gantry::runc {
namespace {

constexpr size_t kMaxCriuLogBytes = 4U << 20;
constexpr size_t kMaxStreamsBytes = 1024;
constexpr mode_t kFileMode = 0600;

std::string StreamsPath(const std::string& image) { return image + "/gantry-streams"; }

/// The number behind `key` in a file of /proc/PID/fdinfo.
Result<int64_t> FieldOf(std::string_view text, std::string_view key) {
  const size_t begin = text.find(key);
  if (begin == std::string_view::npos) {
    return Fail(Code::kNotFound, "no field '{}'", key);
  }
  std::string_view rest = text.substr(begin + key.size());
  rest.remove_prefix(std::min(rest.find_first_not_of("\t "), rest.size()));
  return ParseNumber(rest.substr(0, rest.find('\n')));
}

Result<std::string> StreamName(HostPid pid, size_t number) {
  const std::string link = Format("/proc/{}/fd/{}", pid.value, number);
  struct stat info = {};
  struct statfs system = {};
  if (stat(link.c_str(), &info) != 0 || statfs(link.c_str(), &system) != 0 ||
      !S_ISFIFO(info.st_mode) || system.f_type == PIPEFS_MAGIC) {
    return std::string();
  }
  GANTRY_TRY(const std::string text,
             ReadFile(Format("/proc/{}/fdinfo/{}", pid.value, number), 4096));
  GANTRY_TRY(const int64_t mount, FieldOf(text, "mnt_id:"));
  return Format("file[{:x}:{:x}]", mount, info.st_ino);
}

bool IsStreamName(std::string_view text) {
  constexpr std::string_view kBegin = "file[";
  if (!text.starts_with(kBegin) || !text.ends_with(']')) {
    return false;
  }
  text = text.substr(kBegin.size(), text.size() - kBegin.size() - 1);
  const size_t colon = text.find(':');
  const auto is_hex = [](std::string_view part) {
    return !part.empty() && part.find_first_not_of("0123456789abcdef") == part.npos;
  };
  return colon != text.npos && is_hex(text.substr(0, colon)) && is_hex(text.substr(colon + 1));
}

}  // namespace

StreamNames StreamNamesOf(HostPid pid) {
  StreamNames names;
  for (size_t i = 0; i < names.size(); ++i) {
    names[i] = StreamName(pid, i).value_or(std::string());
  }
  return names;
}

Status SaveStreams(const std::string& image, const StreamNames& names) {
  if (names == StreamNames()) {
    return {};
  }
  std::string text;
  for (const std::string& name : names) {
    text += name + '\n';
  }
  return WriteFile(StreamsPath(image), text, kFileMode);
}

Result<StreamNames> ReadStreams(const std::string& image) {
  const std::string path = StreamsPath(image);
  auto text = ReadFile(path, kMaxStreamsBytes);
  if (!text && text.error().code == Code::kNotFound) {
    return StreamNames();
  }
  GANTRY_CHECK_OK(text);
  StreamNames names;
  std::string_view rest = *text;
  for (std::string& name : names) {
    name = rest.substr(0, rest.find('\n'));
    if (rest.size() <= name.size() || (!name.empty() && !IsStreamName(name))) {
      return Fail(Code::kInvalidArgument, "read '{}': not of this backend", path);
    }
    rest.remove_prefix(name.size() + 1);
  }
  return names;
}

Result<std::vector<std::string>> ConfigureCriu(CriuVerb verb, const std::string& path,
                                               const StreamNames& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!names[i].empty()) {
      text += verb == CriuVerb::kDump ? Format("external {}\n", names[i])
                                      : Format("inherit-fd fd[{}]:{}\n", i, names[i]);
    }
  }
  if (text.empty()) {
    return std::vector<std::string>();
  }
  GANTRY_CHECK_OK(WriteFile(path, text, kFileMode));
  return std::vector<std::string>{"CRIU_CONFIG_FILE=" + path};
}

std::vector<std::string> CheckpointFlags(const CheckpointRequest& request) {
  std::vector<std::string> args;
  AddFlag(args, !request.exit, "--leave-running");
  AddFlag(args, request.open_tcp, "--tcp-established");
  AddFlag(args, request.external_unix_sockets, "--ext-unix-sk");
  AddFlag(args, request.terminal, "--shell-job");
  AddFlag(args, request.file_locks, "--file-locks");
  for (const std::string& name : request.empty_namespaces) {
    args.insert(args.end(), {"--empty-ns", name});
  }
  if (!request.cgroups_mode.empty()) {
    args.insert(args.end(), {"--manage-cgroups-mode", request.cgroups_mode});
  }
  return args;
}

Status MakeWorkDirectory(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  return error ? Status(FailErrno(error.value(), "make criu's work directory '{}'", path))
               : Status();
}

Status WithCriusWords(Status status, const std::string& log) {
  if (!status) {
    const std::string text = ReadTail(log, kMaxCriuLogBytes).value_or(std::string());
    if (const std::string words = FirstCriuError(text); !words.empty()) {
      status.error().message += Format("; criu: {}", words);
    }
  }
  return status;
}

}  // namespace gantry::runc
