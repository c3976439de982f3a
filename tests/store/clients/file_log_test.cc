#include "store/clients/file_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rankrun::store {
namespace {

using Kind = Change::Kind;
using testing::HasSubstr;

const std::vector<Change> kChanges = {
    {Kind::kSet, "key", std::string("v\0lue", 5)},
    {Kind::kAppend, "", ""},
    {Kind::kDelete, "key"},
    {Kind::kPush, "queue", "item"},
    {Kind::kPop, "queue"},
};

TEST(FileLog, RecordsComeBackAsTheyWere) {
  std::string bytes;
  for (const Change& change : kChanges) bytes += *EncodeRecord(change);
  std::string_view rest = bytes;
  for (const Change& change : kChanges) EXPECT_EQ(*DecodeRecord(rest), change);
  EXPECT_TRUE(rest.empty());
}

TEST(FileLog, APartOfARecordIsTornWhereverItEnds) {
  std::string record = *EncodeRecord(kChanges.front());
  for (size_t size = 0; size < record.size(); ++size) {
    std::string_view part = std::string_view(record).substr(0, size);
    auto change = DecodeRecord(part);
    ASSERT_TRUE(change) << size;
    EXPECT_FALSE(*change) << size;
    EXPECT_EQ(part.size(), size);
  }
}

TEST(FileLog, AChangedByteIsNoticed) {
  std::string record = *EncodeRecord(kChanges.front());
  for (size_t i = 4; i < record.size(); ++i) {  // the length may make it look torn
    std::string damaged = record;
    damaged[i] ^= 1;
    std::string_view rest = damaged;
    auto change = DecodeRecord(rest);
    ASSERT_FALSE(change) << i;
    EXPECT_EQ(change.error().code, ErrorCode::kProtocol);
  }
}

TEST(FileLog, ZerosAreNoRecord) {
  std::string zeros(64, '\0');
  std::string_view rest = zeros;
  EXPECT_FALSE(DecodeRecord(rest));
}

TEST(FileLog, HeadersComeBackAsTheyWereAndAreTornBefore) {
  for (const std::string& run_id : {std::string(), std::string("run 7"), std::string(4096, 'r')}) {
    std::string bytes = EncodeHeader(run_id);
    Header header = DecodeHeader(bytes + "records");
    EXPECT_EQ(header.kind, HeaderKind::kWhole);
    EXPECT_EQ(header.run_id, run_id);
    EXPECT_EQ(header.bytes, bytes.size());
    for (size_t size = 16; size < bytes.size(); ++size) {
      EXPECT_EQ(DecodeHeader(bytes.substr(0, size)).kind, HeaderKind::kTorn) << size;
    }
  }
}

TEST(FileLog, OtherFilesAreForeign) {
  for (std::string text : {"r", "rankrun-store 2\n....", "#!/bin/sh\n"}) {
    EXPECT_EQ(DecodeHeader(text).kind, HeaderKind::kForeign) << text;
  }
  EXPECT_EQ(DecodeHeader("rankrun-store 1\n\xff\xff\xff\xff").kind, HeaderKind::kForeign);
}

}  // namespace
}  // namespace rankrun::store
