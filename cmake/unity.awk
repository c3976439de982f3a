# Groups sources into units of at most `most` sources each. Prints "UNIT SOURCE" for each.
# Two sources are in different units
# - if they give the same name to something in an anonymous namespace,
# - if one does, and the other includes a header that declares this name in the same namespace,
# - if one uses a namespace, as rpc::, and the other has one of this name nearer by, as comm::rpc.
# `root` is the folder at which "..." includes begin.
# Source: the first line of a definition begins in the first column (clang-format).

# Adds the names that the first line of a definition declares to `found`.
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
  if (line ~ /^[A-Z0-9_]+\(/ || line ~ /^template/) return  # TEST_F(...)
  if (line ~ /^using/ && line !~ /=/) return
  if (line ~ /^(struct|class|enum|using)/) sub(/[:={;].*/, "", line)
  else sub(/[({=\[;].*/, "", line)
  sub(/( final)? *$/, "", line)
  sub(/.* /, "", line)
  found[line] = 1
}

# Adds the namespaces that a line uses to `found`.
function find_uses(line, found,   name) {
  sub(/\/\/.*/, "", line)
  while (match(line, /(^|[^A-Za-z0-9_:])[a-z][a-z_]*::/)) {
    name = substr(line, RSTART, RLENGTH - 2)
    sub(/^[^a-z]/, "", name)
    found[name] = 1
    line = substr(line, RSTART + RLENGTH)
  }
}

# Returns the namespace that begins with a line in `space`.
function namespace_in(line, space) {
  sub(/^namespace /, "", line)
  sub(/ *\{.*/, "", line)
  return line ~ /^rankrun/ ? line : space "::" line
}

# Adds a namespace and those around it, as names in the next one, to `found`.
function declare_namespace(space, found) {
  for (; space ~ /::/; sub(/::[^:]*$/, "", space)) found[space] = 1
}

# Adds the headers that a line includes, and all that these include, to `included`.
function include(line, included,   i) {
  if (line ~ /^#include <rankrun\//) {
    sub(/^#include </, "comm/include/", line)
    sub(/>.*/, "", line)
  } else if (line ~ /^#include "/) {
    sub(/^#include "/, "", line)
    sub(/".*/, "", line)
  } else {
    return
  }
  if (line in included) return
  included[line] = 1
  if (!(line in read)) read_header(line)
  for (i = 1; i <= includes[line]; ++i) include(include_of[line, i], included)
}

# Keeps the includes of a header and the names that it declares, with their namespace.
function read_header(path,   file, line, top, space, found, all, name) {
  read[path] = 1
  file = root "/" path
  while ((getline line < file) > 0) {
    if (line ~ /^#include/) {
      include_of[path, ++includes[path]] = line
    } else if (line ~ /^namespace [a-z]/) {
      space = namespace_in(line, top)
      if (top == "") top = space
      declare_namespace(space, all)
    } else {
      if (line ~ /^\}/) space = top
      declare(line, found)
      for (name in found) all[space "::" name] = 1
      split("", found)
    }
  }
  close(file)
  for (name in all) name_of[path, ++name_count[path]] = name
}

function fits(unit,   name) {
  if (size[unit] >= most) return 0
  for (name in names) if ((unit, name) in taken || (unit, space "::" name) in visible) return 0
  for (name in needed) if ((unit, name) in visible) return 0
  for (name in header_names) if ((unit, name) in taken || (unit, name) in needs) return 0
  return 1
}

function add_to_unit(   unit, path, name, i) {
  for (path in included) {
    for (i = 1; i <= name_count[path]; ++i) header_names[name_of[path, i]] = 1
  }
  declare_namespace(space, header_names)
  for (name in used) {
    if (!((space "::" name) in header_names)) needed[space "::" name] = 1
  }
  for (unit = 1; unit <= units; ++unit) if (fits(unit)) break
  if (unit > units) units = unit
  size[unit] += 1
  for (name in names) taken[unit, name] = taken[unit, space "::" name] = 1
  for (name in header_names) visible[unit, name] = 1
  for (name in needed) needs[unit, name] = 1
  print unit, source
  split("", names)
  split("", used)
  split("", needed)
  split("", header_names)
  split("", included)
}

FNR == 1 {
  if (source != "") add_to_unit()
  source = FILENAME
  inside = 0
  space = ""
}
/^namespace [a-z]/ { space = namespace_in($0, space) }
/^#include/ { include($0, included) }
/^namespace \{$/ { inside = 1; next }
/^\}  \/\/ namespace$/ { inside = 0 }
inside { declare($0, names) }
{ find_uses($0, used) }
END { if (source != "") add_to_unit() }
