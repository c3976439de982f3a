#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

// The state of a training run in a file: a header (magic, version, sizes,
// step), then the parts as raw float32. The file is replaced as a whole:
// whoever opens it finds the old or the new state, also after a crash.
// Both throw std::runtime_error with one line that names the file.

struct Checkpoint {
  int64_t step = 0;  // steps that were done
  int hidden = 0;    // size of the model
  std::vector<std::span<float>> parts;
};

void SaveCheckpoint(const std::string& file, const Checkpoint& state);

// Fills `parts` and `step`. `hidden` and the parts' sizes are what the program
// expects: a file with others is refused. Returns false if there is no file.
bool LoadCheckpoint(const std::string& file, Checkpoint& state);
