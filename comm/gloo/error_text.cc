#include "comm/gloo/error_text.h"

namespace rankrun::comm::gloo {
namespace {

// Removes " [127.0.0.1]:4711" from a longer text.
void RemoveAddress(std::string& text) {
  size_t middle = text.rfind("]:");
  size_t begin = middle == std::string::npos ? middle : text.rfind(" [", middle);
  if (begin == std::string::npos) return;
  size_t end = text.find_first_not_of("0123456789", middle + 2);
  text.erase(begin, end == std::string::npos ? end : end - begin);
}

}  // namespace

std::string PlainText(std::string text) {
  size_t location_end = text.find("] ");
  if (text.starts_with("[") && text.find("gloo/") < location_end &&
      location_end != std::string::npos) {
    text.erase(0, location_end + 2);
  }
  RemoveAddress(text);
  return text;
}

}  // namespace rankrun::comm::gloo
