// C ABI: stores, and tensors of other frameworks.

#include <dlpack/dlpack.h>
#include <gmock/gmock.h>

#include <string>
#include <thread>
#include <vector>

#include <rankrun/rankrun.h>

#include "tests/store/clients/fake_server.h"

namespace rankrun::comm {
namespace {

using testing::UnorderedElementsAre;

constexpr int64_t kUsual = RANKRUN_DEFAULT_TIMEOUT;

std::string Taken(rankrun_bytes* value) {
  if (value == nullptr) return "nothing";
  std::string text(static_cast<const char*>(value->data), value->size);
  rankrun_bytes_release(value);
  return text;
}

class CApiStoreTest : public testing::Test {
 protected:
  CApiStoreTest() { EXPECT_EQ(rankrun_hash_store(kUsual, &store_), RANKRUN_OK); }
  ~CApiStoreTest() override { rankrun_store_release(store_); }

  void Set(const char* key, const std::string& value) {
    EXPECT_EQ(rankrun_store_set(store_, key, value.data(), value.size()), RANKRUN_OK);
  }
  std::string Get(const char* key) { return GetFrom(store_, key); }
  static std::string GetFrom(rankrun_store* store, const char* key) {
    rankrun_bytes* value = nullptr;
    EXPECT_EQ(rankrun_store_get(store, key, 0, &value), RANKRUN_OK) << rankrun_last_error();
    return Taken(value);
  }

  rankrun_store* store_ = nullptr;
};

TEST_F(CApiStoreTest, ValuesAreBytes) {
  Set("zero", std::string("a\0b", 3));
  Set("empty", "");
  EXPECT_EQ(Get("zero"), std::string("a\0b", 3));
  EXPECT_EQ(Get("empty"), "");
  EXPECT_EQ(rankrun_store_append(store_, "empty", "x", 1), RANKRUN_OK);
  EXPECT_EQ(Get("empty"), "x");
  EXPECT_EQ(rankrun_store_set(store_, "key", nullptr, 1), RANKRUN_INVALID);
  EXPECT_STREQ(rankrun_last_error(), "rankrun_store_set: value is NULL");
  EXPECT_EQ(rankrun_store_set(store_, nullptr, "", 0), RANKRUN_INVALID);
}

TEST_F(CApiStoreTest, NumbersAndChecks) {
  int64_t sum = 0;
  EXPECT_EQ(rankrun_store_add(store_, "n", 40, nullptr), RANKRUN_OK);
  EXPECT_EQ(rankrun_store_add(store_, "n", 2, &sum), RANKRUN_OK);
  EXPECT_EQ(sum, 42);
  const char* keys[] = {"n", "m"};
  int exist = -1;
  EXPECT_EQ(rankrun_store_check(store_, keys, 2, &exist), RANKRUN_OK);
  EXPECT_EQ(exist, 0);
  EXPECT_EQ(rankrun_store_check(store_, keys, 1, &exist), RANKRUN_OK);
  EXPECT_EQ(exist, 1);
  EXPECT_EQ(rankrun_store_wait(store_, keys, 1, kUsual), RANKRUN_OK);
  EXPECT_EQ(rankrun_store_wait(store_, keys, 2, 0), RANKRUN_STORE);
  EXPECT_EQ(rankrun_store_delete(store_, "n", &exist), RANKRUN_OK);
  EXPECT_EQ(exist, 1);
  EXPECT_EQ(rankrun_store_delete(store_, "n", nullptr), RANKRUN_OK);
}

TEST_F(CApiStoreTest, CompareSetGivesTheValueAfterwards) {
  Set("key", "old");
  char old_text[] = "old";
  char new_text[] = "new";
  rankrun_bytes old_value{old_text, 3};
  rankrun_bytes new_value{new_text, 3};
  rankrun_bytes* value = nullptr;
  int swapped = -1;
  ASSERT_EQ(rankrun_store_compare_set(store_, "key", &old_value, &new_value, &value, &swapped),
            RANKRUN_OK);
  EXPECT_EQ(swapped, 1);
  EXPECT_EQ(Taken(value), "new");
  ASSERT_EQ(rankrun_store_compare_set(store_, "key", &old_value, &old_value, &value, nullptr),
            RANKRUN_OK);
  EXPECT_EQ(Taken(value), "new");
}

TEST_F(CApiStoreTest, SeveralKeysAndTheirNames) {
  const char* keys[] = {"a", "bc"};
  char first[] = "1";
  const rankrun_bytes values[] = {{first, 1}, {nullptr, 0}};
  ASSERT_EQ(rankrun_store_multi_set(store_, keys, values, 2), RANKRUN_OK);
  rankrun_bytes* got = nullptr;
  ASSERT_EQ(rankrun_store_multi_get(store_, keys, 2, kUsual, &got), RANKRUN_OK);
  EXPECT_EQ(std::string(static_cast<char*>(got[0].data), got[0].size), "1");
  EXPECT_EQ(got[1].size, 0U);
  rankrun_bytes_release(got);
  int64_t number = 0;
  EXPECT_EQ(rankrun_store_num_keys(store_, &number), RANKRUN_OK);
  EXPECT_EQ(number, 2);
  size_t count = 0;
  ASSERT_EQ(rankrun_store_list_keys(store_, &got, &count), RANKRUN_OK);
  ASSERT_EQ(count, 2U);
  std::vector<std::string> names{static_cast<char*>(got[0].data),  // as C strings
                                 static_cast<char*>(got[1].data)};
  EXPECT_THAT(names, UnorderedElementsAre("a", "bc"));
  rankrun_bytes_release(got);
}

TEST_F(CApiStoreTest, Queues) {
  rankrun_bytes* value = nullptr;
  EXPECT_EQ(rankrun_store_queue_pop(store_, "q", 0, &value), RANKRUN_OK);
  EXPECT_EQ(value, nullptr);
  ASSERT_EQ(rankrun_store_queue_push(store_, "q", "job", 3), RANKRUN_OK);
  int64_t length = 0;
  EXPECT_EQ(rankrun_store_queue_length(store_, "q", &length), RANKRUN_OK);
  EXPECT_EQ(length, 1);
  ASSERT_EQ(rankrun_store_queue_pop(store_, "q", kUsual, &value), RANKRUN_OK);
  EXPECT_EQ(Taken(value), "job");
}

TEST_F(CApiStoreTest, ABarrier) {
  EXPECT_EQ(rankrun_store_barrier(store_, "b", 2, 0), RANKRUN_STORE);
  EXPECT_STREQ(rankrun_last_error(), "meet at barrier b: 1 of 2 have come within 0 ms");
  EXPECT_EQ(rankrun_store_barrier(store_, "b", 2, kUsual), RANKRUN_OK);
  EXPECT_EQ(rankrun_store_barrier(store_, "b", 0, kUsual), RANKRUN_INVALID);
  EXPECT_EQ(rankrun_store_barrier(store_, nullptr, 1, kUsual), RANKRUN_INVALID);
}

TEST_F(CApiStoreTest, APrefixStoreAndACloneLiveOnTheirOwn) {
  rankrun_store* prefix = nullptr;
  rankrun_store* clone = nullptr;
  ASSERT_EQ(rankrun_prefix_store("p", store_, &prefix), RANKRUN_OK);
  ASSERT_EQ(rankrun_store_clone(prefix, &clone), RANKRUN_OK);
  Set("p/key", "value");
  rankrun_store_release(store_);
  store_ = nullptr;
  EXPECT_EQ(GetFrom(prefix, "key"), "value");
  rankrun_store_release(prefix);
  EXPECT_EQ(GetFrom(clone, "key"), "value");
  EXPECT_EQ(rankrun_store_set_timeout(clone, 1234), RANKRUN_OK);
  EXPECT_EQ(rankrun_store_timeout(clone), 1234);
  EXPECT_EQ(rankrun_store_timeout(nullptr), -1);
  EXPECT_EQ(rankrun_store_port(clone), 0);
  rankrun_store_release(clone);
}

TEST_F(CApiStoreTest, AServerAndItsClient) {
  rankrun_tcp_store_options options;
  options.size = sizeof options;
  ASSERT_EQ(rankrun_tcp_store_options_default(&options), RANKRUN_OK);
  EXPECT_EQ(options.port, 29500);
  options.port = 0;
  options.is_server = 1;
  rankrun_store* server = nullptr;
  ASSERT_EQ(rankrun_tcp_store(&options, &server), RANKRUN_OK) << rankrun_last_error();
  options.port = rankrun_store_port(server);
  options.is_server = 0;
  rankrun_store* client = nullptr;
  ASSERT_EQ(rankrun_tcp_store(&options, &client), RANKRUN_OK) << rankrun_last_error();
  EXPECT_EQ(rankrun_store_set(client, "key", "value", 5), RANKRUN_OK);
  EXPECT_EQ(GetFrom(server, "key"), "value");
  rankrun_store_release(client);
  rankrun_store_release(server);
}

TEST(CApiStoreOptionsTest, AServerTakesOverASocket) {
  rankrun_tcp_store_options options;
  options.size = sizeof options;
  ASSERT_EQ(rankrun_tcp_store_options_default(&options), RANKRUN_OK);
  EXPECT_EQ(options.listen_fd, -1);
  Fd socket = store::BoundSocket();
  options.is_server = 1;
  options.listen_fd = socket.get();
  rankrun_store* server = nullptr;
  ASSERT_EQ(rankrun_tcp_store(&options, &server), RANKRUN_OK) << rankrun_last_error();
  EXPECT_EQ(rankrun_store_port(server), SocketAddress::LocalOf(socket.Release())->port());
  rankrun_store_release(server);
}

TEST(CApiStoreOptionsTest, TwoHandlesShareAServer) {
  rankrun_tcp_store_options options;
  options.size = sizeof options;
  ASSERT_EQ(rankrun_tcp_store_options_default(&options), RANKRUN_OK);
  EXPECT_EQ(options.multi_tenant, 0);
  options.port = 0;
  options.is_server = 1;
  options.multi_tenant = 1;
  rankrun_store* stores[2] = {};
  ASSERT_EQ(rankrun_tcp_store(&options, &stores[0]), RANKRUN_OK) << rankrun_last_error();
  options.port = rankrun_store_port(stores[0]);
  ASSERT_EQ(rankrun_tcp_store(&options, &stores[1]), RANKRUN_OK) << rankrun_last_error();
  for (rankrun_store* store : stores) rankrun_store_release(store);
}

// A program that was compiled before the struct had its last fields.
TEST(CApiStoreOptionsTest, AShorterStructIsThatOfAnEarlierVersion) {
  rankrun_tcp_store_options options;
  options.size = offsetof(rankrun_tcp_store_options, listen_fd);
  options.listen_fd = 12345;
  ASSERT_EQ(rankrun_tcp_store_options_default(&options), RANKRUN_OK);
  EXPECT_EQ(options.listen_fd, 12345);
  options.port = 0;
  options.is_server = 1;
  rankrun_store* server = nullptr;
  ASSERT_EQ(rankrun_tcp_store(&options, &server), RANKRUN_OK) << rankrun_last_error();
  rankrun_store_release(server);
}

TEST(CApiDLPackTest, ATensorComesBackAndIsReleasedOnce) {
  std::vector<float> values(6);
  int released = 0;
  auto release = [](void* count) { ++*static_cast<int*>(count); };
  rankrun_tensor tensor{.data = values.data(),
                        .count = 6,
                        .row = 3,
                        .device_index = 0,
                        .dtype = RANKRUN_FLOAT32,
                        .device_type = 0,
                        .reserved = 0};
  DLManagedTensor* managed = nullptr;
  ASSERT_EQ(rankrun_to_dlpack(&tensor, release, &released, &managed), RANKRUN_OK);
  rankrun_tensor back{};
  ASSERT_EQ(rankrun_from_dlpack(managed, &back), RANKRUN_OK);
  EXPECT_EQ(back.data, values.data());
  EXPECT_EQ(back.count, 6U);
  EXPECT_EQ(back.row, 3U);
  EXPECT_EQ(released, 0);
  managed->deleter(managed);
  EXPECT_EQ(released, 1);

  tensor.row = 4;  // does not divide the count
  EXPECT_EQ(rankrun_to_dlpack(&tensor, release, &released, &managed), RANKRUN_INVALID);
  EXPECT_EQ(managed, nullptr);
  EXPECT_EQ(released, 1);
}

}  // namespace
}  // namespace rankrun::comm
