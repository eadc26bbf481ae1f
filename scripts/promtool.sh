#!/bin/sh
# Sees to it that the tests find promtool, which reads the rules that perflaw mine --export prometheus writes.
set -eu
if command -v promtool >/dev/null; then
    exit 0
fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "promtool is missing; on Debian: apt-get install -y --no-install-recommends prometheus" >&2
    exit 2
fi
echo "fetching promtool from Debian's prometheus"
# The program alone, for installing the package would start a service.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
chmod 777 "$folder" # apt downloads as a user of its own
apt-get update -qq
(cd "$folder" && apt-get download -qq prometheus >/dev/null && dpkg -x prometheus_*.deb .)
install -m 755 "$folder/usr/bin/promtool" /usr/local/bin/promtool
