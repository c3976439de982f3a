#include "launcher/settings/node_range.h"

#include <algorithm>

#include "base/parse_number.h"
#include "launcher/flags/text.h"

namespace rankrun::launcher {
namespace {

constexpr int kMaxNodes = 1'000'000;

}  // namespace

Result<NodeRange> ReadNodeRange(const Settings& settings) {
  std::string text = settings.Text("nnodes").value_or("1");
  size_t colon = std::min(text.find(':'), text.size());
  auto least = ParseNumber<int>(std::string_view(text).substr(0, colon));
  auto most =
      colon == text.size() ? least : ParseNumber<int>(std::string_view(text).substr(colon + 1));
  if (!least || !most) return settings.Wrong("nnodes", "want N or MIN:MAX" + Got(text));
  if (*least < 1 || *least > *most) {
    return settings.Wrong("nnodes", "want at least 1, and MIN not above MAX" + Got(text));
  }
  if (*most > kMaxNodes) {
    return settings.Wrong("nnodes", "want at most " + std::to_string(kMaxNodes) + Got(text));
  }
  return NodeRange{*least, *most};
}

}  // namespace rankrun::launcher
