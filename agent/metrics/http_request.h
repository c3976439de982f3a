#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace rankrun::agent {

// Longest head of a request that is accepted, in bytes.
constexpr size_t kMaxRequestHead = 8 * 1024;

// Answer to a request of HTTP/1, with which the connection ends.
struct HttpAnswer {
  int status = 200;
  bool wants_metrics = false;  // the body is to be added
  bool is_head = false;        // without the body
};

// Decides on the bytes that a client has sent so far; nothing while the head is incomplete.
// Serves GET and HEAD of /metrics; does not look at headers, and so not at a body. Pure.
std::optional<HttpAnswer> AnswerTo(std::string_view received);

// Returns the bytes of the response. `metrics` is the body if the answer wants it.
std::string FormatResponse(const HttpAnswer& answer, std::string_view metrics);

}  // namespace rankrun::agent
