// SPDX-License-Identifier: Apache-2.0
//
// A program that does what the script NAME.sh beside it says: a keeper is no script itself.
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  std::string script = std::string(argv[0]) + ".sh";
  std::array shell = {'s', 'h', '\0'};
  std::vector<char*> words = {shell.data(), script.data()};
  words.insert(words.end(), argv + 1, argv + argc + 1);
  execv("/bin/sh", words.data());
  return 127;
}
