import base64
import sys

import signing

for line in sys.stdin:
    key, body, signature = (base64.b64decode(field) for field in line.rstrip("\n").split("\t"))
    taken = signing.verify(body, signature.decode() or None, ["other", key.decode()])
    print(signing.sign(body, key.decode()), "true" if taken else "false")
