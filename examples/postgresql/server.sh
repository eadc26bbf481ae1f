#!/bin/sh
# PostgreSQL on loopback over a database of its own: `server.sh init` makes it once, `server.sh start OPTION...` becomes the server.
# It refuses to run as root; so root starts it as the user that Debian's package made for it.
set -eu
folder=${PERFLAW_POSTGRESQL:-/var/tmp/perflaw-postgresql-$(id -u)}
port=${PERFLAW_POSTGRESQL_PORT:-7482}
scale=5
for bin in /usr/lib/postgresql/*/bin; do :; done
[ -x "$bin/postgres" ] || { echo "PostgreSQL is missing; on Debian: apt-get install postgresql" >&2; exit 2; }
as=
if [ "$(id -u)" = 0 ]; then
    as="setpriv --reuid=postgres --regid=postgres --clear-groups"
fi
become() {
    # The sockets of a server of the machine lie elsewhere: nothing here meets it.
    exec $as "$bin/postgres" -D "$folder/data" -p "$port" -c listen_addresses=127.0.0.1 -c unix_socket_directories="$folder" "$@"
}
case ${1:-} in
init)
    [ -e "$folder/made" ] && exit 0
    rm -rf "$folder"
    mkdir -m 0700 "$folder"
    [ -z "$as" ] || chown postgres:postgres "$folder"
    cd "$folder"
    $as "$bin/initdb" -D "$folder/data" -U perflaw -A trust --no-sync >/dev/null
    (become -c fsync=off) >"$folder/log" 2>&1 &
    trap 'kill $!; wait $! || true' EXIT
    for _ in $(seq 100); do
        "$bin/pg_isready" -q -h 127.0.0.1 -p "$port" && break
        sleep 0.1
    done
    "$bin/createdb" -h 127.0.0.1 -p "$port" -U perflaw trips
    "$bin/pgbench" -h 127.0.0.1 -p "$port" -U perflaw -i -s $scale -q trips >/dev/null 2>&1
    touch "$folder/made"
    ;;
start)
    shift
    cd "$folder"
    become "$@"
    ;;
*)
    echo "usage: server.sh init | start [OPTION...]" >&2
    exit 2
    ;;
esac
