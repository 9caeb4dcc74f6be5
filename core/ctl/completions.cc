// SPDX-License-Identifier: Apache-2.0
#include "core/ctl/completions.h"

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

/// What can be said with it; with one without a name: what can be said with all.
std::vector<Help::Option> OptionsOf(const Help& help, const Help::Command& command) {
  if (!command.own_options.empty()) {
    return command.own_options;
  }
  std::vector<Help::Option> options = help.options;
  std::erase_if(options, [&](const Help::Option& one) {
    return !one.commands.empty() && !std::ranges::contains(one.commands, command.name);
  });
  return options;
}

bool TakesFile(const Help::Option& option) {
  return option.value == "FILE" || option.value == "PATH" || option.value == "PROGRAM" ||
         option.value == "SOCKET";
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

// In single quotes of a shell.
std::string Quoted(std::string_view text) { return Replaced(text, '\'', "'\\''"); }

std::string OptionWords(const Help& help, const Help::Command& command) {
  std::string words;
  for (const Help::Option& option : OptionsOf(help, command)) {
    words += (words.empty() ? "--" : " --") + option.name;
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
  std::string line = Format("    {}) words='{}", command.name, OptionWords(help, command));
  if (const std::string word = FixedWord(command); !word.empty()) {
    line += " " + word;
  }
  line += "'";
  if (TakesId(command)) {
    line += Format("; [[ $cur == -* ]] || words+=\" $({})\"", kListIds);
  }
  return line + (TakesFile(command) ? "; files=1 ;;\n" : " ;;\n");
}

/// The options whose value is a file, or another one, of all commands: those of one name are alike.
std::string BashPattern(const Help& help, bool files) {
  std::vector<Help::Option> options = help.options;
  for (const Help::Command& command : help.commands) {
    options.insert(options.end(), command.own_options.begin(), command.own_options.end());
  }
  std::vector<std::string> words;
  for (const Help::Option& option : options) {
    if (option.value.empty() || TakesFile(option) != files ||
        std::ranges::contains(words, "--" + option.name)) {
      continue;
    }
    words.push_back("--" + option.name);
    if (!option.letter.empty()) {
      words.push_back("-" + option.letter);
    }
  }
  std::string pattern;
  for (const std::string& word : words) {
    pattern += (pattern.empty() ? "" : "|") + word;
  }
  return pattern;
}

/// Of zsh, in which `[`, `]` and `:` mean something.
std::string ZshText(std::string_view text) {
  return Quoted(Replaced(Replaced(Replaced(text, '[', "\\["), ']', "\\]"), ':', "\\:"));
}

std::string ZshOption(const Help::Option& option) {
  std::string text = "[" + ZshText(option.text) + "]";
  if (!option.value.empty()) {
    text += Format(":{}:{}", Quoted(Replaced(option.value, ':', "\\:")),
                   TakesFile(option) ? "_files" : "");
  }
  return option.letter.empty()
             ? Format("'--{}{}'", option.name, text)
             : Format("'(-{0} --{1})'{{-{0},--{1}}}'{2}'", option.letter, option.name, text);
}

std::string ZshCase(const Help& help, const Help::Command& command) {
  std::string text = Format("    {})\n      _arguments -S", command.name);
  for (const Help::Option& option : OptionsOf(help, command)) {
    text += " \\\n        " + ZshOption(option);
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

/// Where the command has been typed, or one of several with a blank between them.
std::string FishSeen(std::string_view commands) {
  return Format("'__fish_seen_subcommand_from {}'", commands);
}

/// Where an option is offered that is not a command's own.
std::string FishPlace(const Help& help, const Help::Option& option) {
  std::string commands;
  for (const std::string& command : option.commands) {
    commands += (commands.empty() ? "" : " ") + command;
  }
  if (!commands.empty()) {
    return FishSeen(commands);
  }
  for (const Help::Command& command : help.commands) {
    if (!command.own_options.empty()) {
      commands += " " + command.name;
    }
  }
  return Format("'not __fish_seen_subcommand_from{}'", commands);
}

std::string FishOption(std::string_view place, const Help::Option& option) {
  std::string line = Format("complete -c gantryctl -n {} -l {}", place, option.name);
  if (!option.letter.empty()) {
    line += Format(" -s {}", option.letter);
  }
  if (!option.value.empty()) {
    line += TakesFile(option) ? " -r -F" : " -x";
  }
  return line + Format(" -d '{}'\n", Replaced(Replaced(option.text, '\\', "\\\\"), '\'', "\\'"));
}

}  // namespace

std::string BashCompletion(const Help& help) {
  std::string names;
  std::string cases;
  for (const Help::Command& command : Typed(help)) {
    names += (names.empty() ? "" : " ") + command.name;
    cases += BashCase(help, command);
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
                BashPattern(help, true), BashPattern(help, false), names, OptionWords(help, {}),
                cases);
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
    const std::string seen = FishSeen(command.name);
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
    text += FishOption(FishPlace(help, option), option);
  }
  for (const Help::Command& command : help.commands) {
    for (const Help::Option& option : command.own_options) {
      text += FishOption(FishSeen(command.name), option);
    }
  }
  return text;
}

}  // namespace gantry::ctl
