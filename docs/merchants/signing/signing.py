import base64
import hashlib
import hmac


# Serialise once, sign those bytes, send those bytes:
# json.dumps(value, separators=(",", ":")).encode(). Without `separators` there are spaces.
def sign(body: bytes, signing_key: str) -> str:
    digest = hmac.new(signing_key.encode(), body, hashlib.sha512).digest()
    return base64.b64encode(digest).decode()


# Verify the raw bytes, before anything parses them: request.get_data() in Flask, request.body in
# Django. Pass both keys during a rotation, otherwise a list of one.
def verify(body: bytes, signature: str | None, signing_keys: list[str]) -> bool:
    return any(
        hmac.compare_digest(sign(body, key).encode(), (signature or "").encode())
        for key in signing_keys
    )
