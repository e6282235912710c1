package signing

import (
	"crypto/hmac"
	"crypto/sha512"
	"encoding/base64"
)

// Sign what you serialised once, and send those bytes: json.Marshal(value), not MarshalIndent.
func Sign(body []byte, signingKey string) string {
	mac := hmac.New(sha512.New, []byte(signingKey))
	mac.Write(body)
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// Verify the raw bytes, before anything parses them: io.ReadAll(request.Body). Pass both keys
// during a rotation, otherwise a list of one.
func Verify(body []byte, signature string, signingKeys []string) bool {
	for _, key := range signingKeys {
		if hmac.Equal([]byte(Sign(body, key)), []byte(signature)) {
			return true
		}
	}
	return false
}
