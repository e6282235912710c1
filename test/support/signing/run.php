<?php

require __DIR__ . '/signing.php';

while (($line = fgets(STDIN)) !== false) {
    [$key, $body, $signature] = array_map('base64_decode', explode("\t", rtrim($line, "\n")));
    $taken = verify($body, $signature === '' ? null : $signature, ['other', $key]) ? 'true' : 'false';
    echo sign($body, $key), ' ', $taken, "\n";
}
