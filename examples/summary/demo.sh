#!/bin/sh
# Records summa (a text summarizer from PyPI) on excerpts of Python's language reference, prints its laws, writes the page.
set -eu
out=demo-out
mkdir -p $out
# summa's numeric part uses OpenBLAS; one thread of it, so that times are of one core.
export OPENBLAS_NUM_THREADS=1
.venv/bin/python examples/summary/texts.py $out 4 6 8 11 16 23
export PATH="$PWD/.venv/bin:$PATH"
cd $out
show() { echo "\$ $*"; }
show "perflaw record --vary kb=4,6,8,11,16,23 --repeat 2 -- textrank --text text-{kb}k.txt"
if [ -e recorded ] && [ -z "$(find ../src -name '*.py' -newer recorded)" ]; then
    echo "recorded before; remove $out to record again"
else
    rm -rf .perflaw
    perflaw record --vary kb=4,6,8,11,16,23 --repeat 2 -- textrank --text 'text-{kb}k.txt' >summaries.txt
    touch recorded
fi
show "perflaw annotate --at kb=100"
perflaw annotate --at kb=100
show "perflaw report --at kb=100 -o report.html"
perflaw report --at kb=100 -o report.html
echo "open $out/report.html"
