# within.sh small|little-memory|read-only COMMAND...: runs the command in a folder with limits.
# small: a folder of its own is a tmpfs of 256 KiB. little-memory: /dev/shm has 24 MiB. read-only:
# nobody can write to the working folder.
# shellcheck shell=sh
place=$1
shift
unshare -m true 2>/dev/null || {
    echo "no right to mount"
    exit 77
}
case $place in
    small)
        exec unshare -m sh -c 'mkdir -p "$CLIENT_FOLDER/small" &&
            mount -t tmpfs -o size=256k none "$CLIENT_FOLDER/small" && exec "$@"' sh "$@"
        ;;
    little-memory)
        exec unshare -m sh -c 'mount -t tmpfs -o size=24m none /dev/shm && exec "$@"' sh "$@"
        ;;
    read-only)
        exec unshare -m sh -c 'mount -t tmpfs -o ro none "$CLIENT_FOLDER/work" &&
            cd "$CLIENT_FOLDER/work" && exec "$@"' sh "$@"
        ;;
esac
