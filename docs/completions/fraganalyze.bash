# bash completion of fraganalyze, written by scripts/completions.
_fraganalyze() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} options=""
    COMPREPLY=()
    case "${COMP_WORDS[1]}" in
        anonymize)
            options="--force --help"
            ;;
        check)
            options="--allow-losses --baseline --force --help --json --max-allocated --max-reserved --max-waste --no-oom --no-retries --tolerance"
            case "$before" in
                --baseline) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
                --json) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
                --max-allocated) return ;;
                --max-reserved) return ;;
                --max-waste) return ;;
                --tolerance) return ;;
            esac
            ;;
        compare)
            options="--batch --capacity --color --events --force --help --html --json --no-whatif --predict"
            case "$before" in
                --batch) return ;;
                --capacity) return ;;
                --color) mapfile -t COMPREPLY < <(compgen -W "auto never always" -- "$word"); return ;;
                --events) return ;;
                --html) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
                --json) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
                --predict) return ;;
            esac
            ;;
        dump)
            options="--facts --help --no-stacks"
            ;;
        explain)
            options="--force --help --json"
            case "$before" in
                --json) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
            esac
            ;;
        export)
            options="--at --blocks --categories --events --force --help --of --output --to --torch-version --with"
            case "$before" in
                --at) mapfile -t COMPREPLY < <(compgen -W "peak oom end" -- "$word"); return ;;
                --categories) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
                --events) return ;;
                --of) mapfile -t COMPREPLY < <(compgen -W "holders waste allocations" -- "$word"); return ;;
                --to) mapfile -t COMPREPLY < <(compgen -W "folded speedscope perfetto csv sqlite snapshot" -- "$word"); return ;;
                --torch-version) return ;;
                --with) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
                -o|--output) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
            esac
            ;;
        list)
            options="--absorb --force --help --job --json --killed --limit"
            case "$before" in
                --job) return ;;
                --json) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
                --killed) return ;;
                --limit) return ;;
            esac
            ;;
        mcp)
            options="--help"
            ;;
        merge)
            options="--force --help --output"
            case "$before" in
                -o|--output) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
            esac
            ;;
        plan)
            options="--force --help --output"
            case "$before" in
                -o|--output) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
            esac
            ;;
        replay)
            options="--capacity --color --conf --context --device --driver-page --events --force --help --json --pending --pool --request --torch-version"
            case "$before" in
                --capacity) return ;;
                --color) mapfile -t COMPREPLY < <(compgen -W "auto never always" -- "$word"); return ;;
                --conf) return ;;
                --context) return ;;
                --device) return ;;
                --driver-page) return ;;
                --events) return ;;
                --json) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
                --pending) mapfile -t COMPREPLY < <(compgen -W "recorded at-once never" -- "$word"); return ;;
                --pool) mapfile -t COMPREPLY < <(compgen -W "pytorch none cuda-async rmm-pool rmm-arena bfc cupy best-fit live compact pages offline" -- "$word"); return ;;
                --request) return ;;
                --torch-version) return ;;
            esac
            ;;
        report)
            options="--cache --capacity --categories --color --context --driver-page --events --force --help --html --job-id --json --killed --no-whatif --pending --progress --sources --summary --torch-version"
            case "$before" in
                --cache) mapfile -t COMPREPLY < <(compgen -W "large always never" -- "$word"); return ;;
                --capacity) return ;;
                --categories) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
                --color) mapfile -t COMPREPLY < <(compgen -W "auto never always" -- "$word"); return ;;
                --context) return ;;
                --driver-page) return ;;
                --events) return ;;
                --html) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
                --job-id) return ;;
                --json) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
                --killed) return ;;
                --pending) mapfile -t COMPREPLY < <(compgen -W "recorded at-once never" -- "$word"); return ;;
                --torch-version) return ;;
            esac
            ;;
        summarize)
            options="--force --help --if-changed --json --no-stacks --no-whatif --output"
            case "$before" in
                --json) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
                -o|--output) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
            esac
            ;;
        top)
            options="--help --interval --json --once --serve"
            case "$before" in
                --interval) return ;;
                --serve) return ;;
            esac
            ;;
        validate)
            options="--capacity --conf --device --events --force --help --json --pool --torch-version"
            case "$before" in
                --capacity) return ;;
                --conf) return ;;
                --device) return ;;
                --events) return ;;
                --json) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
                --pool) mapfile -t COMPREPLY < <(compgen -W "pytorch none cuda-async rmm-pool rmm-arena bfc cupy best-fit live compact pages offline" -- "$word"); return ;;
                --torch-version) return ;;
            esac
            ;;
        whatif)
            options="--capacity --color --context --driver-page --empty-cache-every --events --force --help --json --no-scan --pending --torch-version"
            case "$before" in
                --capacity) return ;;
                --color) mapfile -t COMPREPLY < <(compgen -W "auto never always" -- "$word"); return ;;
                --context) return ;;
                --driver-page) return ;;
                --empty-cache-every) return ;;
                --events) return ;;
                --json) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
                --pending) mapfile -t COMPREPLY < <(compgen -W "recorded at-once never" -- "$word"); return ;;
                --torch-version) return ;;
            esac
            ;;
        *)
            options="--cache --capacity --categories --color --context --driver-page --events --force --help --html --job-id --json --killed --no-whatif --pending --progress --sources --summary --torch-version --version"
            case "$before" in
                --cache) mapfile -t COMPREPLY < <(compgen -W "large always never" -- "$word"); return ;;
                --capacity) return ;;
                --categories) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
                --color) mapfile -t COMPREPLY < <(compgen -W "auto never always" -- "$word"); return ;;
                --context) return ;;
                --driver-page) return ;;
                --events) return ;;
                --html) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
                --job-id) return ;;
                --json) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
                --killed) return ;;
                --pending) mapfile -t COMPREPLY < <(compgen -W "recorded at-once never" -- "$word"); return ;;
                --torch-version) return ;;
            esac
            ;;
    esac
    if [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
        return
    fi
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
    if ((COMP_CWORD == 1)); then
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "anonymize check compare dump explain export list mcp merge plan replay report summarize top validate whatif" -- "$word")
    fi
}
complete -o filenames -F _fraganalyze fraganalyze
