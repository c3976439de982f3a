#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rankrun::agent {

// Failures in a row on one node: none on another node lies between them.
struct FailureRow {
  uint64_t node = 0;
  std::string name = {};  // of the node
  int first_attempt = 0;
  int last_attempt = 0;
  int failures = 0;
  bool operator==(const FailureRow&) const = default;
};

// Adds a failure to the last row, or begins another row. The oldest rows are forgotten.
void AddFailure(std::vector<FailureRow>& rows, uint64_t node, std::string_view name, int attempt);

// Returns "n2 (attempts 0-1), n3 (attempt 2)"; empty for fewer than two failures. Pure.
std::string FailuresText(const std::vector<FailureRow>& rows);

// Returns "2 failures in a row" or "1 failure". Pure.
std::string FailuresInARow(int failures);

// A node that has changed places with a spare.
struct ReplacedNode {
  uint64_t node = 0;
  int failures = 0;  // in a row, before that
  bool operator==(const ReplacedNode&) const = default;
};

// The nodes on which the causes of failed attempts were. Failures whose node is unknown, and the
// losses of nodes, are not among them and end no row.
struct CauseHistory {
  std::vector<FailureRow> rows = {};  // the last ones, oldest first
  std::vector<ReplacedNode> replaced = {};
  bool operator==(const CauseHistory&) const = default;

  // Returns the number of failures after which the node was replaced last; 0: it never was.
  int ReplacedAfter(uint64_t node) const;
  void RecordReplaced(uint64_t node, int failures);
};

}  // namespace rankrun::agent
