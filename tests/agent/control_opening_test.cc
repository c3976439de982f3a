#include "agent/control_opening.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace rankrun::agent {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

struct Outcome {
  ServerOpening::Judged judged;
  std::optional<DiallerOpening::Failure> failure;  // as the dialler sees it
};

// An opening between two that were made so.
Outcome Open(const JobSecret& of_server, const JobSecret& of_dialler,
             std::string_view job_of_dialler = "job") {
  ServerOpening server(of_server, "job");
  DiallerOpening dialler(of_dialler, job_of_dialler);
  auto failure = dialler.TakeChallenge(server.Challenge());
  EXPECT_FALSE(failure) << failure->why;
  auto judged = server.Judge(dialler.Hello("hello"));
  EXPECT_TRUE(judged) << judged.error().message;
  return {*judged, dialler.TakeAnswer(judged->answer)};
}

TEST(ControlOpeningTest, TheFirstBytesAreThePreambleAndTheVersion) {
  EXPECT_EQ(DiallerOpening::FirstBytes(), std::string("RKRN\r\n\0\1", 8));
  EXPECT_EQ(DiallerOpening::FirstBytes().size(), kFirstBytes);
}

TEST(ControlOpeningTest, WhoeverHasTheSecretIsLetIn) {
  JobSecret secret("open sesame");
  Outcome outcome = Open(secret, secret);
  EXPECT_EQ(outcome.judged.refusal, OpeningRefusal::kNone);
  EXPECT_EQ(outcome.judged.hello, "hello");
  EXPECT_FALSE(outcome.failure);
}

TEST(ControlOpeningTest, WithoutASecretEverybodyOfTheJobIsLetIn) {
  Outcome outcome = Open(JobSecret(""), JobSecret(""));
  EXPECT_EQ(outcome.judged.refusal, OpeningRefusal::kNone);
  EXPECT_EQ(outcome.judged.hello, "hello");
  EXPECT_FALSE(outcome.failure);
}

TEST(ControlOpeningTest, AWrongSecretIsToldToBoth) {
  Outcome outcome = Open(JobSecret("open sesame"), JobSecret("open, sesame"));
  EXPECT_EQ(outcome.judged.refusal, OpeningRefusal::kWrongSecret);
  EXPECT_EQ(outcome.judged.why, "wrong job secret");
  EXPECT_EQ(outcome.judged.hello, "");
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->verdict, DialVerdict::kWrongSecret);
  EXPECT_EQ(outcome.failure->why, "wrong job secret");
}

TEST(ControlOpeningTest, ASecretOnOneSideOnlyIsToldToBoth) {
  Outcome outcome = Open(JobSecret("open sesame"), JobSecret(""));
  EXPECT_EQ(outcome.judged.why, "this job has a secret, the node has none");
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->verdict, DialVerdict::kWrongSecret);
  EXPECT_EQ(outcome.failure->why, "the job there has a secret, this node has none");

  outcome = Open(JobSecret(""), JobSecret("open sesame"));
  EXPECT_EQ(outcome.judged.why, "the node has a job secret, this job has none");
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->verdict, DialVerdict::kWrongSecret);
  EXPECT_EQ(outcome.failure->why, "this node has a job secret, the job there has none");
}

TEST(ControlOpeningTest, AnotherJobIsToldToBoth) {
  JobSecret secret("open sesame");
  Outcome outcome = Open(secret, secret, "other\njob");
  EXPECT_EQ(outcome.judged.refusal, OpeningRefusal::kOtherJob);
  EXPECT_EQ(outcome.judged.why, "it is of job \"other\\njob\", this is job \"job\"");
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->verdict, DialVerdict::kOtherJob);
  EXPECT_EQ(outcome.failure->why, "job \"job\" is there, this node is of job \"other\\njob\"");
}

TEST(ControlOpeningTest, ADiallerKnowsAnotherVersionByTheChallenge) {
  JobSecret none("");
  DiallerOpening dialler(none, "job");
  std::string challenge;
  Json::to_cbor({{"version", 9}, {"a later field", Json::array({1})}}, challenge);
  auto failure = dialler.TakeChallenge(challenge);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->verdict, DialVerdict::kOtherVersion);
  EXPECT_THAT(failure->why, HasSubstr("version 9 of the control protocol, this one version 1"));
}

TEST(ControlOpeningTest, AServerWithoutTheSecretIsNotBelieved) {
  JobSecret secret("open sesame"), other("other"), none("");
  for (const JobSecret* servers : {&other, &none}) {
    DiallerOpening dialler(secret, "job");
    ServerOpening server(*servers, "job");
    ASSERT_FALSE(dialler.TakeChallenge(server.Challenge()));
    dialler.Hello("hello");
    DiallerOpening like_server(*servers, "job");  // lets itself in
    ASSERT_FALSE(like_server.TakeChallenge(server.Challenge()));
    auto judged = server.Judge(like_server.Hello("hello"));
    ASSERT_TRUE(judged);
    auto failure = dialler.TakeAnswer(judged->answer);
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->verdict, DialVerdict::kWrongSecret);
    EXPECT_THAT(failure->why, HasSubstr("does not know the job secret"));
  }
}

TEST(ControlOpeningTest, ARecordedHelloIsWorthNothingLater) {
  JobSecret secret("open sesame");
  DiallerOpening dialler(secret, "job");
  ServerOpening first(secret, "job"), second(secret, "job");
  ASSERT_FALSE(dialler.TakeChallenge(first.Challenge()));
  const std::string hello = dialler.Hello("hello");
  EXPECT_EQ(first.Judge(hello)->refusal, OpeningRefusal::kNone);
  EXPECT_EQ(second.Judge(hello)->refusal, OpeningRefusal::kWrongSecret);
}

TEST(ControlOpeningTest, GarbageIsNoHelloAndNoAnswer) {
  JobSecret secret("open sesame");
  ServerOpening server(secret, "job");
  DiallerOpening dialler(secret, "job");
  std::string half;
  Json::to_cbor({{"job", Json::binary({'j'})}, {"nonce", "text"}}, half);
  for (const std::string& frame : {std::string(), std::string("GET /"), std::string("\xA0"), half,
                                   std::string(60'000, '\x81')}) {
    auto judged = server.Judge(frame);
    ASSERT_FALSE(judged);
    EXPECT_EQ(judged.error().code, ErrorCode::kProtocol);
    auto challenge = dialler.TakeChallenge(frame);
    ASSERT_TRUE(challenge);
    EXPECT_EQ(challenge->verdict, DialVerdict::kNotRankrun);
    auto answer = dialler.TakeAnswer(frame);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->verdict, DialVerdict::kNotRankrun);
  }
}

TEST(JobSecretTest, AProofIsOfAllThatItIsAbout) {
  JobSecret secret("open sesame");
  const ProofSubject subject{ProofRole::kDialler, "s", "d", "job", "payload"};
  const std::string proof = secret.Prove(subject);
  EXPECT_TRUE(secret.IsProof(proof, subject));
  EXPECT_FALSE(secret.IsProof(proof, {ProofRole::kServer, "s", "d", "job", "payload"}));
  EXPECT_FALSE(secret.IsProof(proof, {ProofRole::kDialler, "sd", "", "job", "payload"}));
  EXPECT_FALSE(secret.IsProof(proof, {ProofRole::kDialler, "s", "d", "jobp", "ayload"}));
  EXPECT_FALSE(secret.IsProof(proof, {ProofRole::kDialler, "s", "d", "job", "payloads"}));
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
