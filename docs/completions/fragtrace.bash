# bash completion of fragtrace, written by scripts/completions.
_fragtrace() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} options=""
    COMPREPLY=()
    case "${COMP_WORDS[1]}" in
        clean)
            options="--age --dry-run --help"
            case "$before" in
                --age) return ;;
            esac
            ;;
        demo)
            options="--help --output --python"
            case "$before" in
                --python) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
                -o|--output) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
            esac
            ;;
        doctor)
            options="--bundle --help --json --trace"
            case "$before" in
                --bundle) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
                --trace) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
            esac
            ;;
        job)
            options="--help --local --lsf --no-whatif --output --pbs --python --scheduler --slurm --submit-option --wait --workers"
            case "$before" in
                --local) return ;;
                --python) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
                --scheduler) return ;;
                --submit-option) return ;;
                --wait) return ;;
                --workers) return ;;
                -o|--output) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
            esac
            ;;
        run)
            options="--flight-recorder --help --keep-free --min-bytes --no-record --output --quiet --signal --size-limit --stack-depth --stacks --start --start-after --version --virtual-gpu"
            case "$before" in
                --keep-free) return ;;
                --min-bytes) return ;;
                --signal) mapfile -t COMPREPLY < <(compgen -W "HUP USR1 USR2 URG WINCH IO PWR" -- "$word"); return ;;
                --size-limit) return ;;
                --stack-depth) return ;;
                --stacks) mapfile -t COMPREPLY < <(compgen -W "all native python none" -- "$word"); return ;;
                --start) mapfile -t COMPREPLY < <(compgen -W "on off" -- "$word"); return ;;
                --start-after) return ;;
                --virtual-gpu) return ;;
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
        try)
            options="--help --list --output --remedy --virtual-gpu"
            case "$before" in
                --remedy) return ;;
                --virtual-gpu) return ;;
                -o|--output) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
            esac
            ;;
        *)
            options="--help --version"
            ;;
    esac
    if [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
        return
    fi
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
    if ((COMP_CWORD == 1)); then
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "clean demo doctor job run top try" -- "$word")
    fi
}
complete -o filenames -F _fragtrace fragtrace
