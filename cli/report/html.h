#pragma once

#include <string>
#include <string_view>

namespace rankrun::cli {

// Returns text for HTML and XML, inside of an element or of a quoted attribute: one line, with
// control characters escaped as for a terminal. Pure.
std::string Html(std::string_view text);

// The same for several lines.
std::string HtmlLines(std::string_view text);

// Returns a number with `decimals` digits behind the point.
std::string Decimal(double number, int decimals);

// Returns a duration as a reader wants it: "0.012 s", "75.0 s", "12 min 5 s", "3 h 12 min".
std::string ShownDuration(double seconds);

}  // namespace rankrun::cli
