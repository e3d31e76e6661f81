#!/usr/bin/env bash
# Builds `pico`, one executable that needs neither Bun nor Node where it runs.
#
#   ./compile.sh          dist/pico for this machine
#   ./compile.sh --all    dist/pico-<platform> for every platform below as well
#
# Builds for other platforms put the program into that platform's Bun, which comes from the npm registry and
# is kept under .cache/. A platform whose Bun cannot be had is named at the end, and the script fails.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

platforms=(linux-x64 linux-arm64 linux-x64-musl linux-arm64-musl darwin-x64 darwin-arm64 windows-x64)
# The first is the program, the others are workers: each is loaded by its path below src/.
entries=(src/cli/main.ts src/sql/sqlite-worker.ts)

if command -v node >/dev/null; then bun="$(node scripts/bootstrap.mjs --print-bun)"; else bun="$(bun scripts/bootstrap.mjs --print-bun)"; fi
bun_version="$("$bun" --version)"

commit="unknown"
if git rev-parse --git-dir >/dev/null 2>&1; then
  commit="$(git rev-parse --short=12 HEAD)"
  [ -z "$(git status --porcelain)" ] || commit="$commit-dirty"
fi

# Files inside the program (src/storage/shipped-files.ts finds them): the pages, and what they take from packages.
"$bun" scripts/stage-packages.ts
assets=(public .cache/packages)

# build OUTPUT [BUILD_FLAG...]
# Names stay as they are: the HTTP framework reads the source of handlers, so identifiers are never minified.
# Nothing in the folder that the program is started from may change it: no .env, bunfig.toml or the like is read.
build() {
  local output="$1"
  shift
  "$bun" build --compile --root=src "${assets[@]/#/--asset=}" --sourcemap=inline \
    --no-compile-autoload-dotenv --no-compile-autoload-bunfig \
    --define 'process.env.NODE_ENV="production"' \
    --define "PICO_COMMIT=\"$commit\"" \
    --outfile="$output" "$@" "${entries[@]}"
  # The source maps are inside too, so that stacks in the log name our files.
  rm -f "$(dirname "$output")"/*.map
}

# Prints the path of Bun for a platform, fetched if need be; fails where it cannot be had.
platform_bun() {
  local platform="$1" name home file
  name="bun-${platform/arm64/aarch64}"
  home=".cache/executables/$name-$bun_version"
  file="$home/package/bin/bun"
  [[ $platform != windows-* ]] || file="$file.exe"
  if [ ! -f "$file" ]; then
    rm -rf "$home"
    mkdir -p "$home"
    npm pack --silent --pack-destination "$home" "@oven/$name@$bun_version" >/dev/null || return 1
    tar -xzf "$home"/*.tgz -C "$home" || return 1
    rm -f "$home"/*.tgz
  fi
  [ -f "$file" ] && echo "$file"
}

mkdir -p dist
# Bytecode saves the parsing at each start. Only here, where the result is run at once by the tests.
build dist/pico --bytecode
[ "${1:-}" = "--all" ] || exit 0

missing=()
for platform in "${platforms[@]}"; do
  if executable="$(platform_bun "$platform")"; then
    build "dist/pico-$platform" --target="bun-$platform" --compile-executable-path="$executable"
  else
    missing+=("$platform")
  fi
done
ls -l dist
if [ "${#missing[@]}" -gt 0 ]; then
  echo "compile.sh: no Bun $bun_version could be had for: ${missing[*]}; check that npm reaches its registry" >&2
  exit 1
fi
