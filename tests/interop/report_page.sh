#!/usr/bin/env bash
# The page of rankctl report in headless Chromium: it needs no other resource, and the screenshot
# shows bars and the mark of the cause.
# Usage: report_page.sh RANKRUN RANKCTL [FOLDER]     77: Chromium is not installed
# With FOLDER, page and screenshots stay there.
set -u
rankrun=$1 rankctl=$2
for program in chromium python3; do
  command -v $program >/dev/null || { echo "skipped: there is no $program"; exit 77; }
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
kept=${3:-$folder}
fail() { echo "$*"; cat "$folder"/*.log; exit 1; }

export XDG_STATE_HOME=$folder
OMP_NUM_THREADS=1 "$rankrun" -n 8 --max-restarts 1 --rdzv-id '<job> & "7"' sh -c \
  'sleep 0.4; [ $RANK = 3 ] && { echo "ValueError: <loss> is nan" >&2; exit 3; }; sleep 60' \
  >"$folder/job.log" 2>&1
[ $? -eq 3 ] || fail "the job ended otherwise"
"$rankctl" report --html "$kept/page.html" >"$folder/rankctl.log" 2>&1 || fail "no page"

# Prints the page as the browser has it, or makes a screenshot. No host can be found, so that a
# page that wants another resource shows errors.
browse() {
  timeout 120 chromium --headless --no-sandbox --disable-gpu --hide-scrollbars \
    --user-data-dir="$folder/profile" --host-resolver-rules='MAP * ~NOTFOUND' \
    --window-size=1200,1400 "$@" "file://$kept/page.html" 2>>"$folder/chromium.log"
}
browse --dump-dom >"$folder/dom.html" || fail "Chromium fails"
python3 - "$folder/dom.html" <<'EOT' || fail "the page is not as expected"
import re, sys
dom = open(sys.argv[1], encoding="utf-8").read()
text = re.sub(r"<[^>]*>", "", dom)
assert dom.count('class="bar cause"') == 2, "two causes"
assert dom.count('class="bar consequence"') == 14, "fourteen consequences"
assert "ValueError: &lt;loss&gt; is nan" in text, "the last line"
assert "<loss>" not in dom and "<script" not in dom
EOT
browse --screenshot="$kept/page.png" >/dev/null || fail "no screenshot"
browse --screenshot="$kept/dark.png" --force-dark-mode --blink-settings=preferredColorScheme=0 \
  >/dev/null || fail "no dark screenshot"

# Colours of the causes, of the page's background; sizes.
python3 - "$kept/page.png" <<'EOT' || fail "the screenshot is not as expected"
import struct, sys, zlib

def pixels(path):
    data = open(path, "rb").read()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, raw = 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", body[:10])
            assert depth == 8 and colour in (2, 6)
            channels = 3 if colour == 2 else 4
        elif kind == b"IDAT":
            raw += body
        at += size + 12
    raw = zlib.decompress(raw)
    stride, rows, before = width * channels, [], bytearray(width * channels)
    for y in range(height):
        kind, line = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for x in range(stride):
            left = line[x - channels] if x >= channels else 0
            up, corner = before[x], before[x - channels] if x >= channels else 0
            if kind == 1: add = left
            elif kind == 2: add = up
            elif kind == 3: add = (left + up) // 2
            elif kind == 4:
                p = left + up - corner
                add = min((abs(p - left), 0, left), (abs(p - up), 1, up), (abs(p - corner), 2, corner))[2]
            else: add = 0
            line[x] = (line[x] + add) & 255
        rows.append(line)
        before = line
    return width, height, channels, rows

width, height, channels, rows = pixels(sys.argv[1])
assert (width, height) == (1200, 1400), (width, height)
count = {}
for line in rows[::2]:
    for x in range(0, width * channels, 2 * channels):
        colour = tuple(line[x:x + 3])
        count[colour] = count.get(colour, 0) + 1
red, amber = count.get((0xD0, 0x34, 0x2C), 0), count.get((0xE0, 0xA3, 0x3B), 0)
assert red > 500, f"bars of causes: {red}"
assert amber > 5 * red / 2, f"bars of consequences: {amber}"
assert count.get((0xF6, 0xF7, 0xF9), 0) > 10000, "background"
EOT
