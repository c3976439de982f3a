#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

// State of a training run in a file: a header (magic, version, sizes, step),
// then the parts as raw float32. The file is replaced atomically: a reader
// finds the old or the new state, also after a crash.
// Both functions throw std::runtime_error with one line that names the file.

struct Checkpoint {
  int64_t step = 0;  // completed steps
  int hidden = 0;    // size of the hidden layer
  std::vector<std::span<float>> parts;
};

void SaveCheckpoint(const std::string& file, const Checkpoint& state);

// Fills `parts` and `step`. `hidden` and the sizes of the parts are the
// expected ones; a file with other sizes is refused. Returns false if there is
// no file.
bool LoadCheckpoint(const std::string& file, Checkpoint& state);
