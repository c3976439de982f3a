# Groups sources into units of at most `most` sources each: two that give the same name to
# something in an anonymous namespace go into different units. Prints "UNIT SOURCE" for each.
# Source: the first line of a definition begins in the first column (clang-format).

function add_to_unit(   unit, name) {
  for (unit = 1; unit <= units; ++unit) {
    if (size[unit] >= most) continue
    for (name in names) if ((unit, name) in taken) break
    if (!((unit, name) in taken)) break
  }
  if (unit > units) units = unit
  size[unit] += 1
  for (name in names) taken[unit, name] = 1
  print unit, source
  split("", names)
}

FNR == 1 {
  if (source != "") add_to_unit()
  source = FILENAME
  inside = 0
}
/^namespace \{$/ { inside = 1; next }
/^\}  \/\/ namespace$/ { inside = 0 }
!inside || !/^[A-Za-z]/ { next }
/^enum *:/ {
  while (match($0, /k[A-Z][A-Za-z0-9]*/)) {
    names[substr($0, RSTART, RLENGTH)] = 1
    $0 = substr($0, RSTART + RLENGTH)
  }
  next
}
/^MATCHER/ { sub(/^[A-Z0-9_]*\(/, ""); sub(/[,)].*/, ""); names[$0] = 1; next }
/^[A-Z0-9_]+\(/ || /^template/ || (/^using/ && !/=/) { next }  # TEST_F(...)
{
  if (/^(struct|class|enum|using)/) sub(/[:={].*/, ""); else sub(/[({=\[;].*/, "")
  names[$NF] = 1
}
END { if (source != "") add_to_unit() }
