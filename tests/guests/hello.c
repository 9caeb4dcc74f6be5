// SPDX-License-Identifier: Apache-2.0
// Says what it was given: its arguments, its environment, then its input line by line.
#include <stdio.h>

extern char** environ;

int main(int argc, char** argv) {
  for (int i = 0; i < argc; ++i) {
    printf("arg %s\n", argv[i]);
  }
  for (char** each = environ; *each != NULL; ++each) {
    printf("env %s\n", *each);
  }
  char line[4096];
  while (fgets(line, sizeof line, stdin) != NULL) {
    printf("in %s", line);
  }
  return 0;
}
