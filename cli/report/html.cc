#include "cli/report/html.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/printable.h"

namespace rankrun::cli {

std::string Html(std::string_view text) {
  std::string html;
  for (char c : OneLine(text)) {
    switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      case '\'':
        html += "&#39;";
        break;
      default:
        html += c;
    }
  }
  return html;
}

std::string HtmlLines(std::string_view text) {
  std::string html;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    html += Html(text.substr(0, end)) + "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return html;
}

std::string Decimal(double number, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, number);
  return text;
}

std::string ShownDuration(double seconds) {
  constexpr double kMinute = 60;
  constexpr double kHour = 3600;
  if (seconds < 1) return Decimal(seconds, 3) + " s";
  if (seconds < 2 * kMinute) return Decimal(seconds, 1) + " s";
  auto whole = [](double number) { return Decimal(std::floor(number), 0); };
  if (seconds < 2 * kHour) {
    return whole(seconds / kMinute) + " min " + whole(std::fmod(seconds, kMinute)) + " s";
  }
  return whole(seconds / kHour) + " h " + whole(std::fmod(seconds, kHour) / kMinute) + " min";
}

}  // namespace rankrun::cli
