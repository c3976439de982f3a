#include "comm/mesh/layout.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace rankrun::comm::mesh {
namespace {

Error Invalid(const std::string& message) { return {ErrorCode::kInvalid, message}; }

std::string Joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string InWords(const std::vector<int>& shape) {
  std::string text;
  for (int size : shape) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text;
}

constexpr size_t kMaxRanks = size_t{1} << 24;

// Returns the number of ranks; 0 for a shape that has none or too many.
size_t SizeOf(const std::vector<int>& shape) {
  size_t size = shape.empty() ? 0 : 1;
  for (int each : shape) {
    if (each < 1 || size > kMaxRanks) return 0;
    size *= static_cast<size_t>(each);
  }
  return size > kMaxRanks ? 0 : size;
}

Result<void> CheckShape(const std::vector<int>& shape) {
  if (shape.empty()) return Invalid("the mesh has no dimension: want at least one");
  if (SizeOf(shape) > 0) return {};
  bool has_all = std::all_of(shape.begin(), shape.end(), [](int size) { return size >= 1; });
  return Invalid("the shape is " + InWords(shape) + ": want dimensions of at least 1" +
                 (has_all ? ", and at most " + std::to_string(kMaxRanks) + " ranks" : ""));
}

Result<void> CheckNames(const std::vector<std::string>& names, const std::vector<int>& shape) {
  if (names.empty()) return {};
  if (names.size() != shape.size()) {
    return Invalid("the mesh has " + std::to_string(shape.size()) + " dimensions and the names " +
                   Joined(names) + ": want one name for each dimension, or none");
  }
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (name.empty()) return Invalid("a dimension of the mesh has an empty name");
    if (!seen.insert(name).second) {
      return Invalid("two dimensions of the mesh have the name " + name);
    }
  }
  return {};
}

Result<void> CheckRanks(const std::vector<int>& ranks, const std::vector<int>& shape) {
  if (ranks.size() != SizeOf(shape)) {
    return Invalid("the mesh of " + InWords(shape) + " has " + std::to_string(ranks.size()) +
                   " ranks: want " + std::to_string(SizeOf(shape)));
  }
  std::set<int> seen;
  for (int rank : ranks) {
    if (rank < 0)
      return Invalid("the mesh has the rank " + std::to_string(rank) + ": want 0 or more");
    if (!seen.insert(rank).second) {
      return Invalid("the mesh has rank " + std::to_string(rank) + " twice");
    }
  }
  return {};
}

}  // namespace

Result<Layout> Layout::Make(std::vector<int> shape, std::vector<int> ranks,
                            std::vector<std::string> names) {
  if (auto ok = CheckShape(shape); !ok) return ok.error();
  if (auto ok = CheckNames(names, shape); !ok) return ok.error();
  if (auto ok = CheckRanks(ranks, shape); !ok) return ok.error();
  return Layout(std::move(shape), std::move(ranks), std::move(names));
}

Result<Layout> Layout::Make(std::vector<int> shape, std::vector<std::string> names) {
  std::vector<int> ranks(SizeOf(shape));
  std::iota(ranks.begin(), ranks.end(), 0);
  return Make(std::move(shape), std::move(ranks), std::move(names));
}

std::vector<int> Layout::CoordinateAt(size_t index) const {
  std::vector<int> coordinate(shape_.size());
  for (size_t dim = shape_.size(); dim-- > 0;) {
    auto size = static_cast<size_t>(shape_[dim]);
    coordinate[dim] = static_cast<int>(index % size);
    index /= size;
  }
  return coordinate;
}

std::optional<std::vector<int>> Layout::CoordinateOf(int rank) const {
  auto found = std::find(ranks_.begin(), ranks_.end(), rank);
  if (found == ranks_.end()) return std::nullopt;
  return CoordinateAt(static_cast<size_t>(found - ranks_.begin()));
}

std::vector<int> Layout::RanksAround(const std::vector<int>& coordinate,
                                     const std::vector<bool>& varies) const {
  std::vector<int> ranks;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    std::vector<int> other = CoordinateAt(i);
    bool is_near = true;
    for (size_t dim = 0; dim < shape_.size(); ++dim) {
      is_near &= varies[dim] || other[dim] == coordinate[dim];
    }
    if (is_near) ranks.push_back(ranks_[i]);
  }
  return ranks;
}

std::vector<std::vector<int>> Layout::GroupsAlong(int dim) const {
  auto size = static_cast<size_t>(shape_[static_cast<size_t>(dim)]);
  size_t stride = 1;  // between neighbours in this dimension
  for (size_t later = static_cast<size_t>(dim) + 1; later < shape_.size(); ++later) {
    stride *= static_cast<size_t>(shape_[later]);
  }
  std::vector<std::vector<int>> groups;
  for (size_t first = 0; first < ranks_.size(); ++first) {
    if (first / stride % size != 0) continue;
    std::vector<int>& group = groups.emplace_back();
    for (size_t i = 0; i < size; ++i) group.push_back(ranks_[first + i * stride]);
  }
  return groups;
}

std::optional<std::vector<int>> Layout::GroupWith(int rank, int dim) const {
  auto coordinate = CoordinateOf(rank);
  if (!coordinate) return std::nullopt;
  std::vector<bool> varies(shape_.size());
  varies[static_cast<size_t>(dim)] = true;
  return RanksAround(*coordinate, varies);
}

Result<int> Layout::DimOf(const std::string& name) const {
  auto found = std::find(names_.begin(), names_.end(), name);
  if (found != names_.end()) return static_cast<int>(found - names_.begin());
  return Invalid("the mesh has no dimension " + name + ": " +
                 (names_.empty() ? "its dimensions have no names" : "want " + Joined(names_)));
}

Result<Layout> Layout::Slice(const std::vector<std::string>& names, int rank) const {
  if (names.empty()) return Invalid("the slice has no dimension: want at least one name");
  auto coordinate = CoordinateOf(rank);
  if (!coordinate) return Invalid("rank " + std::to_string(rank) + " is not in the mesh");
  std::vector<bool> varies(shape_.size());
  for (const std::string& name : names) {
    auto dim = DimOf(name);
    if (!dim) return std::move(dim).error();
    if (varies[static_cast<size_t>(*dim)]) return Invalid("the slice has " + name + " twice");
    varies[static_cast<size_t>(*dim)] = true;
  }
  std::vector<int> shape;
  std::vector<std::string> kept;
  for (size_t dim = 0; dim < shape_.size(); ++dim) {
    if (!varies[dim]) continue;
    shape.push_back(shape_[dim]);
    kept.push_back(names_[dim]);
  }
  return Layout(std::move(shape), RanksAround(*coordinate, varies), std::move(kept));
}

Result<Layout> Layout::Flatten(const std::string& name) const {
  return Make({static_cast<int>(ranks_.size())}, ranks_, {name});
}

}  // namespace rankrun::comm::mesh
