<?php
// Prints functions as JSON: name, file, line and names of the parameters. Standard input is an object with the paths of
// source files, of which only the tokens are looked at, and with names of functions and methods of PHP itself.

function definitions(string $file): array
{
    $found = [];
    $namespace = '';
    $classes = [];  // [name, depth of its braces], the innermost last
    $depth = 0;
    $tokens = array_values(array_filter(PhpToken::tokenize(file_get_contents($file)), fn ($one) => !$one->isIgnorable()));
    foreach ($tokens as $at => $token) {
        $next = $tokens[$at + 1] ?? null;
        if ($token->is(['{', T_CURLY_OPEN, T_DOLLAR_OPEN_CURLY_BRACES])) {
            $depth++;
        } elseif ($token->is('}')) {
            $depth--;
            while ($classes && end($classes)[1] > $depth) {
                array_pop($classes);
            }
        } elseif ($token->is(T_NAMESPACE)) {
            $namespace = $next?->is([T_STRING, T_NAME_QUALIFIED]) ? $next->text . '\\' : '';
        } elseif ($token->is([T_CLASS, T_INTERFACE, T_TRAIT, T_ENUM]) && $next?->is(T_STRING)) {
            $classes[] = [$namespace . $next->text, $depth + 1];
        } elseif ($token->is([T_FUNCTION, T_FN]) && !($tokens[$at - 1] ?? null)?->is(T_USE)) {
            $place = $at + 1;
            if ($tokens[$place]?->is('&') || $tokens[$place]?->text === '&') {
                $place++;
            }
            $name = "$namespace{closure:$file:$token->line-";  // Xdebug adds the last line
            if ($tokens[$place]?->text !== '(') {
                $name = ($classes ? end($classes)[0] . ' ' : $namespace) . $tokens[$place++]->text;
            }
            $found[] = ['name' => $name, 'file' => $file, 'line' => $token->line, 'parameters' => parameters($tokens, $place)];
        }
    }
    return $found;
}

/** The variables between a bracket and the one that closes it; those of default values are none. */
function parameters(array $tokens, int $place): array
{
    $names = [];
    for ($open = 0; isset($tokens[$place]); $place++) {
        $token = $tokens[$place];
        if ($token->is(['(', '['])) {
            $open++;
        } elseif ($token->is([')', ']']) && --$open === 0) {
            break;
        } elseif ($token->is(T_VARIABLE) && $open === 1) {
            $names[] = substr($token->text, 1);
        }
    }
    return $names;
}

/** A function or method of PHP itself; it has no file. */
function internal(string $name): array
{
    $parts = preg_split('/->|::/', $name);
    $function = count($parts) > 1 ? new ReflectionMethod(...$parts) : new ReflectionFunction($name);
    $names = array_map(fn ($one) => $one->getName(), $function->getParameters());
    return ['name' => implode(' ', $parts), 'file' => '', 'line' => 0, 'parameters' => $names];
}

$asked = json_decode(stream_get_contents(STDIN), true);
$found = [];
foreach ($asked['files'] as $file) {
    try {
        array_push($found, ...(is_readable($file) ? definitions($file) : []));
    } catch (Throwable) {
        // What no tokenizer reads, PHP did not execute either.
    }
}
foreach ($asked['names'] as $name) {
    try {
        $found[] = internal($name);
    } catch (ReflectionException) {
        // An extension that the program loaded and this interpreter did not.
    }
}
echo json_encode($found, JSON_INVALID_UTF8_SUBSTITUTE);
