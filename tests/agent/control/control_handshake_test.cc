#include "agent/control/control_handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace rankrun::agent {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

struct Outcome {
  ServerHandshake::Judged judged;
  std::optional<ClientHandshake::Failure> failure;  // on the side of the client
};

// Returns the outcome of a handshake between a server and a client.
Outcome Open(const JobSecret& of_server, const JobSecret& of_client,
             std::string_view job_of_client = "job") {
  ServerHandshake server(of_server, "job");
  ClientHandshake client(of_client, job_of_client);
  auto failure = client.TakeChallenge(server.Challenge());
  EXPECT_FALSE(failure) << failure->why;
  auto judged = server.Judge(client.Hello("hello"));
  EXPECT_TRUE(judged) << judged.error().message;
  return {*judged, client.TakeAnswer(judged->answer)};
}

TEST(ControlHandshakeTest, TheFirstBytesAreThePreambleAndTheVersion) {
  EXPECT_EQ(ClientHandshake::FirstBytes(), std::string("RKRN\r\n\0\1", 8));
  EXPECT_EQ(ClientHandshake::FirstBytes().size(), kFirstBytes);
}

TEST(ControlHandshakeTest, AClientWithTheSecretIsAccepted) {
  JobSecret secret("open sesame");
  Outcome outcome = Open(secret, secret);
  EXPECT_EQ(outcome.judged.refusal, HandshakeRefusal::kNone);
  EXPECT_EQ(outcome.judged.hello, "hello");
  EXPECT_FALSE(outcome.failure);
}

TEST(ControlHandshakeTest, WithoutASecretEverybodyOfTheJobIsLetIn) {
  Outcome outcome = Open(JobSecret(""), JobSecret(""));
  EXPECT_EQ(outcome.judged.refusal, HandshakeRefusal::kNone);
  EXPECT_EQ(outcome.judged.hello, "hello");
  EXPECT_FALSE(outcome.failure);
}

TEST(ControlHandshakeTest, AWrongSecretIsReportedToBoth) {
  Outcome outcome = Open(JobSecret("open sesame"), JobSecret("open, sesame"));
  EXPECT_EQ(outcome.judged.refusal, HandshakeRefusal::kWrongSecret);
  EXPECT_EQ(outcome.judged.why, "wrong job secret");
  EXPECT_EQ(outcome.judged.hello, "");
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->kind, DialFailureKind::kWrongSecret);
  EXPECT_EQ(outcome.failure->why, "wrong job secret");
}

TEST(ControlHandshakeTest, ASecretOnOneSideOnlyIsReportedToBoth) {
  Outcome outcome = Open(JobSecret("open sesame"), JobSecret(""));
  EXPECT_EQ(outcome.judged.why, "this job has a secret, the node has none");
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->kind, DialFailureKind::kWrongSecret);
  EXPECT_EQ(outcome.failure->why, "the job there has a secret, this node has none");

  outcome = Open(JobSecret(""), JobSecret("open sesame"));
  EXPECT_EQ(outcome.judged.why, "the node has a job secret, this job has none");
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->kind, DialFailureKind::kWrongSecret);
  EXPECT_EQ(outcome.failure->why, "this node has a job secret, the job there has none");
}

TEST(ControlHandshakeTest, AnotherJobIsReportedToBoth) {
  JobSecret secret("open sesame");
  Outcome outcome = Open(secret, secret, "other\njob");
  EXPECT_EQ(outcome.judged.refusal, HandshakeRefusal::kOtherJob);
  EXPECT_EQ(outcome.judged.why, "it belongs to job \"other\\njob\", this is job \"job\"");
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->kind, DialFailureKind::kOtherJob);
  EXPECT_EQ(outcome.failure->why, "job \"job\" is there, this node is of job \"other\\njob\"");
}

TEST(ControlHandshakeTest, ADiallerKnowsAnotherVersionByTheChallenge) {
  JobSecret none("");
  ClientHandshake client(none, "job");
  std::string challenge;
  Json::to_cbor({{"version", 9}, {"a later field", Json::array({1})}}, challenge);
  auto failure = client.TakeChallenge(challenge);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->kind, DialFailureKind::kOtherVersion);
  EXPECT_THAT(failure->why, HasSubstr("version 9 of the control protocol, this one version 1"));
}

TEST(ControlHandshakeTest, AServerWithoutTheSecretIsNotBelieved) {
  JobSecret secret("open sesame"), other("other"), none("");
  for (const JobSecret* servers : {&other, &none}) {
    ClientHandshake client(secret, "job");
    ServerHandshake server(*servers, "job");
    ASSERT_FALSE(client.TakeChallenge(server.Challenge()));
    client.Hello("hello");
    ClientHandshake like_server(*servers, "job");  // lets itself in
    ASSERT_FALSE(like_server.TakeChallenge(server.Challenge()));
    auto judged = server.Judge(like_server.Hello("hello"));
    ASSERT_TRUE(judged);
    auto failure = client.TakeAnswer(judged->answer);
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->kind, DialFailureKind::kWrongSecret);
    EXPECT_THAT(failure->why, HasSubstr("does not know the job secret"));
  }
}

TEST(ControlHandshakeTest, ARecordedHelloIsWorthNothingLater) {
  JobSecret secret("open sesame");
  ClientHandshake client(secret, "job");
  ServerHandshake first(secret, "job"), second(secret, "job");
  ASSERT_FALSE(client.TakeChallenge(first.Challenge()));
  std::string hello = client.Hello("hello");
  EXPECT_EQ(first.Judge(hello)->refusal, HandshakeRefusal::kNone);
  EXPECT_EQ(second.Judge(hello)->refusal, HandshakeRefusal::kWrongSecret);
}

TEST(ControlHandshakeTest, GarbageIsNoHelloAndNoAnswer) {
  JobSecret secret("open sesame");
  ServerHandshake server(secret, "job");
  ClientHandshake client(secret, "job");
  std::string half;
  Json::to_cbor({{"job", Json::binary({'j'})}, {"nonce", "text"}}, half);
  for (const std::string& frame : {std::string(), std::string("GET /"), std::string("\xA0"), half,
                                   std::string(60'000, '\x81')}) {
    auto judged = server.Judge(frame);
    ASSERT_FALSE(judged);
    EXPECT_EQ(judged.error().code, ErrorCode::kProtocol);
    auto challenge = client.TakeChallenge(frame);
    ASSERT_TRUE(challenge);
    EXPECT_EQ(challenge->kind, DialFailureKind::kNotRankrun);
    auto answer = client.TakeAnswer(frame);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->kind, DialFailureKind::kNotRankrun);
  }
}

TEST(JobSecretTest, AProofIsOfAllThatItIsAbout) {
  JobSecret secret("open sesame");
  ProofSubject subject{ProofRole::kClient, "s", "d", "job", "payload"};
  std::string proof = secret.Prove(subject);
  EXPECT_TRUE(secret.IsProof(proof, subject));
  EXPECT_FALSE(secret.IsProof(proof, {ProofRole::kServer, "s", "d", "job", "payload"}));
  EXPECT_FALSE(secret.IsProof(proof, {ProofRole::kClient, "sd", "", "job", "payload"}));
  EXPECT_FALSE(secret.IsProof(proof, {ProofRole::kClient, "s", "d", "jobp", "ayload"}));
  EXPECT_FALSE(secret.IsProof(proof, {ProofRole::kClient, "s", "d", "job", "payloads"}));
  EXPECT_FALSE(secret.IsProof("", subject));
  EXPECT_FALSE(secret.IsProof(proof + "x", subject));
  EXPECT_FALSE(JobSecret("other").IsProof(proof, subject));
}

TEST(JobSecretTest, NoncesDiffer) {
  EXPECT_EQ(MakeNonce().size(), kNonceBytes);
  EXPECT_NE(MakeNonce(), MakeNonce());
}

}  // namespace
}  // namespace rankrun::agent
