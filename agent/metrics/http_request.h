#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rankrun::agent {

// Longest head of a request that is accepted, in bytes.
constexpr size_t kMaxRequestHead = 8 * 1024;

// Answer to a request of HTTP/1, with which the connection ends.
struct HttpAnswer {
  int status = 200;
  bool wants_metrics = false;  // the body is to be added
  bool is_head = false;        // without the body
  std::string advice = "want GET /metrics";
};

// Names of the server in the header Host. A page of another site that a browser shows can have its
// own name resolve to the address of this server ("DNS rebinding"), but then the header has that
// name.
struct HostNames {
  bool any = false;                     // also names that are not known here
  std::vector<std::string> names = {};  // besides all numeric addresses and "localhost"

  // `header`: "node7:9400". Pure.
  bool Has(std::string_view header) const;
};

// Decides on the bytes that a client has sent so far; nothing while the head is incomplete.
// Serves GET and HEAD of /metrics; looks at no header but Host, and so not at a body. A program
// that is no browser may omit Host. Pure.
std::optional<HttpAnswer> AnswerTo(std::string_view received, const HostNames& hosts);

// Returns the bytes of the response. `metrics` is the body if the answer wants it.
std::string FormatResponse(const HttpAnswer& answer, std::string_view metrics);

}  // namespace rankrun::agent
