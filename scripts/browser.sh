#!/bin/sh
# The report page is tested in Debian's Chromium; installs it where it is missing and we may.
set -eu
for name in chromium chromium-browser google-chrome; do
    if command -v "$name" >/dev/null 2>&1; then
        exit 0
    fi
done
if [ "$(id -u)" != 0 ]; then
    echo "the page's tests need Chromium: sudo apt-get install -y chromium" >&2
    exit 2
fi
echo "installing Chromium for the page's tests"
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null
