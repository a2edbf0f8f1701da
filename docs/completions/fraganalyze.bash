# bash completion of fraganalyze, written by scripts/completions.
_fraganalyze() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} options=""
    COMPREPLY=()
    case "$before" in
        --at) mapfile -t COMPREPLY < <(compgen -W "peak oom end" -- "$word"); return ;;
        --color) mapfile -t COMPREPLY < <(compgen -W "auto never always" -- "$word"); return ;;
        --of) mapfile -t COMPREPLY < <(compgen -W "holders waste allocations" -- "$word"); return ;;
        --pending) mapfile -t COMPREPLY < <(compgen -W "recorded at-once never" -- "$word"); return ;;
    esac
    case "${COMP_WORDS[1]}" in
        anonymize) options="--force --help" ;;
        check) options="--allow-losses --baseline --force --help --json --max-allocated --max-reserved --max-waste --no-oom --no-retries --tolerance" ;;
        compare) options="--batch --capacity --color --force --help --json --predict" ;;
        dump) options="--facts --help --no-stacks" ;;
        explain) options="--force --help --json" ;;
        export) options="--at --blocks --force --help --of --output --to --torch-version --with" ;;
        list) options="--absorb --force --help --job --json --limit" ;;
        mcp) options="--help" ;;
        plan) options="--force --help --output" ;;
        replay) options="--capacity --color --conf --context --device --driver-page --force --help --json --pending --pool --request --torch-version" ;;
        report) options="--capacity --color --context --driver-page --force --help --html --json --killed --no-whatif --pending --progress --summary --torch-version" ;;
        summarize) options="--force --help --json --no-stacks" ;;
        top) options="--help --interval --json --once --serve" ;;
        validate) options="--capacity --conf --device --force --help --json --pool --torch-version" ;;
        whatif) options="--capacity --color --context --driver-page --empty-cache-every --force --help --json --no-scan --pending --torch-version" ;;
        *) options="--capacity --color --context --driver-page --force --help --html --json --killed --no-whatif --pending --progress --summary --torch-version --version" ;;
    esac
    if [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
        return
    fi
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
    if ((COMP_CWORD == 1)); then
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "anonymize check compare dump explain export list mcp plan replay report summarize top validate whatif" -- "$word")
    fi
}
complete -o filenames -F _fraganalyze fraganalyze
