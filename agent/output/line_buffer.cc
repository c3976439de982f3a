#include "agent/output/line_buffer.h"

#include <algorithm>
#include <utility>

#include "base/find_last.h"

namespace rankrun::agent {

std::string LineBuffer::Add(std::string_view bytes) {
  size_t end = bytes.find_last_of("\n\r");
  size_t taken = end == std::string_view::npos ? 0 : end + 1;
  std::string lines;
  if (taken > 0) {
    lines = std::exchange(rest_, {});
    lines += bytes.substr(0, taken);
  }
  rest_ += bytes.substr(taken);
  if (rest_.size() > kMaxPart) lines += TakeRest();
  return lines;
}

std::string LineBuffer::TakeRest() { return std::exchange(rest_, {}); }

void TailBuffer::Add(std::string_view bytes) {
  total_bytes_ += bytes.size();
  kept_ += bytes.substr(bytes.size() - std::min(bytes.size(), kKeptBytes));
  // Move memory once per kKeptBytes instead of at every call.
  if (kept_.size() > 2 * kKeptBytes) kept_.erase(0, kept_.size() - kKeptBytes);
}

std::string TailBuffer::Tail() const {
  if (kept_.size() <= kKeptBytes && kept_.size() == total_bytes_) return kept_;
  size_t begin = kept_.size() - std::min(kept_.size(), kKeptBytes);
  size_t newline = kept_.find('\n', begin == 0 ? 0 : begin - 1);
  if (newline != std::string::npos && newline + 1 < kept_.size()) begin = newline + 1;
  return kept_.substr(begin);
}

void TailBuffer::Cut(size_t max_bytes) {
  kept_ = Last(max_bytes);
  kept_.shrink_to_fit();
}

TailBuffer::Part TailBuffer::After(uint64_t position, size_t max_bytes) const {
  const uint64_t first = total_bytes_ - kept_.size();
  Part part{.text = {}, .begin = std::clamp<uint64_t>(position, first, total_bytes_)};
  part.text = kept_.substr(part.begin - first, max_bytes);
  if (part.end() == total_bytes_) return part;
  if (size_t newline = part.text.rfind('\n'); newline != std::string::npos) {
    part.text.resize(newline + 1);
    return part;
  }
  constexpr size_t kMaxCharacterBytes = 4;
  size_t end = part.text.size();
  auto continues = [&](size_t at) {
    return (static_cast<unsigned char>(kept_[at]) & 0xC0) == 0x80;
  };
  while (end > 0 && part.text.size() - end < kMaxCharacterBytes &&
         continues(part.begin - first + end)) {
    end -= 1;
  }
  if (end > 0) part.text.resize(end);
  return part;
}

std::vector<std::string> LastLines(std::string_view text, size_t count) {
  std::vector<std::string> lines;
  if (text.ends_with('\n')) text.remove_suffix(1);
  while (!text.empty() && lines.size() < count) {
    const size_t begin = FindLast(text, "\n") + 1;  // npos + 1 is 0
    std::string_view line = text.substr(begin);
    text = text.substr(0, begin - std::min<size_t>(begin, 1));
    while (line.ends_with('\r')) line.remove_suffix(1);
    line.remove_prefix(FindLast(line, "\r") + 1);
    lines.emplace_back(line);
  }
  std::reverse(lines.begin(), lines.end());
  return lines;
}

}  // namespace rankrun::agent
