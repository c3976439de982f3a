#include "store/wire/partial_request.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "store/engine/quoted_key.h"

namespace rankrun::store {
namespace {

Error OverLimit(std::string message) { return Error{ErrorCode::kExhausted, std::move(message)}; }

// Appends `part` to `text`. The capacity grows to at most twice the received
// bytes and at most the announced length, so that a complete value has no spare
// room.
void AppendArrived(std::string& text, std::string_view part, size_t announced) {
  size_t needed = text.size() + part.size();
  if (needed > text.capacity()) {
    std::string grown;  // reserve() on `text` would at least double its capacity
    grown.reserve(std::min(announced, 2 * needed));
    grown += text;
    text.swap(grown);
  }
  text += part;
}

}  // namespace

void PartialRequest::BeginWithHalfLength(const Operation& operation) {
  operation_ = &operation;
  word_bytes_ = sizeof(uint32_t);  // ReadNumber left the first half in word_
}

void PartialRequest::Finish(Request& request) {
  operation_->build({strings_, number_}, request);
  Clear();
}

void PartialRequest::Clear() {
  operation_ = nullptr;
  field_ = 0;
  word_bytes_ = 0;
  list_left_.reset();
  length_.reset();
  strings_.clear();
  string_bytes_ = 0;
}

size_t PartialRequest::held_bytes() const {
  size_t spare = 0;
  if (!strings_.empty() && strings_.back().capacity() >= sizeof(std::string)) {
    spare = strings_.back().capacity() - strings_.back().size();
  }
  return string_bytes_ + spare + strings_.size() * sizeof(std::string);
}

Result<bool> PartialRequest::Read(std::string_view& bytes, const WireLimits& limits) {
  for (; field_ < operation_->fields.size(); ++field_) {
    Result<bool> complete = true;
    switch (operation_->fields[field_]) {
      case Field::kNone:
        return true;
      case Field::kNonce:
        complete = ReadNumber(bytes, sizeof(uint32_t));
        break;
      case Field::kNumber:
        complete = ReadNumber(bytes, sizeof(uint64_t));
        break;
      case Field::kKey:
        complete = ReadString(bytes, /*is_key=*/true, limits);
        break;
      case Field::kValue:
        complete = ReadString(bytes, /*is_key=*/false, limits);
        break;
      case Field::kKeys:
        complete = ReadList(bytes, /*with_values=*/false, limits);
        break;
      case Field::kEntries:
        complete = ReadList(bytes, /*with_values=*/true, limits);
        break;
    }
    if (!complete || !*complete) return complete;
  }
  return true;
}

std::string PartialRequest::Describe() const {
  if (operation_ == nullptr) return "";
  std::string text(operation_->name);
  const bool has_key = strings_.size() > (length_ ? 1 : 0);
  if (!has_key) return text;
  // A list of keys and values ends in a key or in its value.
  const bool is_list = operation_->fields[field_] == Field::kEntries;
  const size_t key = is_list ? (strings_.size() - 1) & ~size_t{1} : 0;
  return text + " of key " + QuotedKey(strings_[key]);
}

// Reads a count, then that many keys, or pairs of a key and a value.
Result<bool> PartialRequest::ReadList(std::string_view& bytes, bool with_values,
                                      const WireLimits& limits) {
  uint64_t strings_per_key = with_values ? 2 : 1;
  if (!list_left_) {
    if (!ReadNumber(bytes, sizeof(uint64_t))) return false;
    if (number_ > limits.keys_per_request) {
      return OverLimit(std::string(operation_->name) + " of " + std::to_string(number_) +
                       " keys is over the limit of " + std::to_string(limits.keys_per_request));
    }
    list_left_ = number_ * strings_per_key;
  }
  while (*list_left_ > 0) {
    bool is_key = *list_left_ % strings_per_key == 0;
    auto complete = ReadString(bytes, is_key, limits);
    if (!complete || !*complete) return complete;
    *list_left_ -= 1;
  }
  list_left_.reset();
  return true;
}

Result<bool> PartialRequest::ReadString(std::string_view& bytes, bool is_key,
                                        const WireLimits& limits) {
  if (!length_) {
    if (!ReadNumber(bytes, sizeof(uint64_t))) return false;
    size_t limit = is_key ? limits.key_bytes : limits.value_bytes;
    if (number_ > limit) {
      const std::string request = is_key ? std::string(operation_->name) : Describe();
      return OverLimit(request + " with a " + (is_key ? "key" : "value") + " of " +
                       std::to_string(number_) + " bytes is over the limit of " +
                       std::to_string(limit));
    }
    if (number_ > limits.request_bytes - string_bytes_) {
      return OverLimit(Describe() + " with " + std::to_string(string_bytes_ + number_) +
                       " bytes or more is over the limit of " +
                       std::to_string(limits.request_bytes));
    }
    if (number_ <= bytes.size()) {
      strings_.emplace_back(bytes.substr(0, number_));
      string_bytes_ += number_;
      bytes.remove_prefix(number_);
      return true;
    }
    length_ = number_;
    strings_.emplace_back();
  }
  std::string& text = strings_.back();
  std::string_view part = bytes.substr(0, *length_ - text.size());
  AppendArrived(text, part, *length_);
  string_bytes_ += part.size();
  bytes.remove_prefix(part.size());
  if (text.size() < *length_) return false;
  length_.reset();
  return true;
}

bool PartialRequest::ReadNumber(std::string_view& bytes, size_t size) {
  if (word_bytes_ == 0 && size == sizeof number_ && bytes.size() >= size) {
    std::memcpy(&number_, bytes.data(), sizeof number_);
    bytes.remove_prefix(size);
    return true;
  }
  size_t part = std::min(bytes.size(), size - word_bytes_);
  std::copy_n(bytes.data(), part, word_.data() + word_bytes_);
  bytes.remove_prefix(part);
  word_bytes_ += part;
  if (word_bytes_ < size) return false;
  word_bytes_ = 0;
  if (size == sizeof(uint32_t)) {
    uint32_t word = 0;
    std::memcpy(&word, word_.data(), sizeof word);
    number_ = word;
  } else {
    RANKRUN_CHECK(size == sizeof number_, "integers on the wire have 4 or 8 bytes");
    std::memcpy(&number_, word_.data(), sizeof number_);
  }
  return true;
}

}  // namespace rankrun::store
