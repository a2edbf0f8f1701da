# shellcheck shell=bash
# Makes an empty Debian in a folder and runs commands in it, for scripts/prove-*. To be sourced with
# `set -euo pipefail`. Needs root and debootstrap.
#
# The root gets only the access to the package registries from this machine: name resolution, proxy
# settings and extra certificates. Mounts and processes are in namespaces of their own, so nothing
# is left over.

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
        debootstrap --variant=minbase ${packages:+--include="$packages"} "$release" "$root" "$mirror"
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
    mkdir -p "$root/usr/local/share/ca-certificates"
    cp -rL /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/" 2>/dev/null ||
        true
    if [[ ! -e $root/etc/ssl/certs/ca-certificates.crt ]]; then
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
    unshare --mount --pid --fork -- bash -euo pipefail -c '
        root=$1 user=$2 home=$3 command=$4
        shift 4
        mount --make-rprivate /
        mount -t proc proc "$root/proc"
        mount --rbind /dev "$root/dev"
        exec chroot --userspec="$user" "$root" env -i "$@" bash -euo pipefail -c "cd $home && $command"
    ' in_root "$1" "$2" "$3" "$4" "${environment[@]}"
}

# run_step NAME COMMAND...: runs a step and prints how long it took.
run_step() {
    local name=$1 began=$SECONDS
    shift
    printf '\n==== %s\n' "$name"
    "$@" || die "step '$name' failed after $((SECONDS - began)) s"
    printf '==== %s: succeeded in %d s\n' "$name" $((SECONDS - began))
}
