#!/usr/bin/env python3
"""Writes the assembly and the version script of a stub of a shared library.

Usage: stub.py LIBRARY FOLDER VERSION...

LIBRARY: the library of this machine. VERSION: the newest version of each of its families that
the stub may have, such as GLIBCXX_3.4.24. A program that is linked with the stub needs no newer
symbols; those come from a static library. Versions of other families are left out.
"""
import re
import sys
from pathlib import Path

from elftools.elf.elffile import ELFFile


def family(version):
    return version.rsplit("_", 1)[0]


def number(version):
    return tuple(int(part) for part in re.findall(r"\d+", version.rsplit("_", 1)[1]))


def symbols(library, newest):
    """Yields (name, version, whether that is the default one, type, size)."""
    with open(library, "rb") as file:
        elf = ELFFile(file)
        table = elf.get_section_by_name(".dynsym")
        indices = elf.get_section_by_name(".gnu.version")
        names = {}
        for version, parts in elf.get_section_by_name(".gnu.version_d").iter_versions():
            names[version["vd_ndx"]] = next(parts).name
        for index, symbol in enumerate(table.iter_symbols()):
            if symbol["st_shndx"] == "SHN_UNDEF" or symbol["st_info"]["bind"] == "STB_LOCAL":
                continue
            ndx = indices.get_symbol(index)["ndx"]
            if isinstance(ndx, str):  # local, or without a version
                continue
            version = names.get(ndx & 0x7FFF)
            limit = newest.get(family(version)) if version and "_" in version else None
            if limit is None or number(version) > limit:
                continue
            kind = symbol["st_info"]["type"]
            if symbol.name == version:  # the version itself
                continue
            yield symbol.name, version, not ndx & 0x8000, kind, symbol["st_size"]


def main():
    library, folder = sys.argv[1], Path(sys.argv[2])
    newest = {family(version): number(version) for version in sys.argv[3:]}
    folder.mkdir(parents=True, exist_ok=True)
    places = {
        "STT_OBJECT": ('.bss,"aw",@nobits', "object"),
        "STT_TLS": ('.tbss,"awT",@nobits', "tls_object"),
    }
    lines, versions = [], set()
    for count, symbol in enumerate(symbols(library, newest)):
        name, version, is_default, kind, size = symbol
        section, kind = places.get(kind, ('.text,"ax",@progbits', "function"))
        own, at = f"stub_{count}", "@@" if is_default else "@"
        lines += [
            f".section {section}",
            f".globl {own}",
            f".type {own},@{kind}",
            f".size {own},{max(size, 1)}",
            f"{own}: .skip {max(size, 1) if kind != 'function' else 1}",
            f".symver {own},{name}{at}{version},remove",
        ]
        versions.add(version)
    (folder / "stub.s").write_text("\n".join(lines) + '\n.section .note.GNU-stack,"",@progbits\n')
    (folder / "stub.map").write_text("".join(f"{version} {{}};\n" for version in sorted(versions)))


main()
