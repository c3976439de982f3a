#include "agent/control/control_handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <utility>

namespace rankrun::agent {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

struct Outcome {
  ServerHandshake::Judged judged;
  std::optional<ClientHandshake::Failure> failure;  // on the side of the client
  std::unique_ptr<SessionCipher> cipher;            // of the client
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
  auto failure_of_client = client.TakeAnswer(judged->answer);
  return {std::move(*judged), std::move(failure_of_client), client.TakeCipher()};
}

TEST(ControlHandshakeTest, TheFirstBytesAreThePreambleAndTheVersion) {
  EXPECT_EQ(ClientHandshake::FirstBytes(), std::string("RKRN\r\n\0\3", 8));
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
  EXPECT_EQ(outcome.judged.claimed_hello, "hello");
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

TEST(ControlHandshakeTest, BothSidesCanReadEachOtherAfterwards) {
  for (const char* bytes : {"open sesame", ""}) {
    JobSecret secret(bytes);
    Outcome outcome = Open(secret, secret);
    auto& [judged, failure, client] = outcome;
    FrameReader reader;
    auto message_in = [&](std::string frame, SessionCipher& by) {
      std::string_view left = frame;
      return by.Open(**reader.Next(left));
    };
    EXPECT_EQ(message_in(*client->Seal("to the server"), *judged.cipher), "to the server");
    EXPECT_EQ(message_in(*judged.cipher->Seal(""), *client), "");
    EXPECT_EQ(message_in(*judged.cipher->Seal("to the client"), *client), "to the client");
  }
}

TEST(ControlHandshakeTest, AStrangerDoesNotLearnTheJob) {
  JobSecret secret("open sesame");
  for (const char* bytes : {"another", ""}) {
    Outcome outcome = Open(secret, JobSecret(bytes), "theirs");
    EXPECT_EQ(outcome.judged.answer.find("job"), std::string::npos);
    ASSERT_TRUE(outcome.failure);
    EXPECT_EQ(outcome.failure->kind, DialFailureKind::kWrongSecret);
  }
}

// A program on the path that replaces the keys of both sides by its own.
TEST(ControlHandshakeTest, TheProofsCoverTheKeys) {
  JobSecret secret("open sesame");
  KeyPair stranger(ProofRole::kServer);
  Json key = Json::binary({stranger.public_key().begin(), stranger.public_key().end()});
  for (bool is_challenge : {true, false}) {
    ServerHandshake server(secret, "job");
    ClientHandshake client(secret, "job");
    auto forged = [&](const std::string& frame) {
      Json json = Json::from_cbor(frame);
      json["key"] = key;
      std::string text;
      Json::to_cbor(json, text);
      return text;
    };
    std::string challenge = server.Challenge();
    ASSERT_FALSE(client.TakeChallenge(is_challenge ? forged(challenge) : challenge));
    std::string hello = client.Hello("hello");
    auto judged = server.Judge(is_challenge ? hello : forged(hello));
    ASSERT_TRUE(judged) << judged.error().message;
    EXPECT_EQ(judged->refusal, HandshakeRefusal::kWrongSecret);
  }
}

TEST(ControlHandshakeTest, ADiallerKnowsAnotherVersionByTheChallenge) {
  JobSecret none("");
  ClientHandshake client(none, "job");
  std::string challenge;
  Json::to_cbor({{"version", 9}, {"a later field", Json::array({1})}}, challenge);
  auto failure = client.TakeChallenge(challenge);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->kind, DialFailureKind::kOtherVersion);
  EXPECT_THAT(failure->why, HasSubstr("version 9 of the control protocol, this one version 3"));
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
  ProofSubject subject{ProofRole::kClient, "s", "d", "key", "lock", "job", "payload"};
  std::string proof = secret.Prove(subject);
  EXPECT_TRUE(secret.IsProof(proof, subject));
  EXPECT_FALSE(
      secret.IsProof(proof, {ProofRole::kServer, "s", "d", "key", "lock", "job", "payload"}));
  EXPECT_FALSE(
      secret.IsProof(proof, {ProofRole::kClient, "sd", "", "key", "lock", "job", "payload"}));
  EXPECT_FALSE(
      secret.IsProof(proof, {ProofRole::kClient, "s", "d", "key", "lock", "jobp", "ayload"}));
  EXPECT_FALSE(
      secret.IsProof(proof, {ProofRole::kClient, "s", "d", "key", "lock", "job", "payloads"}));
  EXPECT_FALSE(
      secret.IsProof(proof, {ProofRole::kClient, "s", "d", "lock", "key", "job", "payload"}));
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
