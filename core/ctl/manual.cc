// SPDX-License-Identifier: Apache-2.0
#include "core/ctl/manual.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <gantry/format.h>

namespace gantry::ctl {
namespace {

/// Stands for the commands of backends; it is no word to type.
constexpr std::string_view kAnyName = "NAME";

/// The ids of all that runs, one a line.
constexpr std::string_view kListIds =
    "timeout 2 gantryctl ps 2>/dev/null | awk 'NR > 1 { print $2 }'";

std::vector<Help::Command> Typed(const Help& help) {
  std::vector<Help::Command> commands = help.commands;
  std::erase_if(commands, [](const Help::Command& one) { return one.name == kAnyName; });
  return commands;
}

bool IsFor(const Help::Option& option, std::string_view command) {
  return option.commands.empty() || std::ranges::contains(option.commands, command);
}

bool TakesFile(const Help::Option& option) {
  return option.value == "FILE" || option.value == "PROGRAM" || option.value == "SOCKET";
}

std::string Replaced(std::string_view text, char what, std::string_view by) {
  std::string out;
  for (const char c : text) {
    if (c == what) {
      out += by;
    } else {
      out += c;
    }
  }
  return out;
}

// roff: a backslash is an escape, a dash a hyphen that cannot be searched for, and a dot or quote
// that begins a line a request.
std::string Roff(std::string_view text) {
  std::string out = Replaced(Replaced(text, '\\', "\\e"), '-', "\\-");
  if (out.starts_with('.') || out.starts_with('\'')) {
    out.insert(0, "\\&");
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

// In single quotes of a shell.
std::string Quoted(std::string_view text) { return Replaced(text, '\'', "'\\''"); }

std::string Options(const Help& help, std::string_view command) {
  std::string words;
  for (const Help::Option& option : help.options) {
    if (IsFor(option, command)) {
      words += (words.empty() ? "--" : " --") + option.name;
    }
  }
  return words;
}

/// The word that stands before the operands: "dump" of `debug dump [FILE]`.
std::string FixedWord(const Help::Command& command) {
  const std::string word = command.operands.substr(0, command.operands.find(' '));
  return !word.empty() && std::ranges::all_of(word, [](char c) { return c >= 'a' && c <= 'z'; })
             ? word
             : "";
}

bool TakesId(const Help::Command& command) { return command.operands == "ID"; }

bool TakesFile(const Help::Command& command) { return command.operands.contains("FILE"); }

std::string BashCase(const Help& help, const Help::Command& command) {
  std::string line = Format("    {}) words='{}", command.name, Options(help, command.name));
  if (const std::string word = FixedWord(command); !word.empty()) {
    line += " " + word;
  }
  line += "'";
  if (TakesId(command)) {
    line += Format("; [[ $cur == -* ]] || words+=\" $({})\"", kListIds);
  }
  return line + (TakesFile(command) ? "; files=1 ;;\n" : " ;;\n");
}

/// Of zsh, in which `[`, `]` and `:` mean something.
std::string ZshText(std::string_view text) {
  return Quoted(Replaced(Replaced(Replaced(text, '[', "\\["), ']', "\\]"), ':', "\\:"));
}

std::string ZshOption(const Help::Option& option) {
  std::string text = "[" + ZshText(option.text) + "]";
  if (!option.value.empty()) {
    text += Format(":{}:{}", option.value, TakesFile(option) ? "_files" : "");
  }
  return option.letter.empty()
             ? Format("'--{}{}'", option.name, text)
             : Format("'(-{0} --{1})'{{-{0},--{1}}}'{2}'", option.letter, option.name, text);
}

std::string ZshCase(const Help& help, const Help::Command& command) {
  std::string text = Format("    {})\n      _arguments -S", command.name);
  for (const Help::Option& option : help.options) {
    if (IsFor(option, command.name)) {
      text += " \\\n        " + ZshOption(option);
    }
  }
  if (const std::string word = FixedWord(command); !word.empty()) {
    text += Format(" \\\n        '1:command:({})'", word);
  }
  if (TakesId(command)) {
    text += Format(" \\\n        '1:id:($({}))'", Quoted(kListIds));
  } else if (TakesFile(command)) {
    text += " \\\n        '*:file:_files'";
  }
  return text + "\n      ;;\n";
}

std::string FishOption(const Help::Option& option) {
  std::string line = "complete -c gantryctl";
  if (!option.commands.empty()) {
    line += " -n '__fish_seen_subcommand_from";
    for (const std::string& command : option.commands) {
      line += " " + command;
    }
    line += "'";
  }
  line += Format(" -l {}", option.name);
  if (!option.letter.empty()) {
    line += Format(" -s {}", option.letter);
  }
  if (!option.value.empty()) {
    line += TakesFile(option) ? " -r -F" : " -x";
  }
  return line + Format(" -d '{}'\n", Replaced(Replaced(option.text, '\\', "\\\\"), '\'', "\\'"));
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

std::string BashCompletion(const Help& help) {
  std::string names;
  std::string cases;
  for (const Help::Command& command : Typed(help)) {
    names += (names.empty() ? "" : " ") + command.name;
    cases += BashCase(help, command);
  }
  std::string files;
  std::string values;
  for (const Help::Option& option : help.options) {
    if (!option.value.empty()) {
      std::string& to = TakesFile(option) ? files : values;
      to += (to.empty() ? "--" : "|--") + option.name;
      to += option.letter.empty() ? "" : "|-" + option.letter;
    }
  }
  return Format(R"(# SPDX-License-Identifier: Apache-2.0
# bash completion of gantryctl, made of its --help.

_gantryctl() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD - 1]}}
  local command='' files='' words i
  COMPREPLY=()
  case $prev in
    {0}) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
    {1}) return ;;
  esac
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${{COMP_WORDS[i]}} in
      {0}|{1}) i=$((i + 1)) ;;
      -*) ;;
      *) command=${{COMP_WORDS[i]}}; break ;;
    esac
  done
  case $command in
    '') words='{2} {3}' ;;
{4}    *) return ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
  if [ -n "$files" ] && [[ $cur != -* ]]; then
    compopt -o filenames
    mapfile -t -O ${{#COMPREPLY[@]}} COMPREPLY < <(compgen -f -- "$cur")
  fi
}}
complete -F _gantryctl gantryctl
)",
                files, values, names, Options(help, ""), cases);
}

std::string ZshCompletion(const Help& help) {
  std::string names;
  std::string cases;
  for (const Help::Command& command : Typed(help)) {
    names += Format("    '{}:{}'\n", command.name, Quoted(command.text));
    cases += ZshCase(help, command);
  }
  return Format(R"(#compdef gantryctl
# SPDX-License-Identifier: Apache-2.0
# zsh completion of gantryctl, made of its --help.

_gantryctl() {{
  local -a commands
  commands=(
{0}  )
  if ((CURRENT == 2)) && [[ $words[2] != -* ]]; then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  ((CURRENT--))
  case $command in
{1}  esac
}}

_gantryctl "$@"
)",
                names, cases);
}

std::string FishCompletion(const Help& help) {
  std::string text =
      "# SPDX-License-Identifier: Apache-2.0\n# fish completion of gantryctl, made of its "
      "--help.\n\n"
      "complete -c gantryctl -f\n";
  for (const Help::Command& command : Typed(help)) {
    text += Format("complete -c gantryctl -n __fish_use_subcommand -a {} -d '{}'\n", command.name,
                   Replaced(Replaced(command.text, '\\', "\\\\"), '\'', "\\'"));
    const std::string seen = Format("'__fish_seen_subcommand_from {}'", command.name);
    if (const std::string word = FixedWord(command); !word.empty()) {
      text += Format("complete -c gantryctl -n {} -a {}\n", seen, word);
    }
    if (TakesId(command)) {
      text +=
          Format("complete -c gantryctl -n {} -a \"({})\"\n", seen, Replaced(kListIds, '$', "\\$"));
    } else if (TakesFile(command)) {
      text += Format("complete -c gantryctl -n {} -F\n", seen);
    }
  }
  for (const Help::Option& option : help.options) {
    text += FishOption(option);
  }
  return text;
}

}  // namespace gantry::ctl
