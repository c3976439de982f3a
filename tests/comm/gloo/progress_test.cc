// Messages that Gloo's own thread moves.

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <vector>

#include "tests/comm/transport/group.h"

namespace rankrun::comm::gloo {
namespace {

using transport::BackendGroup;
using transport::Turn;

TEST(GlooProgressTest, MessagesMoveOnWhileNobodyWaitsForThem) {
  constexpr size_t kLarge = (8 << 20) / sizeof(int);  // more than socket buffers hold
  constexpr Envelope kEnvelope{.tag = 0, .dtype = DType::kInt32};
  Turn received;
  BackendGroup("gloo", 2).Run([&](Backend& backend, int rank) {
    std::vector<int> wanted(kLarge);
    std::iota(wanted.begin(), wanted.end(), 0);
    std::vector<int> values(kLarge);
    auto transfer = rank == 0 ? backend.StartSend(transport::ConstBlockOf(wanted), 1, kEnvelope)
                              : backend.StartRecv(transport::BlockOf(values), 0, kEnvelope);
    ASSERT_TRUE(transfer);
    if (rank == 0) received.Await();  // without a call into the backend
    auto ok = (*transfer)->Wait(std::chrono::seconds(60));
    EXPECT_TRUE(ok) << ok.error().message;
    if (rank == 0) return;
    received.Pass();
    EXPECT_EQ(values, wanted);
  });
}

}  // namespace
}  // namespace rankrun::comm::gloo
