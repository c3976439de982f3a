# Groups sources into units of at most `most` sources each. Two sources are in different units
# if they give the same name to something in an anonymous namespace, or if one does and the
# other includes a header that declares this name in the same namespace. Prints "UNIT SOURCE" for each.
# `root` is the folder that "..." includes begin at.
# Source: the first line of a definition begins in the first column (clang-format).

# Adds the names that a line of a definition declares to `found`.
function declare(line, found) {
  if (line !~ /^[A-Za-z]/) return
  if (line ~ /^enum *:/) {
    while (match(line, /k[A-Z][A-Za-z0-9]*/)) {
      found[substr(line, RSTART, RLENGTH)] = 1
      line = substr(line, RSTART + RLENGTH)
    }
    return
  }
  if (line ~ /^MATCHER/) {
    sub(/^[A-Z0-9_]*\(/, "", line)
    sub(/[,)].*/, "", line)
    found[line] = 1
    return
  }
  if (line ~ /^[A-Z0-9_]+\(/ || line ~ /^template/ || line ~ /^namespace/) return  # TEST_F(...)
  if (line ~ /^using/ && line !~ /=/) return
  if (line ~ /^(struct|class|enum|using)/) sub(/[:={;].*/, "", line)
  else sub(/[({=\[;].*/, "", line)
  sub(/( final)? *$/, "", line)
  sub(/.* /, "", line)
  found[line] = 1
}

# Adds the headers that a line includes, and all that these include, to `included`.
function include(line, included,   path, known, i) {
  if (line ~ /^#include <rankrun\//) {
    sub(/^#include </, "comm/include/", line)
    sub(/>.*/, "", line)
  } else if (line ~ /^#include "/) {
    sub(/^#include "/, "", line)
    sub(/".*/, "", line)
  } else {
    return
  }
  path = line
  if (path in included) return
  included[path] = 1
  if (!(path in read)) read_header(path)
  for (i = 1; i <= includes[path]; ++i) include(include_of[path, i], included)
}

# Keeps the includes of a header and the names that it declares, with their namespace.
function read_header(path,   line, found, space, name) {
  read[path] = 1
  while ((getline line < (root "/" path)) > 0) {
    if (line ~ /^#include/) include_of[path, ++includes[path]] = line
    else if (line ~ /^namespace /) space = namespace_in(line)
    else declare(line, found)
    for (name in found) name_of[path, ++name_count[path]] = space "::" name
    split("", found)
  }
  close(root "/" path)
}

function namespace_in(line) {
  sub(/^namespace /, "", line)
  sub(/ *\{.*/, "", line)
  return line
}

function fits(unit,   name) {
  if (size[unit] >= most) return 0
  for (name in names) if ((unit, name) in taken || (unit, space "::" name) in seen) return 0
  for (name in header_names) if ((unit, name) in taken) return 0
  return 1
}

function add_to_unit(   unit, path, name, i) {
  for (path in included) for (i = 1; i <= name_count[path]; ++i) header_names[name_of[path, i]] = 1
  for (unit = 1; unit <= units; ++unit) if (fits(unit)) break
  if (unit > units) units = unit
  size[unit] += 1
  for (name in names) taken[unit, name] = taken[unit, space "::" name] = 1
  for (name in header_names) seen[unit, name] = 1
  print unit, source
  split("", names)
  split("", header_names)
  split("", included)
}

FNR == 1 {
  if (source != "") add_to_unit()
  source = FILENAME
  inside = 0
  space = ""
}
/^namespace [a-z]/ { space = namespace_in($0) }
/^#include/ { include($0, included) }
/^namespace \{$/ { inside = 1; next }
/^\}  \/\/ namespace$/ { inside = 0 }
inside { declare($0, names) }
END { if (source != "") add_to_unit() }
