// SPDX-License-Identifier: Apache-2.0
//
// Engine and gantry-grpc log to files in the run directory, with the part before in NAME.1; the
// keeper's is beside them, or where systemd has started it, in the journal.
#include "core/ctl/logs.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "core/ctl/client.h"
#include "core/ctl/node.h"
#include "core/ctl/output.h"
#include "core/ctl/run_tool.h"
#include "core/ctl/since.h"
#include "core/link/paths.h"

namespace gantry::ctl {
namespace {

/// Of one file. The engine begins another one at `link::kMaxLogBytes`, with a line to spare.
constexpr size_t kMostBytes = static_cast<size_t>(link::kMaxLogBytes) + (size_t{1} << 20);
constexpr const char* kJournalLines = "20000";
constexpr std::chrono::seconds kJournalLimit(10);

/// "2026-01-31T08:15:30"; what follows may have fewer or more digits.
constexpr size_t kTimeBytes = 19;

/// The time of a line, as text that sorts like it; empty: it has none.
std::string_view TimeOf(std::string_view line) {
  constexpr std::string_view kKey = "time=";
  if (line.starts_with(kKey)) {
    line.remove_prefix(kKey.size());
  }
  const size_t end = line.find('Z');
  if (end == std::string_view::npos || end < kTimeBytes || line[4] != '-' || line[10] != 'T') {
    return {};
  }
  // Without the Z: "30" comes before "30.1".
  return line.substr(0, end);
}

bool IsOfWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
}

bool Names(std::string_view line, std::string_view id) {
  for (size_t at = line.find(id); at != std::string_view::npos; at = line.find(id, at + 1)) {
    const size_t end = at + id.size();
    if ((at == 0 || !IsOfWord(line[at - 1])) && (end == line.size() || !IsOfWord(line[end]))) {
      return true;
    }
  }
  return false;
}

struct Line {
  std::string_view time;
  std::string_view program;
  std::string_view text;
};

/// What is known of those in a sandbox; nothing where no engine answers.
std::vector<std::string> WithMembers(const Arguments& arguments, const std::string& id) {
  std::vector<std::string> ids = {id};
  auto client = OperatorClient::Connect(arguments.address);
  const auto list = client ? client->List(arguments.ns)
                           : Result<v1::ListResponse>(std::unexpected(client.error()));
  if (list) {
    for (const v1::Instance& instance : list->instances()) {
      if (instance.sandbox_id() == id) {
        ids.push_back(instance.id());
      }
    }
  }
  return ids;
}

/// NAME.1 and NAME; empty: there is neither. Errors: it cannot be read.
Result<std::string> TextOf(const std::string& path) {
  std::string text;
  for (const std::string& file : {path + ".1", path}) {
    Result<std::string> part = ReadTail(file, kMostBytes);
    if (part) {
      text += *part;
    } else if (part.error().code != Code::kNotFound) {
      return std::unexpected(std::move(part).error());
    }
  }
  return text;
}

std::string KeepersJournal() {
  const std::string tool = Node().Find("journalctl");
  if (tool.empty()) {
    return {};
  }
  return OutputOf({tool, "--unit=gantry-keeper.service", "--output=cat", "--no-pager",
                   Format("--lines={}", kJournalLines)},
                  kJournalLimit)
      .value_or(std::string());
}

}  // namespace

std::string LinesAbout(const std::vector<LogText>& logs, const std::vector<std::string>& ids,
                       int64_t since_ns) {
  // As text it sorts like those of the lines, which are looked at without their Z.
  std::string since = TimeText(since_ns);
  if (!since.empty()) {
    since.pop_back();
  }
  std::vector<Line> lines;
  for (const LogText& log : logs) {
    std::string_view last;
    std::string_view rest = log.text;
    while (!rest.empty()) {
      const size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
      std::string_view text = rest.substr(0, end);
      rest.remove_prefix(end);
      if (text.ends_with('\n')) {
        text.remove_suffix(1);
      }
      const std::string_view own = TimeOf(text);
      last = own.empty() ? last : own;
      const bool wanted = ids.empty() || std::ranges::any_of(ids, [text](const std::string& id) {
                            return Names(text, id);
                          });
      if (wanted && last >= since) {
        lines.push_back({last, log.program, text});
      }
    }
  }
  std::ranges::stable_sort(lines, {}, &Line::time);
  std::string out;
  for (const Line& line : lines) {
    out += Format("{:<7} {}\n", line.program, line.text);
  }
  return out;
}

Result<std::string> Logs(const Arguments& arguments) {
  int64_t since = 0;
  if (!arguments.since.empty()) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    GANTRY_TRY(since,
               ParseSince(arguments.since,
                          std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()));
  }
  const std::string dir = link::RunDir();
  std::vector<LogText> logs;
  for (const auto& [program, file] :
       {std::pair("engine", "gantry.log"), std::pair("keeper", "keeper.log"),
        std::pair("grpc", "grpc.log")}) {
    GANTRY_TRY(std::string text, TextOf(Format("{}/{}", dir, file)));
    logs.push_back({program, std::move(text)});
  }
  if (logs[1].text.empty() && std::getenv("GANTRY_RUN_DIR") == nullptr) {
    logs[1].text = KeepersJournal();
  }
  if (std::ranges::all_of(logs, [](const LogText& log) { return log.text.empty(); })) {
    return Fail(Code::kNotFound,
                "read the logs in '{}': there are none; $GANTRY_RUN_DIR says where gantry's are",
                dir);
  }
  std::vector<std::string> ids;
  if (!arguments.operands.empty()) {
    ids = WithMembers(arguments, arguments.operands.front());
  }
  return LinesAbout(logs, ids, since);
}

}  // namespace gantry::ctl
