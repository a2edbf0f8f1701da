# bash completion of fragtrace, written by scripts/completions.
_fragtrace() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} options=""
    COMPREPLY=()
    case "$before" in
        --signal) mapfile -t COMPREPLY < <(compgen -W "HUP USR1 USR2 URG WINCH IO PWR" -- "$word"); return ;;
        --stacks) mapfile -t COMPREPLY < <(compgen -W "all native python none" -- "$word"); return ;;
        --start) mapfile -t COMPREPLY < <(compgen -W "on off" -- "$word"); return ;;
    esac
    case "${COMP_WORDS[1]}" in
        clean) options="--age --dry-run --help" ;;
        demo) options="--help --output --python" ;;
        doctor) options="--bundle --help --json --trace" ;;
        run) options="--flight-recorder --help --keep-free --min-bytes --no-record --output --quiet --signal --size-limit --stack-depth --stacks --start --start-after --version --virtual-gpu" ;;
        top) options="--help --interval --json --once --serve" ;;
        *) options="--help --version" ;;
    esac
    if [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
        return
    fi
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
    if ((COMP_CWORD == 1)); then
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "clean demo doctor run top" -- "$word")
    fi
}
complete -o filenames -F _fragtrace fragtrace
