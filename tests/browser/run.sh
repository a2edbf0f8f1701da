#!/bin/sh
# run.sh data|page|looks|firefox|measure|golden BUILD: runs one kind of test of the page.
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

command -v node >/dev/null || absent "node is missing: apt-get install nodejs npm"
mkdir -p "$build/tests/browser/pages"
pages=$(cd "$build/tests/browser/pages" && pwd)
make_pages() {
    "$build/bin/make_page" checkerboard "$pages/checkerboard.html" >/dev/null
    "$build/bin/make_page" 8000 "$pages/run.html" >/dev/null
    "$build/bin/make_page" 8000 "$pages/cut-down.html" 1000 >/dev/null
    "$build/bin/make_page" two "$pages/two.html" >/dev/null
    "$build/bin/make_page" shares "$pages/shares.html" >/dev/null
    "$build/bin/make_page" runs "$pages/runs.html" >/dev/null
    "$build/bin/make_page" job "$pages/job.html" >/dev/null
    "$build/bin/make_page" screens "$pages/screens.html" >/dev/null
    for run in private-pools expandable; do "$build/bin/make_page" "$run" "$pages/$run.html" >/dev/null; done
}

case $kind in
data)
    esbuild=${FRAGTRACE_ESBUILD:-esbuild}
    command -v "$esbuild" >/dev/null || absent "esbuild is missing: apt-get install esbuild"
    make_pages
    set --
    for source in "$here"/../../viewer/test/*.test.ts; do
        bundle=$pages/$(basename "$source" .ts).mjs
        "$esbuild" "$source" --bundle --platform=node --format=esm --log-level=warning --outfile="$bundle"
        set -- "$@" "$bundle"
    done
    FRAGTRACE_PAGES=$pages FRAGTRACE_STYLE=$here/../../viewer/src/page.css FRAGTRACE_FORMATS=$here/../unit/support/formats.tsv \
        exec node --test "$@"
    ;;
page)
    reason=$(node -e 'import(process.argv[1]).then((m) => m.missing()).then((r) => console.log(r ?? ""))' "$here/browser.mjs")
    [ -z "$reason" ] || absent "$reason"
    make_pages
    "$build/bin/make_page" 280000 "$pages/many.html" >/dev/null
    "$build/bin/make_page" crowd "$pages/crowd.html" >/dev/null
    FRAGTRACE_PAGES=$pages exec node --test --test-concurrency=1 "$here/page.test.mjs" "$here/views.test.mjs" "$here/access.test.mjs" \
        "$here/load.test.mjs" "$here/links.test.mjs" "$here/keys.test.mjs" "$here/ranks.test.mjs" \
        "$here/job.test.mjs" "$here/runs.test.mjs" "$here/screens.test.mjs" "$here/ranges.test.mjs" "$here/stacks.test.mjs" \
        "$here/remedies.test.mjs" "$here/hole.test.mjs" "$here/source.test.mjs" "$here/filter.test.mjs" "$here/print.test.mjs"
    ;;
firefox)
    reason=$(node -e 'import(process.argv[1]).then((m) => m.missing()).then((r) => console.log(r ?? ""))' "$here/firefox.mjs")
    [ -z "$reason" ] || absent "$reason"
    make_pages
    FRAGTRACE_PAGES=$pages exec node --test "$here/firefox.test.mjs"
    ;;
looks | golden)
    # golden writes new stored pictures: look at them before you keep them.
    reason=$(node -e 'import(process.argv[1]).then((m) => m.missing()).then((r) => console.log(r ?? ""))' "$here/browser.mjs")
    [ -z "$reason" ] || absent "$reason"
    make_pages
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
    echo "usage: run.sh data|page|looks|firefox|measure|golden BUILD"
    exit 2
    ;;
esac
