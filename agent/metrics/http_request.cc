#include "agent/metrics/http_request.h"

#include <algorithm>

namespace rankrun::agent {
namespace {

constexpr std::string_view kLineEnd = "\r\n";
// Line ends before a request that are skipped, as RFC 9112 recommends for one.
constexpr int kMaxLeadingLineEnds = 2;

std::string_view ReasonOf(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 431:
      return "Request Header Fields Too Large";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Bad Request";
  }
}

// Returns whether the bytes are those of a method, "GET", as far as they are there.
bool IsMethod(std::string_view text) {
  constexpr size_t kMaxMethod = 16;
  return text.size() <= kMaxMethod &&
         std::ranges::all_of(text, [](char c) { return c >= 'A' && c <= 'Z'; });
}

HttpAnswer AnswerToLine(std::string_view line) {
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == line.npos || last == first) return {.status = 400};
  const std::string_view method = line.substr(0, first);
  std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  const bool is_target = target.starts_with('/') && target.find(' ') == target.npos;
  if (method.empty() || !is_target || !version.starts_with("HTTP/")) return {.status = 400};
  if (!version.starts_with("HTTP/1.")) return {.status = 505};
  const bool is_head = method == "HEAD";
  if (method != "GET" && !is_head) return {.status = 405};
  target = target.substr(0, target.find('?'));
  if (target != "/metrics") return {.status = 404, .is_head = is_head};
  return {.wants_metrics = true, .is_head = is_head};
}

}  // namespace

std::optional<HttpAnswer> AnswerTo(std::string_view received) {
  const bool is_full = received.size() >= kMaxRequestHead;
  for (int i = 0; i < kMaxLeadingLineEnds && received.starts_with(kLineEnd); ++i) {
    received.remove_prefix(kLineEnd.size());
  }
  // Answers garbage, such as a TLS greeting, without waiting for the end of a line.
  if (!IsMethod(received.substr(0, received.find(' ')))) return HttpAnswer{.status = 400};
  const size_t end = received.find("\r\n\r\n");
  if (end == received.npos) {
    if (!is_full) return std::nullopt;
    return HttpAnswer{.status = 431};
  }
  if (end > kMaxRequestHead) return HttpAnswer{.status = 431};
  return AnswerToLine(received.substr(0, received.find(kLineEnd)));
}

std::string FormatResponse(const HttpAnswer& answer, std::string_view metrics) {
  std::string body(metrics);
  if (!answer.wants_metrics) {
    body = std::to_string(answer.status) + " " + std::string(ReasonOf(answer.status)) +
           "; want GET /metrics\n";
  }
  std::string text = "HTTP/1.1 " + std::to_string(answer.status) + " ";
  text += ReasonOf(answer.status);
  text += "\r\nContent-Type: text/plain; ";
  text += answer.wants_metrics ? "version=0.0.4; charset=utf-8" : "charset=utf-8";
  text += "\r\nContent-Length: " + std::to_string(body.size());
  if (answer.status == 405) text += "\r\nAllow: GET, HEAD";
  text += "\r\nConnection: close\r\n\r\n";
  return answer.is_head ? text : text + body;
}

}  // namespace rankrun::agent
