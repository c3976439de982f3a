#include "agent/metrics/http_request.h"

#include <algorithm>

#include "base/lowercase.h"
#include "base/net/host_port.h"
#include "base/net/socket_address.h"

namespace rankrun::agent {
namespace {

constexpr std::string_view kLineEnd = "\r\n";
// Line ends before a request that are skipped, as RFC 9112 recommends for one.
constexpr int kMaxLeadingLineEnds = 2;

std::string_view ReasonOf(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 421:
      return "Misdirected Request";
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

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == text.npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

// Returns the values of the header Host in the lines after the first one.
std::vector<std::string_view> HostsIn(std::string_view head) {
  std::vector<std::string_view> hosts;
  for (size_t end = head.find(kLineEnd); end != head.npos; end = head.find(kLineEnd)) {
    head.remove_prefix(end + kLineEnd.size());
    const std::string_view line = head.substr(0, head.find(kLineEnd));
    const size_t colon = line.find(':');
    if (colon == line.npos) continue;
    const std::string name = Lowercase(std::string(Trimmed(line.substr(0, colon))));
    if (name == "host") hosts.push_back(Trimmed(line.substr(colon + 1)));
  }
  return hosts;
}

HttpAnswer AnswerToHead(std::string_view head, const HostNames& hosts) {
  HttpAnswer answer = AnswerToLine(head.substr(0, head.find(kLineEnd)));
  const std::vector<std::string_view> asked = HostsIn(head);
  if (asked.size() > 1) return {.status = 400};
  if (asked.empty() || hosts.Has(asked.front())) return answer;
  return {.status = 421,
          .is_head = answer.is_head,
          .advice =
              "want a numeric address, localhost or a name of this machine as Host; "
              "--metrics-open accepts any name"};
}

}  // namespace

bool HostNames::Has(std::string_view header) const {
  if (any) return true;
  auto parsed = ParseHostPort(header);
  if (!parsed) return false;
  if (SocketAddress::FromNumeric(parsed->host, 0)) return true;
  std::string host = Lowercase(parsed->host);
  if (host.ends_with('.')) host.pop_back();
  return host == "localhost" || std::ranges::any_of(names, [&](const std::string& name) {
           return !name.empty() && Lowercase(name) == host;
         });
}

std::optional<HttpAnswer> AnswerTo(std::string_view received, const HostNames& hosts) {
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
  return AnswerToHead(received.substr(0, end), hosts);
}

std::string FormatResponse(const HttpAnswer& answer, std::string_view metrics) {
  std::string body(metrics);
  if (!answer.wants_metrics) {
    body = std::to_string(answer.status) + " " + std::string(ReasonOf(answer.status)) + "; " +
           answer.advice + "\n";
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
