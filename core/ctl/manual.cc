// SPDX-License-Identifier: Apache-2.0
#include "core/ctl/manual.h"

#include <string_view>

#include <gantry/format.h>

namespace gantry::ctl {
namespace {

// roff: a backslash is an escape, a dash a hyphen that cannot be searched for, and a dot or quote
// that begins a line a request.
std::string Roff(std::string_view text) {
  std::string out = text.starts_with('.') || text.starts_with('\'') ? "\\&" : "";
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string RoffItem(std::string_view term, std::string_view text) {
  return Format(".TP\n{}\n{}\n", term, Roff(text));
}

std::string RoffOption(const Help::Option& option) {
  std::string term = Format("\\fB{}\\fR", Roff("--" + option.name));
  if (!option.letter.empty()) {
    term = Format("\\fB\\-{}\\fR, {}", option.letter, term);
  }
  return RoffItem(option.value.empty() ? term : Format("{} \\fI{}\\fR", term, option.value),
                  option.text);
}

/// A section, where the command has some.
std::string RoffOwnOptions(const Help::Command& command) {
  if (command.own_options.empty()) {
    return "";
  }
  std::string section =
      Format(".SH OPTIONS OF {0}\n.B gantryctl {0}\ntakes these instead:\n", Roff(command.name));
  for (const Help::Option& option : command.own_options) {
    section += RoffOption(option);
  }
  return section;
}

}  // namespace

std::string ManualPage(const Help& help) {
  std::string page =
      ".\\\" SPDX-License-Identifier: Apache-2.0\n"
      ".TH GANTRYCTL 8 \"\" \"gantry " GANTRY_VERSION
      "\" \"System Administration\"\n"
      ".SH NAME\ngantryctl \\- look at gantry's sandboxes and containers, and look after them\n"
      ".SH SYNOPSIS\n.B gantryctl\n.I COMMAND\n[\\fIOPTION\\fR...]\n"
      ".SH DESCRIPTION\n"
      "gantry is one daemon per node between containerd and every kind of sandbox.\n"
      ".B gantryctl\nasks its engine and its keeper, looks at the node, and puts new programs in "
      "their place.\n.SH COMMANDS\n";
  for (const Help::Command& command : help.commands) {
    page += RoffItem(command.operands.empty() ? Format("\\fB{}\\fR", Roff(command.name))
                                              : Format("\\fB{}\\fR \\fI{}\\fR", Roff(command.name),
                                                       Roff(command.operands)),
                     command.text);
  }
  page += ".SH OPTIONS\n";
  for (const Help::Option& option : help.options) {
    page += RoffOption(option);
  }
  for (const Help::Command& command : help.commands) {
    page += RoffOwnOptions(command);
  }
  page += ".SH EXIT STATUS\n";
  page += RoffItem("0", "Done; and doctor found nothing missing.");
  page += RoffItem("1", "It failed, or doctor found something missing.");
  page += RoffItem("2", "There is no such command, option or operand.");
  page += ".SH ENVIRONMENT\n";
  page += RoffItem("\\fBGANTRY_RUN_DIR\\fR", "The run directory, /run/gantry by default.");
  page +=
      RoffItem("\\fBGANTRY_CONFIG\\fR", "The configuration, /etc/gantry/gantry.yaml by default.");
  page += RoffItem("\\fBGANTRY_LIBEXEC_DIR\\fR", "Where gantry's programs are.");
  page += ".SH FILES\n";
  page += RoffItem("\\fI/etc/gantry/gantry.yaml\\fR", "The configuration of the engine.");
  page += RoffItem("\\fI/run/gantry/gantry.log\\fR, \\fIkeeper.log\\fR",
                   "What engine and keeper have to say.");
  page += RoffItem("\\fI/run/gantry/trace.ring\\fR", "The flight recorder, which trace shows.");
  page += ".SH SEE ALSO\n.BR containerd\\-shim\\-gantry\\-v1 (8),\n.BR containerd (8)\n";
  return page;
}

}  // namespace gantry::ctl
