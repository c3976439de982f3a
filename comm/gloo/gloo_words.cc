#include "comm/gloo/gloo_words.h"

#include "base/roll_call.h"

namespace rankrun::comm {
namespace {

// Of " [127.0.0.1]:4711" in a longer text, with the space and the colon after.
void RemoveAddress(std::string& text) {
  const size_t middle = text.rfind("]:");
  const size_t begin = middle == std::string::npos ? middle : text.rfind(" [", middle);
  if (begin == std::string::npos) return;
  const size_t end = text.find_first_not_of("0123456789", middle + 2);
  text.erase(begin, end == std::string::npos ? end : end - begin);
}

}  // namespace

std::string PlainWords(std::string text) {
  const size_t location_end = text.find("] ");
  if (text.starts_with("[") && text.find("gloo/") < location_end &&
      location_end != std::string::npos) {
    text.erase(0, location_end + 2);
  }
  RemoveAddress(text);
  return text;
}

std::string NameRanks(const std::vector<int>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + FormatRanks(ranks);
}

}  // namespace rankrun::comm
