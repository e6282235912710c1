<?php

// Serialise once, sign that text, send that text: json_encode($value), without JSON_PRETTY_PRINT.
function sign(string $body, string $signingKey): string
{
    return base64_encode(hash_hmac('sha512', $body, $signingKey, true));
}

// Verify the raw bytes, before anything parses them: file_get_contents('php://input'), with the
// header $_SERVER['HTTP_X_SIGNATURE'] ?? null. Pass both keys during a rotation, otherwise a list
// of one.
function verify(string $body, ?string $signature, array $signingKeys): bool
{
    foreach ($signingKeys as $key) {
        if (hash_equals(sign($body, $key), $signature ?? '')) {
            return true;
        }
    }
    return false;
}
