#!/bin/sh
# run.sh files BUILD writes the pages that the others open.
# run.sh data|page|tools|looks|firefox|measure|golden BUILD: runs one kind of test of the page.
#
# If its tools are missing it says how to get them, and fails if CI is set: a check that did not run
# must not look like one that did.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
kind=$1
build=$2

absent() {
    echo "page tests ($kind): $1"
    if [ -n "${CI:-}" ]; then exit 1; fi
    exit 77
}

mkdir -p "$build/tests/browser/pages"
pages=$(cd "$build/tests/browser/pages" && pwd)
make_pages() {
    "$build/bin/make_page" checkerboard "$pages/checkerboard.html" >/dev/null
    "$build/bin/make_page" 8000 "$pages/run.html" >/dev/null
    "$build/bin/make_page" 8000 "$pages/cut-down.html" 1000 >/dev/null
    "$build/bin/make_page" checkerboard "$pages/few-segments.html" 100000 40 >/dev/null
    "$build/bin/make_page" two "$pages/two.html" >/dev/null
    "$build/bin/make_page" shares "$pages/shares.html" >/dev/null
    "$build/bin/make_page" runs "$pages/runs.html" >/dev/null
    "$build/bin/make_page" job "$pages/job.html" >/dev/null
    "$build/bin/make_page" screens "$pages/screens.html" >/dev/null
    "$build/bin/make_page" 280000 "$pages/many.html" >/dev/null
    "$build/bin/make_page" crowd "$pages/crowd.html" >/dev/null
    for run in private-pools expandable; do "$build/bin/make_page" "$run" "$pages/$run.html" >/dev/null; done
}

# Tests in Chromium, one at a time.
in_chromium() {
    reason=$(node -e 'import(process.argv[1]).then((m) => m.missing()).then((r) => console.log(r ?? ""))' "$here/browser.mjs")
    [ -z "$reason" ] || absent "$reason"
    for name in "$@"; do
        shift
        set -- "$@" "$here/$name.test.mjs"
    done
    FRAGTRACE_PAGES=$pages FRAGTRACE_REPORTS=$build/tests/golden/reports exec node --test --test-concurrency=1 "$@"
}

if [ "$kind" = files ]; then
    make_pages
    exit 0
fi
command -v node >/dev/null || absent "node is missing: apt-get install nodejs npm"
case $kind in
data)
    esbuild=${FRAGTRACE_ESBUILD:-esbuild}
    command -v "$esbuild" >/dev/null || absent "esbuild is missing: apt-get install esbuild"
    set --
    for source in "$here"/../../viewer/test/*.test.ts; do
        bundle=$pages/$(basename "$source" .ts).mjs
        "$esbuild" "$source" --bundle --platform=node --format=esm --log-level=warning --outfile="$bundle"
        set -- "$@" "$bundle"
    done
    FRAGTRACE_PAGES=$pages FRAGTRACE_STYLE=$here/../../viewer/src/page.css FRAGTRACE_FORMATS=$here/../unit/support/formats.tsv \
        exec node --test "$@"
    ;;
page) in_chromium page views access load keys screens print ;;
tools) in_chromium links ranges stacks remedies hole source filter ranks job runs report saving ;;
firefox)
    reason=$(node -e 'import(process.argv[1]).then((m) => m.missing()).then((r) => console.log(r ?? ""))' "$here/firefox.mjs")
    [ -z "$reason" ] || absent "$reason"
    FRAGTRACE_PAGES=$pages exec node --test "$here/firefox.test.mjs"
    ;;
looks | golden)
    # golden writes new stored pictures: look at them before you keep them.
    reason=$(node -e 'import(process.argv[1]).then((m) => m.missing()).then((r) => console.log(r ?? ""))' "$here/browser.mjs")
    [ -z "$reason" ] || absent "$reason"
    [ "$kind" = looks ] || make_pages
    if [ "$kind" = golden ]; then set -- --write; else set --; fi
    FRAGTRACE_PAGES=$pages exec node "$here/golden.test.mjs" "$@"
    ;;
measure)
    reason=$(node -e 'import(process.argv[1]).then((m) => m.missing()).then((r) => console.log(r ?? ""))' "$here/browser.mjs")
    [ -z "$reason" ] || absent "$reason"
    for blocks in 100000 1000000; do
        "$build/bin/make_page" $((blocks + blocks / 50)) "$pages/$blocks.html"
        node "$here/measure.mjs" "$pages/$blocks.html"
    done
    ;;
*)
    echo "usage: run.sh files|data|page|tools|looks|firefox|measure|golden BUILD"
    exit 2
    ;;
esac
