#!/bin/sh
# The report page is tested in Debian's Chromium, and by the slow tests in its Firefox; installs what is missing, if we may.
#   browser.sh      Chromium
#   browser.sh all  Firefox as well
set -eu
require() { # package, commands of which one must be there
    package=$1
    shift
    for name in "$@"; do
        if command -v "$name" >/dev/null 2>&1; then
            return 0
        fi
    done
    if [ "$(id -u)" != 0 ]; then
        echo "the page's tests need a browser: sudo apt-get install -y $package" >&2
        exit 2
    fi
    echo "installing $package for the page's tests"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >/dev/null
}
require chromium chromium chromium-browser google-chrome
if [ "${1:-}" = all ]; then
    require firefox-esr firefox-esr firefox
fi
