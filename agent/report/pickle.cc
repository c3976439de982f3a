#include "agent/report/pickle.h"

#include <bit>
#include <map>
#include <optional>
#include <utility>

namespace rankrun::agent {
namespace {

using Kind = PickleValue::Kind;

// Opcodes, with their names in pickletools.
enum Opcode : uint8_t {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kNone = 'N',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kBinFloat = 'G',
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kBinUnicode = 'X',
  kEmptyList = ']',
  kAppend = 'a',
  kAppends = 'e',
  kEmptyDict = '}',
  kSetItem = 's',
  kSetItems = 'u',
  kEmptyTuple = ')',
  kTuple = 't',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kProto = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kMemoize = 0x94,
  kFrame = 0x95,
};

constexpr size_t kMaxValues = 2'000'000;  // a byte of a pickle can be a value

// Reads a number of at most 8 bytes above the bits of its sign.
uint64_t LowestFirst(std::string_view bytes, uint64_t number) {
  for (size_t i = bytes.size(); i > 0; --i) {
    number = number << 8 | static_cast<unsigned char>(bytes[i - 1]);
  }
  return number;
}

}  // namespace

// Carries out the opcodes of a pickle.
class PickleReader {
 public:
  explicit PickleReader(std::string_view bytes) : bytes_(bytes) {}

  Result<Pickle> Read() {
    while (!problem_) {
      const size_t at = at_;
      const uint64_t opcode = Number(1);
      if (!problem_ && opcode == kStop) {
        pickle_.root_ = Pop();
        if (!problem_) return std::move(pickle_);
      } else if (!problem_ && !Do(static_cast<uint8_t>(opcode))) {
        at_ = at;
        Fail("opcode " + std::to_string(opcode) + " is not one of plain data");
      }
    }
    return Error{ErrorCode::kInvalid, "pickle: byte " + std::to_string(at_) + ": " + *problem_};
  }

 private:
  // Returns false if the opcode is unknown.
  bool Do(uint8_t opcode) {
    return DoNumber(opcode) || DoText(opcode) || DoCollection(opcode) || DoMemo(opcode);
  }

  bool DoNumber(uint8_t opcode) {
    switch (opcode) {
      case kNone:
        New(Kind::kNone);
        return true;
      case kNewTrue:
      case kNewFalse:
        New(Kind::kBool).number = opcode == kNewTrue ? 1 : 0;
        return true;
      case kBinInt1:
        NewInt(1);
        return true;
      case kBinInt2:
        NewInt(2);
        return true;
      case kBinInt:
        New(Kind::kInt).number = static_cast<int32_t>(static_cast<uint32_t>(Number(4)));
        return true;
      case kLong1:
        New(Kind::kInt).number = Long();
        return true;
      case kBinFloat:
        New(Kind::kFloat).real = std::bit_cast<double>(__builtin_bswap64(Number(8)));
        return true;
      default:
        return false;
    }
  }

  bool DoText(uint8_t opcode) {
    switch (opcode) {
      case kShortBinUnicode:
      case kShortBinBytes:
        NewText(1);
        return true;
      case kBinUnicode:
      case kBinBytes:
        NewText(4);
        return true;
      case kBinUnicode8:
        NewText(8);
        return true;
      default:
        return false;
    }
  }

  bool DoCollection(uint8_t opcode) {
    switch (opcode) {
      case kMark:
        marks_.push_back(stack_.size());
        return true;
      case kEmptyList:
      case kEmptyTuple:
        New(Kind::kList);
        return true;
      case kEmptyDict:
        New(Kind::kDict);
        return true;
      case kTuple:
        NewTuple(SinceMark());
        return true;
      case kTuple1:
      case kTuple2:
      case kTuple3:
        NewTuple(Top(opcode - kTuple1 + size_t{1}));
        return true;
      case kAppend:
        AddTo(Kind::kList, Top(1));
        return true;
      case kAppends:
        AddTo(Kind::kList, SinceMark());
        return true;
      case kSetItem:
        AddTo(Kind::kDict, Top(2));
        return true;
      case kSetItems:
        AddTo(Kind::kDict, SinceMark());
        return true;
      default:
        return false;
    }
  }

  bool DoMemo(uint8_t opcode) {
    switch (opcode) {
      case kProto:
        Number(1);
        return true;
      case kFrame:
        Number(8);
        return true;
      case kPop:
        Pop();
        return true;
      case kBinPut:
        Remember(Number(1));
        return true;
      case kLongBinPut:
        Remember(Number(4));
        return true;
      case kMemoize:
        Remember(memo_.size());
        return true;
      case kBinGet:
        Recall(Number(1));
        return true;
      case kLongBinGet:
        Recall(Number(4));
        return true;
      default:
        return false;
    }
  }

  void Fail(std::string why) {
    if (!problem_) problem_ = std::move(why);
  }

  std::string_view Take(size_t size) {
    if (size > bytes_.size() - at_) {
      Fail("the pickle is cut off");
      return {};
    }
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }

  // Reads a number without a sign, the lowest byte first.
  uint64_t Number(size_t size) { return LowestFirst(Take(size), 0); }

  // Reads the size and the bytes of a number with a sign.
  int64_t Long() {
    std::string_view taken = Take(static_cast<size_t>(Number(1)));
    if (taken.size() > sizeof(int64_t)) {
      Fail("a number has more than 8 bytes");
      return 0;
    }
    const bool is_negative = !taken.empty() && (taken.back() & 0x80) != 0;
    return static_cast<int64_t>(LowestFirst(taken, is_negative ? ~uint64_t{0} : 0));
  }

  PickleValue& New(Kind kind) {
    if (pickle_.values_.size() >= kMaxValues) Fail("it has too many values");
    PickleValue& value = pickle_.values_.emplace_back();
    value.kind = kind;
    stack_.push_back(&value);
    return value;
  }
  void NewInt(size_t size) { New(Kind::kInt).number = static_cast<int64_t>(Number(size)); }
  void NewText(size_t size_of_size) {
    const uint64_t size = Number(size_of_size);
    New(Kind::kText).text = Take(static_cast<size_t>(size));
  }
  void NewTuple(std::vector<const PickleValue*> items) {
    New(Kind::kList).items = std::move(items);
  }

  // Removes the newest values from the stack, above the newest mark only.
  std::vector<const PickleValue*> Top(size_t count) {
    const size_t lowest = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() < lowest + count) {
      Fail("a value is missing");
      return {};
    }
    std::vector<const PickleValue*> top(stack_.end() - static_cast<ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return top;
  }
  std::vector<const PickleValue*> SinceMark() {
    if (marks_.empty()) {
      Fail("a mark is missing");
      return {};
    }
    auto top = Top(stack_.size() - marks_.back());
    marks_.pop_back();
    return top;
  }
  const PickleValue* Pop() {
    auto top = Top(1);
    return top.empty() ? nullptr : top.front();
  }

  void AddTo(Kind kind, const std::vector<const PickleValue*>& items) {
    const bool fits = !stack_.empty() && stack_.back()->kind == kind;
    const bool is_even = kind == Kind::kList || items.size() % 2 == 0;
    if (!fits || !is_even) return Fail("a list or dict for values is missing");
    auto& all = stack_.back()->items;
    all.insert(all.end(), items.begin(), items.end());
  }

  void Remember(uint64_t number) {
    if (stack_.empty()) return Fail("a value is missing");
    memo_[number] = stack_.back();
  }
  void Recall(uint64_t number) {
    auto found = memo_.find(number);
    if (found == memo_.end()) return Fail("it refers to a value that it does not have");
    if (stack_.size() >= kMaxValues) return Fail("it has too many values");
    stack_.push_back(found->second);
  }

  std::string_view bytes_;
  size_t at_ = 0;
  std::optional<std::string> problem_;
  Pickle pickle_;
  std::vector<PickleValue*> stack_;
  std::vector<size_t> marks_;  // heights of the stack
  std::map<uint64_t, PickleValue*> memo_;
};

const PickleValue* PickleValue::Find(std::string_view key) const {
  if (kind != Kind::kDict) return nullptr;
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    if (items[i]->kind == Kind::kText && items[i]->text == key) return items[i + 1];
  }
  return nullptr;
}

const PickleValue* PickleValue::Find(std::string_view key, Kind of) const {
  const PickleValue* found = Find(key);
  return found != nullptr && found->kind == of ? found : nullptr;
}

Result<Pickle> Pickle::Read(std::string_view bytes) { return PickleReader(bytes).Read(); }

}  // namespace rankrun::agent
