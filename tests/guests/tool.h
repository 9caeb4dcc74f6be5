// SPDX-License-Identifier: Apache-2.0
// What tool.c does with files. Each returns 0 or the errno.
#pragma once

// Makes, fills, reads, renames, links, lists and removes files in a directory.
int Files(const char* directory);
// The names in a directory, sorted, one a line.
int List(const char* directory);
// Makes a file that is not there yet.
int Make(const char* path);
// Writes a file to the output.
int Read(const char* path);
// Makes, fills and reads a file without waiting in any call but poll; says how much, and waits for
// the end of the input.
int Stream(const char* path);
