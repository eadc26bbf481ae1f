<?php
// Calls whose own cost is nothing: what a trace says of them is what tracing costs.
// Prints how long a call takes in ns, which without tracing is the cost of the call itself.

function nothing() {}
function takes_string($text) {}
function takes_array($numbers) {}

$text = str_repeat('x', 4000);
$numbers = range(1000, 1999);
$begin = hrtime(true);
for ($i = 0; $i < 5000; $i++) {
    nothing();
}
echo (hrtime(true) - $begin) / 5000;
for ($i = 0; $i < 300; $i++) {
    takes_string($text);
}
for ($i = 0; $i < 300; $i++) {
    takes_array($numbers);
}
