#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "store/clients/file_store.h"
#include "store/clients/hash_store.h"
#include "store/clients/prefix_store.h"
#include "store/clients/tcp_store.h"
#include "tests/base/support.h"
#include "tests/store/server/server_thread.h"

namespace rankrun::store {

// Place where a kind of store lives during a test: a file, a server, memory.
class StoreEnvironment {
 public:
  virtual ~StoreEnvironment() = default;
  // Opens another client of the same data.
  virtual std::unique_ptr<Store> Open() = 0;
  // Whether Open() in a forked process reaches the same data.
  virtual bool crosses_processes() const { return false; }
  // Whether the store uses the server's protocol. Its results are less exact
  // then: see tcp_store.h and table_store.h.
  virtual bool goes_over_the_wire() const { return false; }
};

class HashEnvironment final : public StoreEnvironment {
 public:
  std::unique_ptr<Store> Open() override { return std::move(*first_.Clone(test::kLong)); }

 private:
  HashStore first_;
};

class FileEnvironment final : public StoreEnvironment {
 public:
  std::unique_ptr<Store> Open() override {
    auto store = FileStore::Open(folder_.Path("store"), "run");
    EXPECT_TRUE(store) << store.error().message;
    return std::move(*store);
  }
  bool crosses_processes() const override { return true; }

 private:
  test::TempFolder folder_;
};

class TcpEnvironment final : public StoreEnvironment {
 public:
  std::unique_ptr<Store> Open() override {
    auto store = TcpStore::Connect("127.0.0.1", server_.port(), {.connect_timeout = test::kLong});
    EXPECT_TRUE(store) << store.error().message;
    return std::move(*store);
  }
  bool crosses_processes() const override { return true; }
  bool goes_over_the_wire() const override { return true; }

 private:
  ServerThread server_;
};

class PrefixEnvironment final : public StoreEnvironment {
 public:
  explicit PrefixEnvironment(std::unique_ptr<StoreEnvironment> inner) : inner_(std::move(inner)) {}
  std::unique_ptr<Store> Open() override {
    return std::make_unique<PrefixStore>("p", inner_->Open());
  }
  bool crosses_processes() const override { return inner_->crosses_processes(); }
  bool goes_over_the_wire() const override { return inner_->goes_over_the_wire(); }

 private:
  std::unique_ptr<StoreEnvironment> inner_;
};

struct StoreKind {
  std::string name;
  std::function<std::unique_ptr<StoreEnvironment>()> make;
};

// Every kind of store that must fulfil the contract. A new kind is one more
// line here.
inline std::vector<StoreKind> StoreKinds() {
  std::vector<StoreKind> kinds = {
      {"HashStore", [] { return std::make_unique<HashEnvironment>(); }},
      {"FileStore", [] { return std::make_unique<FileEnvironment>(); }},
      {"TcpStore", [] { return std::make_unique<TcpEnvironment>(); }},
  };
  size_t plain = kinds.size();
  for (size_t i = 0; i < plain; ++i) {
    kinds.push_back({"PrefixStoreOver" + kinds[i].name, [make = kinds[i].make] {
                       return std::make_unique<PrefixEnvironment>(make());
                     }});
  }
  return kinds;
}

}  // namespace rankrun::store
