#include "launcher/flags/marked_text.h"

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

namespace rankrun::launcher {
namespace {

constexpr size_t kManWidth = 80;

enum class Face { kPlain, kLiteral, kValue };

struct Piece {
  Face face;
  std::string_view text;
};

bool Is(int (*classify)(int), char c) { return classify(static_cast<unsigned char>(c)) != 0; }

// Returns the position of the mark that closes the one at `begin`, or npos if
// that character is no mark. Names such as RUN_ID hold underscores, too.
size_t ClosingMark(std::string_view text, size_t begin) {
  char mark = text[begin];
  if (mark != '`' && mark != '_') return text.npos;
  if (mark == '_') {
    bool inside_a_name = begin > 0 && Is(std::isalnum, text[begin - 1]);
    bool opens = begin + 1 < text.size() && Is(std::isupper, text[begin + 1]);
    if (inside_a_name || !opens) return text.npos;
  }
  return text.find(mark, begin + 1);
}

std::vector<Piece> PiecesOf(std::string_view text) {
  std::vector<Piece> pieces;
  size_t plain = 0;  // start of the plain text before `i`
  for (size_t i = 0; i < text.size(); ++i) {
    size_t end = ClosingMark(text, i);
    if (end == text.npos) continue;
    pieces.push_back({Face::kPlain, text.substr(plain, i - plain)});
    Face face = text[i] == '`' ? Face::kLiteral : Face::kValue;
    pieces.push_back({face, text.substr(i + 1, end - i - 1)});
    plain = end + 1;
    i = end;
  }
  pieces.push_back({Face::kPlain, text.substr(plain)});
  return pieces;
}

// A plain "-" is a hyphen in man(7), "\-" is the character that users type.
std::string ManPiece(const Piece& piece) {
  std::string text;
  for (char c : piece.text) {
    if (c == '\\') {
      text += "\\e";
    } else if (c == '-' && piece.face == Face::kLiteral) {
      text += "\\-";
    } else {
      text += c;
    }
  }
  if (piece.face == Face::kPlain) return text;
  return (piece.face == Face::kLiteral ? "\\fB" : "\\fI") + text + "\\fR";
}

// A line of man(7) that begins with a dot or a quote would be a request.
std::string AsTextLine(const std::string& line) {
  bool looks_like_a_request = line.starts_with('.') || line.starts_with('\'');
  return (looks_like_a_request ? "\\&" : "") + line + "\n";
}

std::string Wrapped(std::string_view text) {
  std::string result;
  std::string line;
  while (!text.empty()) {
    size_t end = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    bool fits = line.empty() || line.size() + 1 + word.size() <= kManWidth;
    if (!fits) result += AsTextLine(std::exchange(line, ""));
    if (!line.empty()) line += ' ';
    line += word;
  }
  return line.empty() ? result : result + AsTextLine(line);
}

}  // namespace

std::string PlainText(std::string_view marked) {
  std::string text;
  for (const Piece& piece : PiecesOf(marked)) text += piece.text;
  return text;
}

std::string ManLine(std::string_view paragraph) {
  std::string line;
  for (const Piece& piece : PiecesOf(paragraph)) line += ManPiece(piece);
  return line;
}

std::string ManParagraphs(std::string_view marked, std::string_view separator) {
  constexpr std::string_view kEmptyLine = "\n\n";
  std::string text;
  while (!marked.empty()) {
    size_t end = std::min(marked.find(kEmptyLine), marked.size());
    if (!text.empty()) text += std::string(separator) + "\n";
    text += Wrapped(ManLine(marked.substr(0, end)));
    marked.remove_prefix(std::min(end + kEmptyLine.size(), marked.size()));
  }
  return text;
}

}  // namespace rankrun::launcher
