#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace rankrun::comm::mesh {

// Global ranks in a grid of one or more dimensions, which may have names. A value; pure.
class Layout {
 public:
  // `ranks` in row-major order. Errors: kInvalid, for a shape that is empty or has a
  // dimension below 1, other numbers of ranks or names than the shape has, a rank or a
  // name that occurs twice, an empty name.
  static Result<Layout> Make(std::vector<int> shape, std::vector<int> ranks,
                             std::vector<std::string> names);
  // Has the ranks 0, 1, 2 ...
  static Result<Layout> Make(std::vector<int> shape, std::vector<std::string> names);

  int dims() const { return static_cast<int>(shape_.size()); }
  const std::vector<int>& shape() const { return shape_; }
  const std::vector<int>& ranks() const { return ranks_; }
  const std::vector<std::string>& names() const { return names_; }

  // Returns the position of a rank in each dimension; nothing for a rank that is not in it.
  std::optional<std::vector<int>> CoordinateOf(int rank) const;
  // Returns the groups along a dimension: the ranks that differ in it only, in its order.
  std::vector<std::vector<int>> GroupsAlong(int dim) const;
  // Returns the group along a dimension that has the rank; nothing if it is not in it.
  std::optional<std::vector<int>> GroupWith(int rank, int dim) const;
  // Error: kInvalid, with the names that there are.
  Result<int> DimOf(const std::string& name) const;

  // Returns the grid of the named dimensions, in the order of the shape, that has `rank`.
  // Errors: as DimOf; kInvalid for no name, or one that occurs twice.
  Result<Layout> Slice(const std::vector<std::string>& names, int rank) const;
  // Returns the ranks of the grid in one dimension with this name.
  Result<Layout> Flatten(const std::string& name) const;

  bool operator==(const Layout&) const = default;

 private:
  Layout(std::vector<int> shape, std::vector<int> ranks, std::vector<std::string> names)
      : shape_(std::move(shape)), ranks_(std::move(ranks)), names_(std::move(names)) {}

  std::vector<int> CoordinateAt(size_t index) const;
  // Returns the ranks with this coordinate in each dimension that does not vary.
  std::vector<int> RanksAround(const std::vector<int>& coordinate,
                               const std::vector<bool>& varies) const;

  std::vector<int> shape_;
  std::vector<int> ranks_;          // in row-major order
  std::vector<std::string> names_;  // empty: the dimensions have none
};

}  // namespace rankrun::comm::mesh
