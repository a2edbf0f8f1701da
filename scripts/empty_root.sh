# shellcheck shell=bash
# Makes an empty Debian in a folder and runs commands in it, for scripts/prove-*. To be sourced with
# `set -euo pipefail`. Needs root and debootstrap.
#
# The root gets only the access to the package registries from this machine: name resolution, proxy
# settings and extra certificates. Mounts and processes are in namespaces of their own, so nothing
# is left over.
#
# Programs of a root for another processor (root_processor) run under qemu. This needs qemu-user-static
# and Linux 6.7 or newer, because the kernel is told about qemu in a user namespace only.

# A script may set this to aarch64 before it makes a root.
root_processor=$(uname -m)

die() {
    printf '%s: %s\n' "$(basename -- "$0")" "$1" >&2
    exit "${2:-1}"
}

# Prints the first of this machine's package sources that has Debian's releases.
debian_mirror() {
    { cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null || true; } |
        sed -nE 's/^(URIs:|deb( \[[^]]*\])?) +(https?:[^ ]*\/debian)\/?( .*)?$/\3/p' | head -n 1
}

# make_root ROOT RELEASE PACKAGES BASE: the minimal system of a release with more packages (a,b).
# BASE, if not empty, is an archive of it. It is used if it exists, else written.
make_root() {
    local root=$1 release=$2 packages=$3 base=$4 mirror
    [[ ! -e $root ]] || die "$root exists" 2
    ((EUID == 0)) || die 'only root can make a root' 2
    mkdir -p -- "$root"
    if [[ -n $base && -e $base ]]; then
        tar -C "$root" -xf "$base"
    else
        mirror=$(debian_mirror) || true
        [[ -n $mirror ]] || die 'no Debian archive among the package sources of this machine'
        local -a options=(--variant=minbase ${packages:+--include="$packages"})
        if [[ $root_processor == "$(uname -m)" ]]; then
            debootstrap "${options[@]}" "$release" "$root" "$mirror"
        else
            debootstrap "${options[@]}" --arch="${root_processor/aarch64/arm64}" --foreign \
                "$release" "$root" "$mirror"
            # As in a container, because no device can be made in a user namespace.
            in_root "$root" root / 'container=lxc /debootstrap/debootstrap --second-stage'
        fi
        if [[ -n $base ]]; then tar -C "$root" -cf "$base" .; fi
    fi
    lead_to_registries "$root"
}

# Copies name resolution, proxies, certificates and pip's settings. Package folders of this machine
# are not mounted, so the root does not find indexes that are named by path.
lead_to_registries() {
    local root=$1 file
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
    for file in /etc/apt/apt.conf /etc/apt/apt.conf.d/*; do
        if grep -qs 'Acquire::' "$file"; then cp "$file" "$root$file"; fi
    done
    # update-ca-certificates wants one certificate per file. The root may have it now or install it.
    mkdir -p "$root/usr/local/share/ca-certificates"
    awk -v "folder=$root/usr/local/share/ca-certificates" \
        '/^-+BEGIN/ { file = folder "/this-machine-" ++count ".crt" } file { print >file }' \
        /etc/ssl/certs/ca-certificates.crt
    if [[ -x $root/usr/sbin/update-ca-certificates ]]; then
        in_root "$root" root / update-ca-certificates
    else
        mkdir -p "$root/etc/ssl/certs"
        cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
    fi
}

# in_root ROOT USER HOME COMMAND: runs a command line in the root as USER, in the folder HOME,
# without this machine's environment.
in_root() {
    local -a environment=("HOME=$3" "USER=$2" PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 CI=true)
    local name
    for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY \
        NODE_EXTRA_CA_CERTS; do
        [[ -z ${!name-} ]] || environment+=("$name=${!name}")
    done
    in_namespaces bash -euo pipefail -c '
        root=$1 user=$2 home=$3 command=$4
        shift 4
        mount --make-rprivate /
        mount -t proc proc "$root/proc"
        mount --rbind /dev "$root/dev"
        mount --rbind /sys "$root/sys"
        exec chroot --userspec="$user" "$root" env -i "$@" bash -euo pipefail -c "cd $home && $command"
    ' in_root "$1" "$2" "$3" "$4" "${environment[@]}"
}

# in_namespaces COMMAND...: runs a command with mounts and processes of its own. If the root is for
# another processor, the kernel starts its programs with qemu there.
in_namespaces() {
    if [[ $root_processor == "$(uname -m)" ]]; then
        unshare --mount --pid --fork -- "$@"
        return
    fi
    local qemu
    qemu=$(type -P "qemu-$root_processor-static") ||
        die "qemu-$root_processor-static is missing: apt-get install qemu-user-static"
    (
        pid=$BASHPID
        map_users "$pid" &
        exec unshare --user -- bash -c '
            until [[ $(</proc/self/uid_map) && $(</proc/self/gid_map) ]]; do sleep 0.02; done
            exec unshare --mount --pid --fork -- bash -euo pipefail -c "$0" namespaces "$@"' '
            qemu=$1
            shift
            mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
            # The first 20 bytes of a program for aarch64, and which of their bits count. F: the
            # kernel opens qemu now, so the root does not need it.
            printf "%s" ":qemu:M::\\x7fELF\\x02\\x01\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\x00\\xb7\\x00:" \
                "\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x00\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xfe\\xff\\xff\\xff:" \
                "$qemu:F" >/proc/sys/fs/binfmt_misc/register
            exec "$@"' "$qemu" "$@"
    )
}

# map_users PID: gives the user namespace that PID will make the users of this machine. Only a process
# outside the namespace can do so.
map_users() {
    until echo '0 0 65536' >"/proc/$1/uid_map" && echo '0 0 65536' >"/proc/$1/gid_map"; do
        kill -0 "$1" || return 0
        sleep 0.02
    done 2>/dev/null
}

# run_step NAME COMMAND...: runs a step in a subshell and prints how long it took. The step ends at its
# first failing command, which it would not do on the left of ||.
run_step() {
    local name=$1 began=$SECONDS status=0
    shift
    printf '\n==== %s\n' "$name"
    set +e
    (
        set -e
        "$@"
    )
    status=$?
    set -e
    ((status == 0)) || die "step '$name' failed after $((SECONDS - began)) s"
    printf '==== %s: succeeded in %d s\n' "$name" $((SECONDS - began))
}
