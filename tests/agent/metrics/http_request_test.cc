#include "agent/metrics/http_request.h"

#include <gtest/gtest.h>

namespace rankrun::agent {
namespace {

const HostNames kHosts{.names = {"node7", "Node7.Cluster", ""}};

int StatusOf(std::string_view received) {
  auto answer = AnswerTo(received, kHosts);
  return answer ? answer->status : 0;
}

TEST(HttpRequestTest, AGetOfTheMetricsIsServed) {
  for (const char* request :
       {"GET /metrics HTTP/1.1\r\nHost: node7\r\n\r\n", "GET /metrics HTTP/1.0\r\n\r\n",
        "GET /metrics?format=text HTTP/1.1\r\n\r\n", "\r\nGET /metrics HTTP/1.1\r\n\r\n"}) {
    auto answer = AnswerTo(request, kHosts);
    ASSERT_TRUE(answer) << request;
    EXPECT_EQ(answer->status, 200) << request;
    EXPECT_TRUE(answer->wants_metrics);
    EXPECT_FALSE(answer->is_head);
  }
}

TEST(HttpRequestTest, AHeadHasNoBody) {
  auto answer = AnswerTo("HEAD /metrics HTTP/1.1\r\n\r\n", kHosts);
  ASSERT_TRUE(answer);
  std::string response = FormatResponse(*answer, "metrics");
  EXPECT_TRUE(response.ends_with("\r\n\r\n")) << response;
  EXPECT_NE(response.find("Content-Length: 7\r\n"), response.npos) << response;
}

TEST(HttpRequestTest, EveryPrefixOfARequestIsIncomplete) {
  const std::string request = "GET /metrics HTTP/1.1\r\nHost: node7\r\n\r\n";
  for (size_t size = 0; size < request.size(); ++size) {
    EXPECT_EQ(StatusOf(request.substr(0, size)), 0) << size;
  }
}

TEST(HttpRequestTest, OtherRequestsAreRefused) {
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\n\r\n"), 404);
  EXPECT_EQ(StatusOf("GET /metrics/ HTTP/1.1\r\n\r\n"), 404);
  EXPECT_EQ(StatusOf("POST /metrics HTTP/1.1\r\n\r\n"), 405);
  EXPECT_EQ(StatusOf("GET /metrics HTTP/2.0\r\n\r\n"), 505);
  EXPECT_EQ(StatusOf("GET /metrics\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET metrics HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET /a b HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET  HTTP/1.1\r\n\r\n"), 400);
}

// A page of another site has its browser ask for the name of that site.
TEST(HttpRequestTest, OnlyNamesOfThisMachineAreServed) {
  auto status_of = [](const std::string& host) {
    return StatusOf("GET /metrics HTTP/1.1\r\nAccept: a:b\r\nhost:" + host + "\r\n\r\n");
  };
  for (const char* host :
       {"127.0.0.1:9400", " 10.1.2.3", "[::1]:9400", "[fe80::1]", "localhost", " LocalHost:80 ",
        "node7", "NODE7:9400", "node7.cluster.", "node7.cluster:9400"}) {
    EXPECT_EQ(status_of(host), 200) << host;
  }
  for (const char* host :
       {"evil.example", "evil.example:9400", "node7.evil.example", "localhost.a",
        "127.0.0.1.evil.example", "", ":9400", "[::1", "a b", "[evil.example]"}) {
    EXPECT_EQ(status_of(host), 421) << host;
  }
  EXPECT_EQ(status_of("node7\r\nHost: node7"), 400);
  const HostNames all{.any = true};
  EXPECT_EQ(AnswerTo("GET /metrics HTTP/1.1\r\nHost: service\r\n\r\n", all)->status, 200);
}

TEST(HttpRequestTest, GarbageIsRefusedAtOnce) {
  EXPECT_EQ(StatusOf("\x16\x03\x01"), 400);  // TLS
  EXPECT_EQ(StatusOf("get /metrics"), 400);
  EXPECT_EQ(StatusOf(std::string("\0", 1)), 400);
  EXPECT_EQ(StatusOf(std::string(17, 'A')), 400);
}

TEST(HttpRequestTest, AHeadThatIsTooLongIsRefused) {
  const std::string start = "GET /metrics HTTP/1.1\r\nA: ";
  EXPECT_EQ(StatusOf(start + std::string(kMaxRequestHead - start.size() - 1, 'a')), 0);
  EXPECT_EQ(StatusOf(start + std::string(kMaxRequestHead - start.size(), 'a')), 431);
  EXPECT_EQ(StatusOf(start + std::string(kMaxRequestHead, 'a') + "\r\n\r\n"), 431);
}

TEST(HttpRequestTest, LeadingLineEndsDoNotRaiseTheLimit) {
  const std::string start = "\r\n\r\nGET /metrics HTTP/1.1\r\nA: ";
  EXPECT_EQ(StatusOf("\r\n\r\nGET /metrics HTTP/1.1\r\n\r\n"), 200);
  EXPECT_EQ(StatusOf(start + std::string(kMaxRequestHead - start.size() - 1, 'a')), 0);
  EXPECT_EQ(StatusOf(start + std::string(kMaxRequestHead - start.size(), 'a')), 431);
  std::string line_ends;
  for (size_t i = 0; i < 3; ++i) line_ends += "\r\n";
  EXPECT_EQ(StatusOf(line_ends), 400);
}

TEST(HttpRequestTest, AResponseIsComplete) {
  EXPECT_EQ(FormatResponse({.wants_metrics = true}, "a 1\n"),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
            "Content-Length: 4\r\nConnection: close\r\n\r\na 1\n");
  EXPECT_EQ(FormatResponse({.status = 405}, ""),
            "HTTP/1.1 405 Method Not Allowed\r\nContent-Type: text/plain; charset=utf-8\r\n"
            "Content-Length: 42\r\nAllow: GET, HEAD\r\nConnection: close\r\n\r\n"
            "405 Method Not Allowed; want GET /metrics\n");
}

}  // namespace
}  // namespace rankrun::agent
